/* shadow.c - reading after writing, where writes go to a tree of their own. */
#include "broker/shadow.h"

#include "base/fd.h"
#include "broker/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct sv_str path_of(const struct sv_place *p)
{
	return (struct sv_str){ (const uint8_t *)p->path, (size_t)p->len };
}

static bool steers_to_tree(struct sv_work *w, const struct sv_place *p, uint32_t op,
			   struct sv_match *m)
{
	sv_match_path_in(w->sh->policy, sv_blocks_in(w), path_of(p), op, m);
	return sv_steer_goes_to_tree(w, m);
}

static bool is_folder(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Named as what it is in the tree: a folder that only the tree has is listed there. */
static bool list_denied(struct sv_work *w, const struct sv_place *p, int fd)
{
	struct sv_match m;

	if (!is_folder(fd))
		return false;
	sv_match_path_in(w->sh->policy, sv_blocks_in(w), path_of(p), SV_OP_LIST, &m);
	return m.action == SV_DENY && m.rule >= 0;
}

/* Leaves w->match as it is. */
static bool no_shadow(struct sv_work *w, const struct sv_place *p, bool folder, bool only, int fd)
{
	const struct sv_match steer = w->match;
	bool denied;

	if (list_denied(w, p, fd))
		return true;
	if (only)
		return false;
	if (folder && is_folder(fd))
		return true;
	denied = sv_steer_denied(w, fd, "", is_folder(fd) ? SV_OP_LIST : SV_OP_READ);
	w->match = steer;
	return denied;
}

/* The steer that says where the path lies. *only = all of it is there. False: none. */
static bool find_rule(struct sv_work *w, const struct sv_place *p, bool folder, bool *only)
{
	struct sv_match reading;

	*only = steers_to_tree(w, p, folder ? SV_OP_LIST : SV_OP_READ, &reading);
	if (*only)
		w->match = reading;
	else if (reading.action == SV_DENY && reading.rule >= 0)
		return false;
	return *only || steers_to_tree(w, p, SV_OP_WRITE, &w->match);
}

int sv_shadow(struct sv_work *w, const struct sv_place *p)
{
	const bool folder = p->fd >= 0 && S_ISDIR(p->st.st_mode);
	const bool missing = p->fd < 0 && strchr(p->last, '/');
	bool only = false;
	int fd = SV_NO_SHADOW;

	if (!w->sh->steers || w->sh->observe || p->held || p->path[0] != '/')
		return SV_NO_SHADOW;
	if (find_rule(w, p, folder, &only))
		fd = sv_steer_find(w, p, O_PATH);
	if (fd >= 0 && no_shadow(w, p, folder, only, fd)) {
		close(fd);
		fd = SV_NO_SHADOW;
	}
	if (fd >= 0 || (only && fd == -ENOENT))
		return fd;
	w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	return missing && fd != -ENOENT ? fd : SV_NO_SHADOW;
}

bool sv_shadow_open(struct sv_work *w, struct sv_place *p)
{
	cleanup_fd int fd = -1;

	if ((w->in.flags & O_ACCMODE) != O_RDONLY || w->in.flags & O_TRUNC)
		return false;
	fd = sv_shadow(w, p);
	if (sv_shadow_fails(fd))
		sv_fail_call(w, -fd);
	if (fd < 0)
		return sv_shadow_fails(fd);
	w->ops |= is_folder(fd) ? SV_OP_LIST : SV_OP_READ;
	sv_close_fd(&fd);
	sv_steer_open(w, p);
	return true;
}

bool sv_shadow_only(struct sv_work *w, const struct sv_place *p)
{
	struct sv_match m;

	return steers_to_tree(w, p, SV_OP_READ, &m);
}

bool sv_shadow_refused(struct sv_work *w, struct sv_str path, uint32_t ops)
{
	struct sv_match m;

	w->ops |= ops;
	sv_match_path_in(w->sh->policy, sv_blocks_in(w), path, ops, &m);
	if (m.action != SV_DENY || m.rule < 0)
		return false;
	w->match = m;
	return true;
}

int sv_shadow_below(const struct sv_work *w, int rule, const struct sv_place *object)
{
	char name[32], path[SV_PATH_MAX];
	ssize_t n;

	snprintf(name, sizeof(name), "%d", w->sh->dest[rule].fd);
	n = readlinkat(w->paths.self_fd, name, path, sizeof(path));
	if (n <= 0 || n == (ssize_t)sizeof(path) || object->held || object->len <= n ||
	    memcmp(object->path, path, (size_t)n))
		return 0;
	if (n > 1 && object->path[n] != '/')
		return 0;
	return n > 1 ? (int)n + 1 : 1;
}

bool sv_shadow_kept(struct sv_work *w, struct sv_str path)
{
	struct sv_match m;

	sv_match_path_in(w->sh->policy, sv_blocks_in(w), path, SV_OP_DELETE, &m);
	if (m.action != SV_STEER)
		return false;
	w->match = m;
	return true;
}

int sv_shadow_pin(struct sv_work *w, int how, int rc, char *called)
{
	struct sv_place *p = &w->place[0];
	int fd;

	called[0] = 0;
	if (!w->sh->steers || w->sh->observe || (rc < 0 && rc != -ENOENT))
		return rc;
	if (rc == -ENOENT) {
		sv_place_close(p);
		if (sv_pin_missing(&w->paths, &w->t, &w->in.name[0], p) < 0)
			return -ENOENT;
	}
	fd = sv_shadow(w, p);
	if (fd == SV_NO_SHADOW)
		return rc;
	if (fd < 0)
		return fd;
	strcpy(called, p->path);
	sv_place_close(p);
	rc = sv_place_adopt(&w->paths, &w->t, fd, false, p);
	if (rc == 0 && p->slash && !S_ISDIR(p->st.st_mode))
		return -ENOTDIR;
	return rc == 0 && S_ISLNK(p->st.st_mode) && !(how & SV_PIN_NOFOLLOW) ? -ELOOP : rc;
}

static void unlink_there(struct sv_work *w, bool original)
{
	struct sv_place *p = &w->place[0];
	int rc;

	if (sv_shadow_refused(w, path_of(p), SV_OP_DELETE))
		return sv_refuse(w);
	if (original)
		return sv_refuse_why(w, EPERM, "what was written to another tree would give way to the "
					       "original, which stays");
	if (sv_still_valid(&w->t) < 0)
		return;
	rc = sv_steer_name(w, p);
	if (rc == 0 && sv_steer_denied(w, p->parent, p->last, SV_OP_DELETE))
		return sv_refuse(w);
	if (rc == 0 && (sv_shadow_kept(w, path_of(p)) || sv_shadow_kept(w, path_of(&w->place[1])))) {
		memcpy(p->path, w->place[1].path, sizeof(p->path));
		p->len = w->place[1].len;
		return sv_trash_unlink(w);
	}
	if (rc == 0)
		rc = sv_take(w, SV_LIMIT_FILES_DELETED);
	if (rc == 0 && unlinkat(p->parent, p->last, (int)w->in.flags) < 0)
		rc = -errno;
	sv_give_result(w, rc);
}

bool sv_shadow_unlink(struct sv_work *w, int rc)
{
	struct sv_place *p = &w->place[0];
	struct stat st;
	int there;

	if (!w->sh->steers || w->sh->observe || (rc < 0 && rc != -ENOENT))
		return false;
	if (rc == -ENOENT && sv_pin_missing(&w->paths, &w->t, &w->in.name[0], p) < 0)
		return false;
	there = sv_place_is_dots(p) ? SV_NO_SHADOW : sv_shadow(w, p);
	if (sv_shadow_fails(there))
		sv_fail_call(w, -there);
	if (there < 0)
		return sv_shadow_fails(there);
	close(there);
	unlink_there(w, rc == 0 && fstatat(p->parent, p->last, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return true;
}
