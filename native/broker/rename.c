/* rename.c - calls with two names: rename and link.
 *
 * A new name must not give what the old one did not: where any operation
 * would be decided more loosely at the new place, the call is refused with
 * EXDEV, on which mv and git copy instead, each file under its own decision.
 * For a folder that must hold for every name below it. */
#include "broker/bound.h"
#include "broker/trash.h"

#include "base/fd.h"
#include "broker/shadow.h"
#include "broker/tree.h"
#include "decode/lexical.h"
#include "match/net.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { NOREPLACE = 1, EXCHANGE = 2, WHITEOUT = 4 };

static struct sv_str path_of(const struct sv_place *p)
{
	return (struct sv_str){ (const uint8_t *)p->path, (size_t)p->len };
}

static bool pin_both(struct sv_work *w, bool missing[2])
{
	int i, rc = 0;

	for (i = 0; i < 2 && rc == 0; i++)
		rc = sv_tree_pin(w, i, &missing[i]);
	if (rc < 0)
		sv_fail_call(w, -rc);
	return rc == 0;
}

/* What ends a call before the kernel asks whether it is permitted, or 0. */
static int moot_rename(const struct sv_work *w)
{
	const struct sv_place *from = &w->place[0], *to = &w->place[1];
	int err;

	if (from->st.st_dev != to->st.st_dev)
		return EXDEV;
	err = sv_moot_old(from, true);
	if (!err && w->in.flags & EXCHANGE)
		err = sv_moot_old(to, true);
	else if (!err && w->in.flags & NOREPLACE)
		err = sv_moot_new(to, true);
	return err;
}

static int moot_link(const struct sv_work *w)
{
	return sv_moot_new(&w->place[1], false);
}

/* Judge ops at a place; false = refused and answered. */
static bool allowed(struct sv_work *w, uint32_t ops, const struct sv_place *p,
		    int (*moot)(const struct sv_work *w))
{
	if (sv_decide_call(w, ops, p))
		return true;
	if (w->match.action == SV_STEER)
		w->match = (struct sv_match){ .action = SV_DENY, .rule = w->match.rule, .err = EXDEV };
	sv_refuse_unless(w, moot(w));
	return false;
}

