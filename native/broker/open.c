/* open.c - the open family, the pinned way: pin, judge, reopen the object, hand over.
 * Plain names of existing files take the short way before (broker/direct.c). */
#include "broker/work.h"

#include "base/fd.h"
#include "broker/debug.h"
#include "broker/direct.h"
#include "broker/reopen.h"
#include "broker/shadow.h"
#include "broker/terminal.h"
#include "decode/openhow.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

enum { TRIES = 16, LINKS = 40 };

static bool is_tmpfile(uint64_t flags)
{
	return (flags & O_TMPFILE) == O_TMPFILE;
}

/* The kernel's own objections to an existing object, before its mode bits. */
static int object_errno(const struct sv_work *w, const struct sv_place *p)
{
	const uint64_t flags = w->in.flags;
	const mode_t type = p->st.st_mode & S_IFMT;
	const bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;

	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return EEXIST;
	if (type == S_IFLNK)
		return flags & O_DIRECTORY ? ENOTDIR : ELOOP;
	if (flags & O_DIRECTORY && type != S_IFDIR)
		return ENOTDIR;
	if (type == S_IFDIR && (flags & O_CREAT || (writes && !is_tmpfile(flags))))
		return EISDIR;
	return 0;
}

/* A terminal that the tree was given may be opened again through its
 * descriptor, as /dev/stdin does, with no more access than that has. */
static bool given_terminal(const struct sv_place *p, uint64_t flags)
{
	const int have = p->via & O_ACCMODE;

	return p->via >= 0 && !(p->via & O_PATH) && S_ISCHR(p->st.st_mode) &&
	       (have == O_RDWR || have == (int)(flags & O_ACCMODE));
}

static const char foreign_terminal[] = "the terminal of a program outside the tree";

static void open_existing(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];
	const bool given = given_terminal(p, w->in.flags);
	uint32_t ops = sv_open_ops(w->in.flags);
	const int err = object_errno(w, p);

	if (sv_shadow_open(w, p))
		return;
	if (S_ISDIR(p->st.st_mode) && ops & SV_OP_READ)
		ops = (ops & ~(uint32_t)SV_OP_READ) | SV_OP_LIST;
	if (p->held || given) {
		w->ops |= ops;
		w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	} else if (!sv_decide_call(w, ops, p)) {
		if (w->match.action == SV_STEER)
			sv_steer_open(w, p);
		else
			sv_refuse_unless(w, err == ENXIO ? 0 : err);	/* sockets: asked later */
		return;
	}
	if (err)
		sv_fail_call(w, err);
	else if (!given && !w->sh->observe && sv_foreign_terminal(w, p))
		sv_refuse_why(w, EACCES, foreign_terminal);
	else if (sv_foreign_memory(w, p))
		sv_refuse_why(w, EACCES, "the memory of a process that the caller does not debug");
	else
		sv_reopen_and_give(w, p, w->in.flags);
}

/* Creation in the pinned folder, of a name that must not exist yet. */
static int create_at(struct sv_work *w, struct sv_place *p)
{
	struct open_how how = {
		/* O_EXCL never follows; O_NOFOLLOW would stay visible in F_GETFL */
		.flags = (w->in.flags & ~(uint64_t)O_DIRECTORY) | O_CREAT | O_EXCL | O_CLOEXEC |
			 O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	mode_t mode;
	int rc = sv_new_mode(w, p, (mode_t)w->in.mode, &mode);
	long fd;

	if (rc < 0)
		return rc;
	how.mode = mode & 07777;
	rc = sv_take(w, SV_LIMIT_FILES_CREATED);
	if (rc < 0)
		return rc;
	fd = syscall(SYS_openat2, p->parent, p->last, &how, sizeof(how));
	if (fd < 0)
		sv_give_back_one(w, SV_LIMIT_FILES_CREATED);
	return fd < 0 ? -errno : (int)fd;
}

/* The name is taken: a dangling link that O_CREAT follows, or somebody was
 * faster. Returns 1 with name moved behind the link, 0 = look again, or -errno. */
static int behind_link(struct sv_place *p, struct sv_pathname *name, int *base)
{
	char text[SV_PATH_MAX];
	ssize_t k = readlinkat(p->parent, p->last, text, sizeof(text));

	if (k < 0)
		return errno == EINVAL || errno == ENOENT ? 0 : -errno;
	if (k == 0 || k >= SV_PATH_MAX)
		return k ? -ENAMETOOLONG : -ENOENT;
	sv_close_fd(base);
	*base = take_fd(&p->parent);
	memcpy(name->text, text, (size_t)k);
	name->text[k] = 0;
	name->len = (int)k;
	name->at = *base;
	return 1;
}

/* A limited walk would have to start again where it started. */
static int create_behind_link(const struct sv_work *w, struct sv_place *p, struct sv_pathname *name,
			      int *base)
{
	int rc = behind_link(p, name, base);

	return rc > 0 && w->in.resolve ? -ELOOP : rc;
}

static void give_created(struct sv_work *w, int fd)
{
	sv_give_fd(w, fd, w->in.flags & O_CLOEXEC, (w->in.flags & O_ACCMODE) != O_RDONLY);
}

/* A name that is missing where it was asked for may have been steered, it or
 * the folder it is in. */
static void open_missing(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];
	uint32_t ops = sv_open_ops(w->in.flags);

	if (w->in.flags & O_CREAT)
		ops = SV_OP_CREATE | (ops & SV_OP_WRITE);
	if (w->sh->steers && !w->sh->observe && !w->in.resolve) {
		sv_place_close(p);
		if (sv_pin_missing(&w->paths, &w->t, &w->in.name[0], p) == 0) {
			if (sv_shadow_open(w, p))
				return;
			if (!sv_decide_call(w, ops, p) && w->match.action == SV_STEER)
				return sv_steer_open(w, p);
		}
		w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	}
	sv_fail_call(w, ENOENT);
}

