/* trash.c - steered deletes: keep first, then let the kernel remove.
 *
 * The removal itself stays the kernel's, with its own checks and errno; what was
 * kept for one that failed is dropped again. Names change under the names' lock
 * only, so that what is kept is what is removed. */
#include "broker/trash.h"

#include "base/err.h"
#include "base/fd.h"
#include "broker/trash_item.h"
#include "effect/creds.h"
#include "effect/respond.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { ENTRY = 4096, NAME = 32 };	/* what a name costs at least */

struct sv_trash {
	int fd;
	atomic_ullong next;
	atomic_llong room;
	char path[SV_PATH_MAX];
};

static bool wanted(const struct sv_policy *p)
{
	uint32_t i;

	for (i = 0; i < p->nrules; i++)
		if (p->rules[i].dest_kind == SV_DEST_TRASH)
			return true;
	return false;
}

int sv_trash_open(struct sv_shared *sh, const char *path, int64_t room, struct sv_err *err)
{
	struct sv_trash *t;

	if (!wanted(sh->policy))
		return 0;
	if (!path || strlen(path) >= sizeof(t->path))
		return sv_fail(err, EINVAL, "trash", "the policy needs a folder for what is deleted");
	t = calloc(1, sizeof(*t));
	if (!t)
		return sv_fail(err, ENOMEM, "trash", "out of memory");
	sh->trash = t;
	strcpy(t->path, path);
	atomic_init(&t->next, 1);
	atomic_init(&t->room, room);
	t->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return t->fd < 0 ? sv_fail(err, errno, "trash", "%s: %s", path, strerror(errno)) : 0;
}

void sv_trash_close(struct sv_trash *t)
{
	if (t)
		sv_close_fd(&t->fd);
	free(t);
}

static void item_name(const struct sv_kept *k, char *buf)
{
	snprintf(buf, NAME, "%llu", k->item);
}

static void path_name(const struct sv_kept *k, char *buf)
{
	snprintf(buf, NAME, "%llu.path", k->item);
}

/* Takes room and a number for an object. The name is told first: an object
 * without one could not be given back. */
static int begin_item(struct sv_trash *t, const struct sv_place *at, const struct stat *st,
		      struct sv_kept *k)
{
	char name[NAME];

	k->size = ENTRY + (S_ISREG(st->st_mode) ? st->st_size : 0);
	if (atomic_fetch_sub(&t->room, k->size) < k->size) {
		atomic_fetch_add(&t->room, k->size);
		return -EDQUOT;
	}
	k->item = atomic_fetch_add(&t->next, 1);
	path_name(k, name);
	if (symlinkat(at->path, t->fd, name) == 0)
		return 0;
	atomic_fetch_add(&t->room, k->size);
	return -errno;
}

void sv_trash_drop(struct sv_trash *t, const struct sv_kept *k)
{
	char name[NAME];

	item_name(k, name);
	if (unlinkat(t->fd, name, 0) < 0 && errno == EISDIR)
		unlinkat(t->fd, name, AT_REMOVEDIR);
	path_name(k, name);
	unlinkat(t->fd, name, 0);
	atomic_fetch_add(&t->room, k->size);
}

static int pin_named(const struct sv_place *at, struct stat *st)
{
	int fd = openat(at->parent, at->last, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) < 0) {
		close(fd);
		return -errno;
	}
	return fd;
}

int sv_trash_keep(struct sv_work *w, const struct sv_place *at, struct sv_kept *k)
{
	struct sv_trash *t = w->sh->trash;
	struct stat st;
	cleanup_fd int fd = pin_named(at, &st);
	char name[NAME];
	int rc;

	if (fd < 0)
		return fd;
	rc = begin_item(t, at, &st, k);
	if (rc < 0)
		return rc;
	item_name(k, name);
	rc = S_ISDIR(st.st_mode) ? sv_item_folder(fd, &st, t->fd, name) :
				   sv_item_link(fd, t->fd, name);
	if (rc < 0)
		sv_trash_drop(t, k);
	return rc;
}

const char *sv_trash_reason(int err)
{
	if (err == EDQUOT)
		return "the trash is full: `supervise trash purge` makes room";
	if (err == EOPNOTSUPP)
		return "its attributes cannot be kept where the trash is";
	return NULL;
}

static void name_there(struct sv_work *w, const struct sv_kept *k)
{
	struct sv_place *there = &w->place[1];
	int n = snprintf(there->path, sizeof(there->path), "%s/%llu", w->sh->trash->path, k->item);

	there->len = n < (int)sizeof(there->path) ? n : (int)sizeof(there->path) - 1;
}

/* A name and the object that it meant when the call was judged. */
struct named {
	int fd;			/* owned: the object */
	int parent;		/* owned */
	struct stat st;
	char last[256];
};

/* A removal whose object must be copied first, on a side thread. */
struct copy {
	struct sv_shared *sh;
	uint64_t id;
	uint64_t flags;
	struct named gone;
	struct named mover;	/* what a rename puts there; parent -1 = no rename */
	struct sv_kept kept;
	bool has_creds;
	struct sv_creds creds;
};

