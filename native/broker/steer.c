/* steer.c - the same call at another place: the rule's file or tree.
 *
 * Destinations are opened before the target runs and walked beneath that
 * descriptor without symbolic links, so a target that may write there cannot
 * lead a steered call out of it. */
#include "broker/work.h"

#include "base/err.h"
#include "base/fd.h"
#include "broker/copyup.h"
#include "broker/reopen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INSIDE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static int open_inside(int base, const char *name, uint64_t flags, uint64_t mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode, .resolve = INSIDE };
	long fd = syscall(SYS_openat2, base, name, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* Where the path goes: base descriptor and a relative name. */
static int destination(const struct sv_work *w, const struct sv_place *p, char *rest, int *base)
{
	const struct sv_rule *rule = &w->sh->policy->rules[w->match.rule];
	const struct sv_dest *dest = &w->sh->dest[w->match.rule];
	const char *below;

	*base = dest->fd;
	if (rule->dest_kind == SV_DEST_FILE) {
		strcpy(rest, dest->name);
		return 0;
	}
	if (rule->dest_kind != SV_DEST_TREE || w->match.prefix > p->len)
		return -EACCES;
	below = p->path + w->match.prefix;
	while (*below == '/')
		below++;
	strcpy(rest, *below ? below : ".");
	return 0;
}

/* For the record: the destination as it is named in the rule, and what is below. */
static void name_there(struct sv_work *w, const char *rest)
{
	const struct sv_rule *rule = &w->sh->policy->rules[w->match.rule];
	struct sv_place *there = &w->place[1];
	int n;

	if (rule->dest_kind == SV_DEST_FILE || !strcmp(rest, "."))
		n = snprintf(there->path, sizeof(there->path), "%.*s", (int)rule->dest.n,
			     (const char *)rule->dest.p);
	else
		n = snprintf(there->path, sizeof(there->path), "%.*s/%s", (int)rule->dest.n,
			     (const char *)rule->dest.p, rest);
	there->len = n < (int)sizeof(there->path) ? n : (int)sizeof(there->path) - 1;
}

static int parts(const char *name)
{
	int n = 0;

	while (*name) {
		n++;
		name += strcspn(name, "/");
		name += *name == '/';
	}
	return n;
}

/* Folders of rest that may be made in the tree: those that the name has where it was
 * asked for. What is missing there is in last, the name itself included. */
static int known_folders(const struct sv_place *place, const char *rest)
{
	const int missing = parts(place->last);

	return parts(rest) - (missing ? missing : 1);
}

/* Opens the folder of rest beneath base, making the first `make` folders where they are
 * missing; leaves the last component in *last. */
static int make_parents(int base, char *rest, int make, const char **last)
{
	int dir = fcntl(base, F_DUPFD_CLOEXEC, 3);
	char *p = rest, *slash;

	for (; dir >= 0 && (slash = strchr(p, '/')); make--) {
		int next;

		*slash = 0;
		next = open_inside(dir, p, O_PATH | O_DIRECTORY, 0);
		if (next == -ENOENT && make > 0 && (mkdirat(dir, p, 0755) == 0 || errno == EEXIST))
			next = open_inside(dir, p, O_PATH | O_DIRECTORY, 0);
		*slash = '/';
		close(dir);
		dir = next;
		p = slash + 1;
	}
	*last = p;
	return dir;
}

int sv_steer_folder(const struct sv_work *w, const struct sv_place *place, char *last)
{
	char rest[SV_PATH_MAX];
	const char *name;
	int base, dir, rc = destination(w, place, rest, &base);

	if (rc < 0)
		return rc;
	dir = make_parents(base, rest, known_folders(place, rest), &name);
	if (dir >= 0)
		strcat(strcpy(last, name), place->slash ? "/" : "");
	return dir;
}

int sv_steer_name(struct sv_work *w, struct sv_place *place)
{
	char rest[SV_PATH_MAX];
	int base, dir, rc = destination(w, place, rest, &base);

	if (rc < 0)
		return rc;
	name_there(w, rest);
	dir = sv_steer_folder(w, place, place->last);
	if (dir < 0)
		return dir;
	atomic_fetch_add_explicit(&w->sh->steered, 1, memory_order_relaxed);
	sv_close_fd(&place->parent);
	place->parent = dir;
	return 0;
}

int sv_steer_find(const struct sv_work *w, const struct sv_place *place, uint64_t flags)
{
	char rest[SV_PATH_MAX];
	int base, rc = destination(w, place, rest, &base);

	return rc < 0 ? rc : open_inside(base, rest, flags | O_NOFOLLOW, 0);
}

bool sv_steer_goes_to_tree(const struct sv_work *w, const struct sv_match *m)
{
	return m->action == SV_STEER && w->sh->policy->rules[m->rule].dest_kind == SV_DEST_TREE;
}

bool sv_steer_denied(struct sv_work *w, int dir, const char *last, uint32_t ops)
{
	char name[32], path[2 * SV_PATH_MAX];
	struct sv_match m = { .action = SV_DENY, .rule = -1, .err = EACCES };
	size_t n, k = strcspn(last, "/");
	ssize_t len;

	if (!sv_steer_goes_to_tree(w, &w->match))
		return false;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", dir);
	len = readlink(name, path, SV_PATH_MAX);
	if (len <= 0 || len == SV_PATH_MAX) {
		w->match = m;
		return true;
	}
	n = (size_t)len;
	if (k && strncmp(last, ".", k)) {
		path[n++] = '/';
		memcpy(path + n, last, k);
		n += k;
	}
	sv_match_path_in(w->sh->policy, sv_blocks_in(w), (struct sv_str){ (const uint8_t *)path, n },
			 ops, &m);
	if (m.action != SV_DENY || m.rule < 0)
		return false;
	w->match = m;
	return true;
}

static bool wants_write(const struct sv_work *w)
{
	return (w->in.flags & O_ACCMODE) != O_RDONLY || w->in.flags & O_TRUNC;
}

static bool must_be_new(const struct sv_work *w)
{
	return (w->in.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
}

/* What the original says to the name, or 0. */
static int name_errno(const struct sv_work *w, bool exists, const struct sv_match *reading)
{
	if (!exists)
		return w->in.flags & O_CREAT ? 0 : ENOENT;
	return reading->action != SV_STEER && must_be_new(w) ? EEXIST : 0;
}

static mode_t mode_there(struct sv_work *w, const struct sv_place *orig)
{
	const mode_t mode = (mode_t)w->in.mode & 07777;
	mode_t mask;

	if (orig->fd >= 0)
		return orig->st.st_mode & 0777;
	return sv_tracee_umask(&w->t, &mask) == 0 ? mode & ~mask : mode & 0700;
}

/* The file is not at the destination yet: made there, with the original's
 * bytes when the call would have seen them. */
static void create_there(struct sv_work *w, const struct sv_place *orig, int base, char *rest)
{
	struct sv_str path = { (const uint8_t *)orig->path, (size_t)orig->len };
	const bool exists = orig->fd >= 0;
	const char *last;
	struct sv_match reading;
	int dir, fd;

	sv_match_path_in(w->sh->policy, sv_blocks_in(w), path, SV_OP_READ, &reading);
	dir = name_errno(w, exists, &reading);
	if (dir)
		return sv_fail_call(w, dir);
	dir = make_parents(base, rest, known_folders(orig, rest), &last);
	if (dir < 0)
		return sv_fail_call(w, -dir);
	if (orig->slash || sv_steer_denied(w, dir, last, SV_OP_WRITE | SV_OP_CREATE)) {
		close(dir);
		return orig->slash ? sv_fail_call(w, EISDIR) : sv_refuse(w);
	}
	if (exists && S_ISREG(orig->st.st_mode) && !(w->in.flags & O_TRUNC)) {
		if (reading.action != SV_ALLOW) {
			close(dir);
			return sv_refuse_why(w, EACCES, "steered, but its present bytes may not be read");
		}
		return sv_copy_up(w, orig, dir, last);
	}
	fd = exists ? 0 : sv_take(w, SV_LIMIT_FILES_CREATED);
	if (fd == 0)
		fd = open_inside(dir, last, (w->in.flags & ~(uint64_t)O_DIRECTORY) | O_CREAT | O_NOFOLLOW |
				    O_NOCTTY | O_NONBLOCK, mode_there(w, orig));
	close(dir);
	if (fd < 0)
		return sv_fail_call(w, -fd);
	if (!(w->in.flags & O_NONBLOCK))
		fcntl(fd, F_SETFL, (int)(w->in.flags & (O_APPEND | O_DIRECT | O_NOATIME)));
	sv_give_fd(w, fd, w->in.flags & O_CLOEXEC, wants_write(w));
}

/* The kernel's objections to what is at the destination, or 0. */
static int kind_errno(const struct sv_work *w, const struct sv_place *asked, mode_t mode)
{
	if (asked->slash && w->in.flags & O_CREAT)
		return EISDIR;
	if (asked->slash && !S_ISDIR(mode))
		return ENOTDIR;
	if (must_be_new(w))
		return EEXIST;
	if (S_ISDIR(mode) && (wants_write(w) || w->in.flags & O_CREAT))
		return EISDIR;
	if (!S_ISDIR(mode) && w->in.flags & O_DIRECTORY)
		return ENOTDIR;
	return S_ISLNK(mode) ? ELOOP : 0;
}

void sv_steer_open(struct sv_work *w, struct sv_place *place)
{
	struct sv_place *there = &w->place[1];
	char rest[SV_PATH_MAX];
	int base, fd, rc = destination(w, place, rest, &base);

	if (rc < 0)
		return sv_refuse(w);
	if (sv_still_valid(&w->t) < 0)
		return;
	name_there(w, rest);
	atomic_fetch_add_explicit(&w->sh->steered, 1, memory_order_relaxed);
	fd = open_inside(base, rest, O_PATH | O_NOFOLLOW, 0);
	if (fd == -ENOENT && (wants_write(w) || place->fd < 0))
		return create_there(w, place, base, rest);
	if (fd < 0)
		return sv_fail_call(w, -fd);
	rc = sv_place_adopt(&w->paths, &w->t, fd, false, there);
	if (rc < 0)
		return sv_fail_call(w, -rc);
	if (wants_write(w) && sv_steer_denied(w, fd, "", SV_OP_WRITE))
		return sv_refuse(w);
	rc = kind_errno(w, place, there->st.st_mode);
	if (rc)
		return sv_fail_call(w, rc);
	sv_reopen_and_give(w, there, w->in.flags);
}

/* Destinations are walked without following links: a link that a run left
 * there must not lead the next one elsewhere. */
static int open_tree(char *path)
{
	cleanup_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *last;
	size_t n = strlen(path);

	if (root < 0)
		return -errno;
	if (n + 3 > SV_PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(path + n, "/.");
	n = (size_t)make_parents(root, path + 1, SV_PATH_MAX, &last);
	path[strlen(path) - 2] = 0;
	return (int)n;
}

static int open_folder_of(const char *path, struct sv_dest *dest)
{
	cleanup_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *last = strrchr(path, '/');
	char dir[SV_PATH_MAX];

	if (!last || !last[1] || strlen(last + 1) >= sizeof(dest->name) ||
	    (size_t)(last - path) >= sizeof(dir))
		return -EINVAL;
	memcpy(dir, path, (size_t)(last - path));
	dir[last - path] = 0;
	strcpy(dest->name, last + 1);
	return root < 0 ? -errno : open_inside(root, dir[0] ? dir + 1 : ".",
					       O_PATH | O_DIRECTORY, 0);
}

int sv_dest_open_all(struct sv_shared *sh, struct sv_err *err)
{
	const struct sv_policy *p = sh->policy;
	char path[SV_PATH_MAX];
	uint32_t i;

	sh->dest = calloc(p->nrules ? p->nrules : 1, sizeof(*sh->dest));
	if (!sh->dest)
		return sv_fail(err, ENOMEM, "steer", "out of memory");
	for (i = 0; i < p->nrules; i++)
		sh->dest[i].fd = -1;
	for (i = 0; i < p->nrules; i++) {
		const struct sv_rule *r = &p->rules[i];

		if (r->dest_kind != SV_DEST_FILE && r->dest_kind != SV_DEST_TREE)
			continue;
		sh->steers = true;
		if (r->dest.n >= sizeof(path))
			return sv_fail(err, ENAMETOOLONG, "steer", "destination too long");
		memcpy(path, r->dest.p, r->dest.n);
		path[r->dest.n] = 0;
		sh->dest[i].fd = r->dest_kind == SV_DEST_TREE ? open_tree(path) :
								open_folder_of(path, &sh->dest[i]);
		if (sh->dest[i].fd < 0)
			return sv_fail(err, -sh->dest[i].fd, "steer", "rule %.*s steers to %s: %s",
				       (int)r->id.n, (const char *)r->id.p, path,
				       sh->dest[i].fd == -ELOOP ?
					       "a symbolic link lies on the way: name the true folder" :
					       strerror(-sh->dest[i].fd));
	}
	return 0;
}

void sv_dest_close_all(struct sv_shared *sh)
{
	uint32_t i;

	for (i = 0; sh->dest && i < sh->policy->nrules; i++)
		sv_close_fd(&sh->dest[i].fd);
	free(sh->dest);
	sh->dest = NULL;
}