static bool exists(const struct sv_place *p)
{
	struct stat st;

	return fstatat(p->parent, p->last, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Network rules speak of a socket file by its path, too; not of one that the tree bound. */
static bool may_move_socket(struct sv_work *w, const struct sv_place *from, const struct stat *st,
			    const struct sv_place *to)
{
	const bool folder = S_ISDIR(st->st_mode);

	if (!folder && (!S_ISSOCK(st->st_mode) || sv_bound_has(w->sh->bound, st)))
		return true;
	return sv_match_socket_may_move(w->sh->policy, sv_blocks_in(w), path_of(from), path_of(to),
					folder);
}

/* May what is called from, and is st, be called to? */
static bool may_move(struct sv_work *w, const struct sv_place *from, const struct stat *st,
		     const struct sv_place *to)
{
	if (w->sh->observe)
		return true;
	return sv_match_may_move(w->sh->policy, sv_blocks_in(w), path_of(from), path_of(to),
				 S_ISDIR(st->st_mode)) &&
	       may_move_socket(w, from, st, to);
}

/* The same for what has the name now. A name that is gone is none of a folder. */
static bool may_move_name(struct sv_work *w, const struct sv_place *from, const struct sv_place *to)
{
	struct stat st;

	if (fstatat(from->parent, from->last, &st, AT_SYMLINK_NOFOLLOW) < 0)
		st.st_mode = 0;
	return may_move(w, from, &st, to);
}

static const char looser[] = "its new place is ruled more loosely: copy it instead";

static int do_rename(struct sv_work *w)
{
	const struct sv_place *a = &w->place[0], *b = &w->place[1];

	if (sv_still_valid(&w->t) < 0)
		return -ESRCH;
	return sv_take_and_rename(w, a->parent, a->last, b->parent, b->last, (unsigned)w->in.flags);
}

/* Two names of one object: the kernel then does nothing at all. */
static bool same_object(const struct sv_place *a, const struct sv_place *b)
{
	struct stat x, y;

	return fstatat(a->parent, a->last, &x, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(b->parent, b->last, &y, AT_SYMLINK_NOFOLLOW) == 0 &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* What stands at the new name goes to the trash first. *copy = it cannot be
 * linked there, and nothing was done. */
static int replace_kept(struct sv_work *w, bool *copy)
{
	struct sv_kept k;
	int rc;

	if (same_object(&w->place[0], &w->place[1]))
		return do_rename(w);
	rc = sv_trash_keep(w, &w->place[1], &k);
	if (rc == -ENOENT)
		return do_rename(w);
	*copy = rc == -EXDEV;
	if (rc < 0)
		return rc;
	rc = do_rename(w);
	if (rc < 0)
		sv_trash_drop(w->sh->trash, &k);
	else
		atomic_fetch_add_explicit(&w->sh->steered, 1, memory_order_relaxed);
	return rc;
}

/* What is moved, a file or a folder, is looked at and moved under one lock
 * that every rename and mkdir of the tree takes: nothing inside can put a
 * folder where a file was judged. */
static void judge_and_move(struct sv_work *w, bool keep)
{
	const struct sv_place *a = &w->place[0], *b = &w->place[1];
	bool ok, copy = false;
	int rc = 0, moot;

	pthread_rwlock_wrlock(&w->sh->names);
	ok = may_move_name(w, a, b) && (!(w->in.flags & EXCHANGE) || may_move_name(w, b, a));
	moot = ok ? 0 : moot_rename(w);
	if (ok)
		rc = keep ? replace_kept(w, &copy) : do_rename(w);
	pthread_rwlock_unlock(&w->sh->names);
	if (!ok && moot)
		sv_fail_call(w, moot);
	else if (!ok)
		sv_refuse_why(w, EXDEV, looser);
	else if (copy)
		sv_trash_copy_and_rename(w);
	else if (rc < 0 && keep && !w->over && sv_trash_reason(-rc))
		sv_refuse_why(w, -rc, sv_trash_reason(-rc));
	else
		sv_give_result(w, rc);
}

/* "." and ".." cannot be moved, nor replaced; another file system comes first. */
static int dots_errno(const struct sv_work *w)
{
	const struct sv_place *a = &w->place[0], *b = &w->place[1];
	const bool from = sv_place_is_dots(a);

	if (!from && !sv_place_is_dots(b))
		return 0;
	if (a->st.st_dev != b->st.st_dev)
		return EXDEV;
	return !from && w->in.flags & NOREPLACE ? EEXIST : EBUSY;
}

/* False = failed, refused or a tree's affair, and answered. */
static bool pin_rename(struct sv_work *w)
{
	bool missing[2];
	int rc;

	if (!pin_both(w, missing))
		return false;
	rc = dots_errno(w);
	if (!rc && sv_tree_rename(w, missing))
		return false;
	if (!rc && (missing[0] || missing[1]))
		rc = ENOENT;
	if (rc)
		sv_fail_call(w, rc);
	return rc == 0;
}

void sv_do_rename(struct sv_work *w)
{
	const bool swap = w->in.flags & EXCHANGE;
	bool keep = false;

	if (w->in.flags & ~(uint64_t)(NOREPLACE | EXCHANGE | WHITEOUT) ||
	    (swap && w->in.flags & (NOREPLACE | WHITEOUT)))
		return sv_fail_call(w, EINVAL);
	if (w->in.flags & WHITEOUT)
		return sv_refuse_why(w, EPERM, "a whiteout is a device node");
	if (!pin_rename(w))
		return;
	if (!allowed(w, SV_OP_RENAME, &w->place[0], moot_rename) ||
	    !allowed(w, SV_OP_RENAME, &w->place[1], moot_rename))
		return;
	/* what stands at the new name is gone afterwards */
	if (!swap && exists(&w->place[1]) && !sv_decide_call(w, SV_OP_DELETE, &w->place[1])) {
		keep = w->match.action == SV_STEER;
		if (!keep)
			return sv_refuse_unless(w, moot_rename(w));
	}
	judge_and_move(w, keep);
}

/* The object that gets another name is pinned; what it may be called is judged against all
 * it could be used for under its present name. called: as sv_shadow_pin(). */
static int pin_source(struct sv_work *w, struct sv_place *from, char *called)
{
	const int pin = w->in.flags & AT_SYMLINK_FOLLOW ? 0 : SV_PIN_NOFOLLOW;
	int rc;

	called[0] = 0;
	if (sv_names_start(&w->in.name[0], w->in.flags))
		return sv_pin_fd(&w->paths, &w->t, w->in.name[0].dirfd, from);
	rc = sv_pin(&w->paths, &w->t, &w->in.name[0], pin, 0, from);
	return sv_shadow_pin(w, pin, rc, called);
}

/* False = failed, refused or a tree's affair, and answered. */
static bool pin_link(struct sv_work *w, struct sv_place *from, struct sv_place *to)
{
	char called[SV_PATH_MAX];
	bool missing = false;
	int rc = pin_source(w, from, called);

	if (rc == 0 && sv_refuse_hidden(w, from))
		return false;
	if (rc == 0)
		rc = sv_tree_pin(w, 1, &missing);
	if (rc == 0 && sv_place_is_dots(to))
		rc = -EEXIST;
	if (rc == 0 && sv_tree_link(w, called[0] ? called : NULL, missing))
		return false;
	if (rc == 0 && missing)
		rc = -ENOENT;
	if (rc < 0)
		sv_fail_call(w, -rc);
	return rc == 0;
}

static int do_link(struct sv_work *w)
{
	const struct sv_place *from = &w->place[0], *to = &w->place[1];
	int rc = sv_take(w, SV_LIMIT_FILES_CREATED);
	char self[32];

	if (rc < 0)
		return rc;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", from->fd);
	if (linkat(AT_FDCWD, self, to->parent, to->last, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	return 0;
}

void sv_do_link(struct sv_work *w)
{
	struct sv_place *from = &w->place[0], *to = &w->place[1];
	int moot, rc;

	if (w->in.flags & ~(uint64_t)(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return sv_fail_call(w, EINVAL);
	if (!pin_link(w, from, to))
		return;
	if (!allowed(w, SV_OP_CREATE, to, moot_link))
		return;
	moot = moot_link(w);
	if (moot)
		return sv_fail_call(w, moot);
	if (S_ISDIR(from->st.st_mode))	/* the kernel links none, and knows the errno */
		return sv_give_result(w, do_link(w));
	if (from->held && from->st.st_nlink != 0)
		return sv_refuse_why(w, EXDEV, "an object without a name");
	if (!from->held && !may_move(w, from, &from->st, to))
		return sv_refuse_why(w, EXDEV, looser);
	if (sv_still_valid(&w->t) < 0)
		return;
	/* no socket from outside gets the name that a bind has just made, and looks up again */
	pthread_rwlock_rdlock(&w->sh->names);
	rc = do_link(w);
	pthread_rwlock_unlock(&w->sh->names);
	sv_give_result(w, rc);
}