static bool still_means(const struct named *n)
{
	struct stat now;

	return fstatat(n->parent, n->last, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       now.st_dev == n->st.st_dev && now.st_ino == n->st.st_ino;
}

static int remove_copied(const struct copy *c)
{
	const struct named *g = &c->gone, *m = &c->mover;
	const bool renames = m->parent >= 0;
	long rc;

	pthread_rwlock_wrlock(&c->sh->names);
	if (!still_means(g) || (renames && !still_means(m)))
		rc = -SV_RESTART;	/* ask again */
	else if (renames)
		rc = syscall(SYS_renameat2, m->parent, m->last, g->parent, g->last, c->flags);
	else
		rc = unlinkat(g->parent, g->last, (int)c->flags);
	if (rc == -1)
		rc = -errno;
	pthread_rwlock_unlock(&c->sh->names);
	return (int)rc;
}

static void free_copy(struct copy *c)
{
	sv_close_fd(&c->gone.fd);
	sv_close_fd(&c->gone.parent);
	sv_close_fd(&c->mover.fd);
	sv_close_fd(&c->mover.parent);
	free(c);
}

static void run_copy(void *arg)
{
	struct copy *c = arg;
	bool switched = false, wanted;
	char name[NAME];
	int rc = c->has_creds ? sv_creds_enter(&c->creds, &switched) : 0;

	item_name(&c->kept, name);
	if (rc == 0)
		rc = sv_item_copy(c->gone.fd, &c->gone.st, c->sh->trash->fd, name);
	wanted = sv_side_claim();
	if (rc == 0)
		rc = wanted ? remove_copied(c) : -EINTR;
	if (rc < 0)
		sv_trash_drop(c->sh->trash, &c->kept);
	if (switched)
		sv_creds_leave();
	if (wanted && rc == 0)
		sv_answer_value(c->sh->listener, c->id, 0);
	else if (wanted)
		sv_answer_errno(c->sh->listener, c->id, rc == -EINTR ? SV_RESTART : -rc);
	free_copy(c);
}

static int take_name(struct sv_place *p, struct named *n)
{
	if (strlen(p->last) >= sizeof(n->last))
		return -ENAMETOOLONG;
	strcpy(n->last, p->last);
	n->fd = pin_named(p, &n->st);
	n->parent = take_fd(&p->parent);
	return n->fd < 0 ? n->fd : 0;
}

/* -errno while nothing was begun; the job answers otherwise. */
static int begin_copy(struct sv_work *w, struct copy *c, bool renames)
{
	struct sv_place *gone = &w->place[renames];
	int rc = take_name(gone, &c->gone);

	if (rc == 0 && renames)
		rc = take_name(&w->place[0], &c->mover);
	c->has_creds = w->switched;
	if (rc == 0 && c->has_creds && sv_tracee_creds(&w->t, &c->creds) < 0)
		rc = -EACCES;
	if (rc == 0)
		rc = begin_item(w->sh->trash, gone, &c->gone.st, &c->kept);
	if (rc < 0)
		return rc;
	if (!renames)
		name_there(w, &c->kept);
	atomic_fetch_add_explicit(&w->sh->steered, 1, memory_order_relaxed);
	sv_tell(w, SV_EFFECT_BROKER, 0, (struct sv_str){ NULL, 0 });
	if (sv_side_run(w->sh->side, &w->call, run_copy, c) == 0)
		return 0;
	sv_trash_drop(w->sh->trash, &c->kept);
	return -ENFILE;
}

static void fail(struct sv_work *w, int err)
{
	const char *why = w->over ? NULL : sv_trash_reason(err);

	if (why)
		sv_refuse_why(w, err, why);
	else
		sv_fail_call(w, err);
}

static void copy_first(struct sv_work *w, bool renames)
{
	struct copy *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return sv_fail_call(w, ENOMEM);
	*c = (struct copy){ .sh = w->sh, .id = w->call.id, .flags = w->in.flags,
			    .gone = { .fd = -1, .parent = -1 },
			    .mover = { .fd = -1, .parent = -1 } };
	rc = sv_take(w, SV_LIMIT_FILES_DELETED);
	if (rc == 0)
		rc = begin_copy(w, c, renames);
	if (rc == 0)
		return;
	free_copy(c);
	fail(w, -rc);
}

void sv_trash_copy_and_rename(struct sv_work *w)
{
	copy_first(w, true);
}

void sv_trash_unlink(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];
	struct sv_kept k;
	int rc;

	if (sv_still_valid(&w->t) < 0)
		return;
	pthread_rwlock_wrlock(&w->sh->names);
	rc = sv_take_old(w, p, w->in.flags & AT_REMOVEDIR);
	if (rc == 0)
		rc = sv_trash_keep(w, p, &k);
	if (rc == 0) {
		rc = unlinkat(p->parent, p->last, (int)w->in.flags) < 0 ? -errno : 0;
		if (rc < 0)
			sv_trash_drop(w->sh->trash, &k);
		else
			name_there(w, &k);
	}
	pthread_rwlock_unlock(&w->sh->names);
	if (rc == -EXDEV)
		return copy_first(w, false);
	if (rc < 0)
		return fail(w, -rc);
	atomic_fetch_add_explicit(&w->sh->steered, 1, memory_order_relaxed);
	sv_give_value(w, 0);
}
