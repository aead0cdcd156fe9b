/* tree.c - renames and hard links in the tree that a rule's writes go to. */
#include "broker/tree.h"

#include "base/fd.h"
#include "broker/shadow.h"
#include "broker/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { NOREPLACE = 1, EXCHANGE = 2 };

/* A name where it was asked for, and where it lies in the tree. */
struct end {
	const struct sv_place *asked;
	struct sv_match match;	/* the steer */
	bool original;		/* the original has it, too */
	bool plain;		/* asked for by its true path in the other end's tree: */
	char alias[SV_PATH_MAX];	/*   the name that would be steered there */
	struct stat st;		/* of the original's */
	struct sv_place there;	/* parent owned */
};

static struct sv_str path_of(const struct sv_place *p)
{
	return (struct sv_str){ (const uint8_t *)p->path, (size_t)p->len };
}

int sv_tree_pin(struct sv_work *w, int i, bool *missing)
{
	int rc = sv_pin_parent(&w->paths, &w->t, &w->in.name[i], 0, &w->place[i]);

	*missing = false;
	if (rc != -ENOENT || !w->sh->steers || w->sh->observe)
		return rc;
	sv_place_close(&w->place[i]);
	*missing = true;
	return sv_pin_missing(&w->paths, &w->t, &w->in.name[i], &w->place[i]);
}

static void look_at_original(struct end *e, const struct sv_place *p, bool missing)
{
	char name[SV_PATH_MAX];

	e->asked = p;
	e->plain = false;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(p->last, "/"), p->last);
	e->original = !missing && fstatat(p->parent, name, &e->st, AT_SYMLINK_NOFOLLOW) == 0;
	sv_place_init(&e->there);
}

static int go_plainly(struct end *e)
{
	const struct sv_place *p = e->asked;

	e->there.parent = fcntl(p->parent, F_DUPFD_CLOEXEC, 3);
	if (e->there.parent < 0)
		return -errno;
	memcpy(e->there.path, p->path, sizeof(p->path));
	memcpy(e->there.last, p->last, sizeof(p->last));
	e->there.len = p->len;
	e->there.slash = p->slash;
	return 0;
}

/* Opens the folder in the tree and joins the name's true path there. 0 or -errno. */
static int go_there(struct sv_work *w, struct end *e)
{
	cleanup_fd int folder = -1;
	int dir, rc;

	if (e->plain)
		return go_plainly(e);
	w->match = e->match;
	folder = sv_steer_folder(w, e->asked, e->there.last);
	if (folder < 0)
		return folder;
	dir = openat(folder, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)	/* it may not be searched */
		return -errno;
	e->there.slash = e->asked->slash;
	rc = sv_place_adopt(&w->paths, &w->t, dir, false, &e->there);
	e->there.parent = take_fd(&e->there.fd);
	if (rc == 0 && sv_place_is_dots(&e->there))
		rc = -EBUSY;	/* the tree's own folder */
	return rc < 0 ? rc : sv_place_join(&e->there);
}