/* A new name that may not be made. Where a dangling link has it, what is made lies
 * behind the link: returns 0 = go on there; 1 = answered. */
static int create_refused(struct sv_work *w, struct sv_pathname *name, int *base)
{
	struct sv_place *p = &w->place[0];

	if (w->match.action == SV_STEER) {
		sv_steer_open(w, p);
		return 1;
	}
	if (!(w->in.flags & O_EXCL) && !w->in.resolve && behind_link(p, name, base) == 1)
		return 0;
	sv_refuse(w);
	return 1;
}

/* One try at a new name. Returns 1 = answered, 0 = it exists after all. */
static int try_create(struct sv_work *w, struct sv_pathname *name, int *base)
{
	struct sv_place *p = &w->place[0];
	int links, fd, rc;

	for (links = 0; links < LINKS; links++) {
		sv_place_close(p);
		rc = sv_pin_parent(&w->paths, &w->t, name, w->in.resolve, p);
		if (rc == 0 && p->slash)
			rc = -EISDIR;
		if (rc < 0)
			break;
		if (!sv_decide_call(w, SV_OP_CREATE | (sv_open_ops(w->in.flags) & SV_OP_WRITE), p)) {
			if (create_refused(w, name, base))
				return 1;
			rc = 1;
			continue;
		}
		if (sv_still_valid(&w->t) < 0)
			return 1;
		fd = create_at(w, p);
		if (fd >= 0) {
			give_created(w, fd);
			return 1;
		}
		rc = fd;
		if (fd != -EEXIST || w->in.flags & O_EXCL)
			break;
		rc = create_behind_link(w, p, name, base);
		if (rc <= 0)
			break;
	}
	if (rc == 0)
		return 0;
	if (rc == -ENOENT)
		open_missing(w);
	else
		sv_fail_call(w, rc < 0 ? -rc : ELOOP);
	return 1;
}

static void open_tmpfile(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];
	char self[32];
	/* by its number the folder is a link, which has to be followed */
	struct open_how how = { .flags = (w->in.flags & ~(uint64_t)O_NOFOLLOW) | O_CLOEXEC };
	const int pin = SV_PIN_DIRECTORY | (w->in.flags & O_NOFOLLOW ? SV_PIN_NOFOLLOW : 0);
	mode_t mode;
	long fd;
	char called[SV_PATH_MAX];
	int rc = sv_pin(&w->paths, &w->t, &w->in.name[0], pin, w->in.resolve, p);

	if (rc == -ENOENT && !w->in.resolve && sv_shadow_pin(w, pin, rc, called) == 0)
		rc = -EOPNOTSUPP;	/* as in a folder that the original has, too */
	if (rc < 0)
		return sv_fail_call(w, -rc);
	p->parent = take_fd(&p->fd);
	strcpy(p->last, "#tmpfile");
	rc = sv_place_join(p);
	if (rc < 0)
		return sv_fail_call(w, -rc);
	if (!sv_decide_call(w, SV_OP_CREATE | SV_OP_WRITE, p)) {
		if (w->match.action == SV_STEER)
			w->match = (struct sv_match){ .action = SV_DENY, .rule = w->match.rule,
						      .err = EOPNOTSUPP };
		return sv_refuse(w);
	}
	rc = sv_new_mode(w, p, (mode_t)w->in.mode, &mode);
	if (rc < 0)
		return sv_refuse_why(w, EACCES, "the caller's umask cannot be read");
	how.mode = mode & 07777;
	if (sv_still_valid(&w->t) < 0)
		return;
	rc = sv_take(w, SV_LIMIT_FILES_CREATED);
	if (rc < 0)
		return sv_fail_call(w, -rc);
	snprintf(self, sizeof(self), "%d", p->parent);
	fd = syscall(SYS_openat2, w->paths.self_fd, self, &how, sizeof(how));
	if (fd < 0)
		return sv_fail_call(w, errno);
	give_created(w, (int)fd);
}