static bool exists_there(const struct end *e, struct stat *st)
{
	char name[SV_PATH_MAX];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(e->there.last, "/"), e->there.last);
	return fstatat(e->there.parent, name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

static struct sv_str name_of(const struct end *e)
{
	if (e->plain)
		return (struct sv_str){ (const uint8_t *)e->alias, strlen(e->alias) };
	return path_of(e->asked);
}

/* Both by the names that are steered and by the true ones. */
static bool may_move(struct sv_work *w, const struct end *a, const struct end *b, bool folder)
{
	const struct sv_policy *p = w->sh->policy;
	const uint32_t in = sv_blocks_in(w);

	return sv_match_may_move(p, in, name_of(a), name_of(b), folder) &&
	       sv_match_may_move(p, in, path_of(&a->there), path_of(&b->there), folder);
}

/* What the original at the new name says to a file or folder that would cover it. */
static int covers(const struct end *b, uint32_t flags, bool folder)
{
	if (!b->original)
		return 0;
	if (flags)
		return flags & NOREPLACE ? EEXIST : EXDEV;
	if (S_ISDIR(b->st.st_mode))
		return folder ? EXDEV : EISDIR;
	if (folder)
		return ENOTDIR;
	return S_ISLNK(b->st.st_mode) ? EPERM : 0;
}

/* What is asked for by its true path needs rules that allow it; of what was steered there,
 * what no rule speaks of was decided. */
static bool refused_there(struct sv_work *w, const struct end *e, uint32_t ops, uint32_t plain_ops)
{
	if (e->plain) {
		if (sv_decide_call(w, SV_OP_RENAME, e->asked) &&
		    (plain_ops == SV_OP_RENAME || sv_decide_call(w, plain_ops, e->asked) ||
		     w->match.action == SV_STEER))
			return false;	/* a steered delete is kept */
		if (w->match.action == SV_STEER)
			w->match = (struct sv_match){ .action = SV_DENY, .rule = w->match.rule, .err = EXDEV };
		return true;
	}
	w->match = e->match;
	return sv_steer_denied(w, e->there.parent, e->there.last, ops);
}

static int rename_there(struct sv_work *w, const struct end *a, const struct end *b, uint32_t flags)
{
	return sv_take_and_rename(w, a->there.parent, a->there.last, b->there.parent, b->there.last,
				  flags);
}

/* What stands at the new name goes to the trash first, where a rule says so. */
static int replace(struct sv_work *w, const struct end *a, const struct end *b, uint32_t flags)
{
	struct stat x, y;
	struct sv_kept k;
	int rc;

	if (flags || !exists_there(a, &x) || !exists_there(b, &y) ||
	    (x.st_dev == y.st_dev && x.st_ino == y.st_ino))
		return rename_there(w, a, b, flags);
	if (!sv_shadow_kept(w, name_of(b)) && !sv_shadow_kept(w, path_of(&b->there)))
		return rename_there(w, a, b, 0);
	rc = sv_trash_keep(w, &b->there, &k);
	if (rc < 0)
		return rc;
	rc = rename_there(w, a, b, 0);
	if (rc < 0)
		sv_trash_drop(w->sh->trash, &k);
	return rc;
}

/* With the names' lock held. 0, or -errno: -EDOM = w->match is a rule that denies it. */
static int move(struct sv_work *w, struct end *a, struct end *b, uint32_t flags)
{
	struct stat st, over;
	bool folder, replaces;
	uint32_t gone;
	int rc = go_there(w, a);

	if (rc == 0)
		rc = go_there(w, b);
	if (rc < 0)
		return rc;
	if (!exists_there(a, &st))
		return -ENOENT;
	folder = S_ISDIR(st.st_mode);
	replaces = exists_there(b, &over);
	rc = covers(b, flags, folder);
	if (rc)
		return -rc;
	gone = SV_OP_RENAME | (replaces && !(flags & EXCHANGE) ? SV_OP_DELETE : 0);
	if (refused_there(w, a, SV_OP_RENAME | SV_OP_DELETE, SV_OP_RENAME) ||
	    refused_there(w, b, SV_OP_CREATE | SV_OP_WRITE | gone, gone))
		return -EDOM;
	w->match = b->match;
	if (!may_move(w, a, b, folder) ||
	    (flags & EXCHANGE && !may_move(w, b, a, replaces && S_ISDIR(over.st_mode))))
		return -EXDEV;
	if (sv_still_valid(&w->t) < 0)
		return -ESRCH;
	return replace(w, a, b, flags);
}

static void carry_out(struct sv_work *w, struct end *a, struct end *b)
{
	int rc;

	pthread_rwlock_wrlock(&w->sh->names);
	rc = move(w, a, b, (uint32_t)w->in.flags);
	pthread_rwlock_unlock(&w->sh->names);
	sv_place_close(&a->there);
	sv_place_close(&b->there);
	if (rc == -EDOM)
		return sv_refuse(w);
	w->match = b->match;
	if (rc == -EPERM && b->original && S_ISLNK(b->st.st_mode))
		return sv_refuse_why(w, EPERM, "the original has a link of this name, which would "
					       "still be followed");
	if (rc == 0)
		atomic_fetch_add_explicit(&w->sh->steered, 1, memory_order_relaxed);
	sv_give_result(w, rc);
}

/* Do the rules about the two names let it go on? False = refused and answered. */
static bool decided(struct sv_work *w, const struct end *a, struct end *b)
{
	const uint32_t gone = b->original ? SV_OP_DELETE : 0;

	if ((!a->plain && sv_shadow_refused(w, path_of(a->asked), SV_OP_RENAME | SV_OP_DELETE)) ||
	    (!b->plain && sv_shadow_refused(w, path_of(b->asked), SV_OP_RENAME | gone))) {
		sv_refuse(w);
		return false;
	}
	if (b->match.action == SV_DENY) {
		w->match = b->match;
		sv_refuse(w);
		return false;
	}
	return true;
}

/* One end is asked for by its true path in the tree that the other end is steered to. */
static bool is_plain(const struct sv_work *w, struct end *e, const struct end *steered)
{
	const struct sv_place *p = e->asked, *s = steered->asked;
	int n = sv_shadow_below(w, steered->match.rule, p), k = steered->match.prefix;

	while (k > 0 && s->path[k - 1] == '/')
		k--;
	if (!n || k + 1 + p->len - n >= (int)sizeof(e->alias))
		return false;
	snprintf(e->alias, sizeof(e->alias), "%.*s/%s", k, s->path, p->path + n);
	e->match = steered->match;
	e->plain = true;
	return true;
}

/* The source is not in the tree. The kernel finds both folders before it looks for it. */
static int not_there(struct sv_work *w, struct end *a, struct end *b, int found)
{
	int rc;

	if (a->original)
		return -EXDEV;
	if (sv_shadow_fails(found))
		return found;
	sv_match_path_in(w->sh->policy, sv_blocks_in(w), path_of(a->asked), SV_OP_WRITE, &a->match);
	rc = sv_steer_goes_to_tree(w, &a->match) ? go_there(w, a) : 0;
	if (rc == 0)
		rc = go_there(w, b);
	sv_place_close(&a->there);
	sv_place_close(&b->there);
	return rc < 0 ? rc : -ENOENT;
}

/* Both ends are known, and one of them at least is steered. */
static void rename_ends(struct sv_work *w, struct end *a, struct end *b, int found)
{
	const bool there = found >= 0 || a->plain;

	a->original = a->original && !a->plain && !sv_shadow_only(w, a->asked);
	b->original = b->original && !b->plain && !sv_shadow_only(w, b->asked);
	if (!decided(w, a, b))
		return;
	if (!there) {
		found = not_there(w, a, b, found);
		w->match = b->match;
		sv_fail_call(w, -found);
	} else if (b->match.action != SV_STEER || a->match.rule != b->match.rule || a->original) {
		w->match = a->match;
		sv_fail_call(w, EXDEV);
	} else {
		carry_out(w, a, b);
	}
}

bool sv_tree_rename(struct sv_work *w, const bool missing[2])
{
	struct end a, b;
	cleanup_fd int found = -1;
	bool steered;

	if (!w->sh->steers || w->sh->observe)
		return false;
	look_at_original(&a, &w->place[0], missing[0]);
	look_at_original(&b, &w->place[1], missing[1]);
	found = sv_shadow(w, &w->place[0]);
	a.match = w->match;
	sv_match_path_in(w->sh->policy, sv_blocks_in(w), path_of(b.asked), SV_OP_CREATE | SV_OP_WRITE,
			 &b.match);
	steered = sv_steer_goes_to_tree(w, &b.match);
	if (!steered && (found < 0 || missing[1])) {
		w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
		return false;
	}
	if (!steered)
		is_plain(w, &b, &a);
	else if (found < 0 && !missing[0])
		is_plain(w, &a, &b);
	rename_ends(w, &a, &b, found);
	return true;
}

/* What may be looser under the new name: by the name it was called or found by, and by
 * its true one. */
static bool may_link(struct sv_work *w, const struct sv_place *from, const char *called,
		     const struct end *to)
{
	const struct sv_policy *p = w->sh->policy;
	const uint32_t in = sv_blocks_in(w);
	const struct sv_str name = { (const uint8_t *)called, called ? strlen(called) : 0 };

	return sv_match_may_move(p, in, called ? name : path_of(from), path_of(to->asked), false) &&
	       sv_match_may_move(p, in, path_of(from), path_of(&to->there), false);
}

static int link_there(struct sv_work *w, const char *called, struct end *to)
{
	const struct sv_place *from = &w->place[0];
	struct stat st;
	char self[32];
	int rc;

	rc = go_there(w, to);
	if (rc < 0)
		return rc;
	if (refused_there(w, to, SV_OP_CREATE, 0))
		return -EDOM;
	if (exists_there(to, &st))
		return -EEXIST;
	if (!sv_shadow_below(w, to->match.rule, from) || !may_link(w, from, called, to))
		return S_ISDIR(from->st.st_mode) ? -EPERM : -EXDEV;
	if (sv_still_valid(&w->t) < 0)
		return -ESRCH;
	rc = sv_take(w, SV_LIMIT_FILES_CREATED);
	if (rc < 0)
		return rc;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", from->fd);
	return linkat(AT_FDCWD, self, to->there.parent, to->there.last, AT_SYMLINK_FOLLOW) < 0 ?
		       -errno : 0;
}

bool sv_tree_link(struct sv_work *w, const char *called, bool missing)
{
	struct end to;
	int rc;

	if (!w->sh->steers || w->sh->observe)
		return false;
	look_at_original(&to, &w->place[1], missing);
	w->ops |= SV_OP_CREATE;
	sv_match_path_in(w->sh->policy, sv_blocks_in(w), path_of(to.asked), SV_OP_CREATE, &to.match);
	if (!sv_steer_goes_to_tree(w, &to.match)) {
		w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
		if (called && to.match.action == SV_ALLOW)
			sv_fail_call(w, EXDEV);
		return called && to.match.action == SV_ALLOW;
	}
	if (to.original && !sv_shadow_only(w, to.asked))
		rc = -EEXIST;
	else
		rc = link_there(w, called, &to);
	sv_place_close(&to.there);
	if (rc != -EDOM)
		w->match = to.match;
	if (rc == -EDOM)
		sv_refuse(w);
	else
		sv_give_result(w, rc);
	return true;
}