/* openat2 keeps its flags in memory, so its O_PATH form cannot stay in the
 * kernel as open's and openat's does, and the descriptor cannot be handed
 * over: it is issued again as the openat it stands for. */
static void open_path_only(struct sv_work *w)
{
	struct sv_exec_plan *plan;

	if (!w->in.how)
		return sv_let_go(w);
	if (w->in.resolve)
		return sv_refuse_why(w, ENOSYS, "openat2 with O_PATH and resolve flags");
	plan = sv_exec_plan_new();
	if (!plan)
		return sv_fail_call(w, ENOMEM);
	plan->kind = SV_PLAN_REWRITE;
	plan->id = w->call.id;
	plan->tid = w->call.tid;
	plan->nr = w->call.nr;
	memcpy(plan->args, w->call.args, sizeof(plan->args));
	memcpy(plan->new_args, w->call.args, sizeof(plan->new_args));
	plan->new_nr = SYS_openat;
	plan->new_args[2] = w->in.flags;
	plan->new_args[3] = 0;
	sv_tracer_submit(w->sh->tracer, plan);
}

/* With O_CREAT a name that ends in '/' is refused unseen once its folder was
 * found; "." and ".." and the root are looked at like any other. */
static bool creates_with_slash(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];
	const struct sv_pathname *name = &w->in.name[0];
	int rc;

	if (!(w->in.flags & O_CREAT) || name->len < 2 || name->text[name->len - 1] != '/')
		return false;
	rc = sv_pin_parent(&w->paths, &w->t, name, w->in.resolve, p);
	if (rc == 0 && (!p->slash || sv_place_is_dots(p)))
		return false;
	if (rc == -ENOENT && w->sh->steers)	/* the folder may be elsewhere */
		return false;
	sv_fail_call(w, rc < 0 ? -rc : EISDIR);
	return true;
}

/* A link's text that ends in '/' is refused with O_CREAT just as unseen, also
 * where it leads to a file or nowhere. Otherwise rc is what it was. */
static int slash_behind_link(struct sv_work *w, struct sv_pathname *name, int *base, int rc)
{
	struct sv_place *p = &w->place[0];
	int links;

	if ((rc != -ENOTDIR && (rc != -ELOOP || w->in.resolve)) ||
	    (w->in.flags & (O_CREAT | O_EXCL | O_NOFOLLOW)) != O_CREAT)
		return rc;
	for (links = 0; links < LINKS; links++) {
		sv_place_close(p);
		if (sv_pin_parent(&w->paths, &w->t, name, w->in.resolve, p) < 0)
			break;
		if (p->slash && !sv_place_is_dots(p))
			return -EISDIR;
		if (behind_link(p, name, base) <= 0)
			break;
	}
	return rc;
}

/* Pin the object and judge it, or make it; whoever is faster is looked at again. */
static void open_pinned(struct sv_work *w)
{
	const uint64_t flags = w->in.flags;
	struct sv_pathname *name = &w->in.name[0];
	struct sv_place *p = &w->place[0];
	cleanup_fd int base = -1;
	int rc, i, pin = 0;

	if (flags & O_NOFOLLOW || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		pin |= SV_PIN_NOFOLLOW;
	if (creates_with_slash(w))
		return;
	for (i = 0; i < TRIES; i++) {
		sv_place_close(p);
		rc = sv_pin(&w->paths, &w->t, name, pin, w->in.resolve, p);
		if (rc == 0)
			return open_existing(w);
		if (rc == -EACCES && p->fd >= 0)
			return sv_refuse_why(w, EACCES, "a process outside the tree, or no file at all");
		if (rc == -ENOENT && !(flags & O_CREAT))
			return open_missing(w);
		if (rc != -ENOENT)
			return sv_fail_call(w, -slash_behind_link(w, name, &base, rc));
		if (try_create(w, name, &base))
			return;
	}
	sv_fail_call(w, EAGAIN);
}

void sv_do_open(struct sv_work *w)
{
	struct sv_open_how how = { w->in.flags, w->in.mode, w->in.resolve };
	int rc = sv_check_open_how(&how, w->in.how);

	if (rc < 0)
		return sv_fail_call(w, -rc);
	w->in.flags = how.flags;
	w->in.mode = how.mode;
	if (how.flags & O_PATH)
		return sv_shadow_open_path(w) ? (void)0 : open_path_only(w);
	if (is_tmpfile(how.flags))
		return open_tmpfile(w);
	if (!sv_open_directly(w))
		open_pinned(w);
}
