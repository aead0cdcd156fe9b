/* objects.c - keys of the run made random ones, and ids known again. */
#include "ipc/objects.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KINDS = 3, TRIES = 8 };

struct object {
	key_t key;		/* the run's; IPC_PRIVATE = it can no longer be asked for */
	key_t real;		/* the kernel's */
	int id;			/* -1 = being made */
};

struct objects {
	int n;
	struct object v[SV_IPC_MAX];
};

struct sv_ipc {
	pthread_mutex_t lock;
	struct objects of[KINDS];
};

/* What the kernel has in the slot of an id. */
struct facts {
	int id;
	key_t key;
	uid_t maker;
	bool mine;		/* shared memory made by this process */
	bool dying;		/* removed, but still attached: it lost its key */
};

union semun {
	struct semid_ds *buf;
};

static int kernel_get(enum sv_ipc_kind kind, key_t key, uint64_t arg, int flags)
{
	int rc;

	if (kind == SV_IPC_SHM)
		rc = shmget(key, (size_t)arg, flags);
	else if (kind == SV_IPC_SEM)
		rc = semget(key, (int)arg, flags);
	else
		rc = msgget(key, flags);
	return rc < 0 ? -errno : rc;
}

static int kernel_remove(enum sv_ipc_kind kind, int id)
{
	int rc;

	if (kind == SV_IPC_SHM)
		rc = shmctl(id, IPC_RMID, NULL);
	else if (kind == SV_IPC_SEM)
		rc = semctl(id, 0, IPC_RMID);
	else
		rc = msgctl(id, IPC_RMID, NULL);
	return rc < 0 ? -errno : 0;
}

/* *_STAT_ANY takes an id for its slot, asks for no permission, and returns the
 * id of what is there. */
static int look(enum sv_ipc_kind kind, int id, struct facts *f)
{
	struct shmid_ds shm = { .shm_nattch = 0 };
	struct semid_ds sem = { .sem_nsems = 0 };
	struct msqid_ds msg = { .msg_qnum = 0 };
	const struct ipc_perm *perm = &msg.msg_perm;

	if (kind == SV_IPC_SHM) {
		f->id = shmctl(id, SHM_STAT_ANY, &shm);
		perm = &shm.shm_perm;
	} else if (kind == SV_IPC_SEM) {
		f->id = semctl(id, 0, SEM_STAT_ANY, (union semun){ .buf = &sem });
		perm = &sem.sem_perm;
	} else {
		f->id = msgctl(id, MSG_STAT_ANY, &msg);
	}
	if (f->id < 0)	/* EIDRM: it goes while we look */
		return errno == EIDRM ? -EINVAL : -errno;
	f->key = perm->__key;
	f->maker = perm->cuid;
	f->mine = kind == SV_IPC_SHM && shm.shm_cpid == getpid();
	f->dying = kind == SV_IPC_SHM && perm->mode & SHM_DEST;
	return 0;
}

static bool is_it(const struct object *o, const struct facts *f)
{
	return f->id == o->id && (f->key == o->real || (f->dying && f->mine));
}

/* Never 0, which is IPC_PRIVATE; 0 = no random bytes. */
static key_t random_key(void)
{
	key_t key = 0;
	int i;

	for (i = 0; i < TRIES && key == 0; i++)
		if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
			return 0;
	return key;
}

static void drop(struct objects *all, int i)
{
	all->v[i] = all->v[--all->n];
}

/* Forgets what is gone, and which key it had that was removed. *at = the object
 * that has the key now, -1 = none. */
static void sweep(enum sv_ipc_kind kind, struct objects *all, key_t key, bool whole, int *at)
{
	struct facts f;
	int rc, i;

	*at = -1;
	for (i = all->n - 1; i >= 0; i--) {
		struct object *o = &all->v[i];

		if (!whole && o->key != key)
			continue;
		rc = look(kind, o->id, &f);
		if (rc < 0 && rc != -EINVAL)
			continue;
		if (rc < 0 || !is_it(o, &f)) {
			drop(all, i);
			/* what moved here was looked at before */
			if (*at == all->n)
				*at = i;
		} else if (f.key != o->real) {
			o->key = IPC_PRIVATE;
		} else if (key != IPC_PRIVATE && o->key == key) {
			*at = i;
		}
	}
}

/* What the kernel says of a key that nothing has. */
static int ask_missing(enum sv_ipc_kind kind, uint64_t arg, int flags)
{
	const key_t key = random_key();
	int rc = -ENOSPC;

	if (key != IPC_PRIVATE)
		rc = kernel_get(kind, key, arg, flags & ~(IPC_CREAT | IPC_EXCL));
	return rc < 0 ? rc : -ENOENT;
}

static int make(enum sv_ipc_kind kind, struct objects *all, key_t key, uint64_t arg, int flags)
{
	struct object *o = &all->v[all->n];
	int rc = -EEXIST, i;

	/* known before it is made: the guardian may have to remove it */
	*o = (struct object){ .key = key, .id = -1 };
	for (i = 0; i < TRIES && rc == -EEXIST; i++) {
		o->real = random_key();
		if (o->real == IPC_PRIVATE)
			return -ENOSPC;
		__atomic_store_n(&all->n, (int)(o - all->v) + 1, __ATOMIC_RELEASE);
		rc = kernel_get(kind, o->real, arg, flags | IPC_CREAT | IPC_EXCL);
	}
	if (rc < 0)
		all->n--;
	else
		o->id = rc;
	return rc;
}

static int get_missing(enum sv_ipc_kind kind, struct objects *all, key_t key, uint64_t arg,
		       int flags)
{
	int at;

	if (key != IPC_PRIVATE && !(flags & IPC_CREAT))
		return ask_missing(kind, arg, flags);
	if (all->n == SV_IPC_MAX)
		sweep(kind, all, key, true, &at);
	return all->n < SV_IPC_MAX ? make(kind, all, key, arg, flags) : -ENOSPC;
}

/* The kernel decides about size, number and permissions, but makes nothing. */
static int get_existing(enum sv_ipc_kind kind, const struct object *o, uint64_t arg, int flags)
{
	int rc;

	if ((flags & (IPC_CREAT | IPC_EXCL)) == (IPC_CREAT | IPC_EXCL)) {
		rc = ask_missing(kind, arg, flags);
		return rc == -ENOENT ? -EEXIST : rc;
	}
	rc = kernel_get(kind, o->real, arg, flags & ~IPC_CREAT);
	return rc >= 0 && rc != o->id ? -EACCES : rc;
}

int sv_ipc_get(struct sv_ipc *t, enum sv_ipc_kind kind, key_t key, uint64_t arg, int flags)
{
	struct objects *all = &t->of[kind];
	int at = -1, rc, i;

	pthread_mutex_lock(&t->lock);
	for (i = 0, rc = -ENOENT; i < TRIES && rc == -ENOENT; i++) {
		if (key != IPC_PRIVATE)
			sweep(kind, all, key, false, &at);
		rc = at < 0 ? get_missing(kind, all, key, arg, flags) :
			      get_existing(kind, &all->v[at], arg, flags);
		/* ENOENT of an object that was there: removed just now */
		if (at < 0 || !(flags & IPC_CREAT))
			break;
	}
	pthread_mutex_unlock(&t->lock);
	return rc;
}

int sv_ipc_check(struct sv_ipc *t, enum sv_ipc_kind kind, int id)
{
	struct objects *all = &t->of[kind];
	struct facts f;
	bool is_gone;
	int rc, i;

	if (id < 0)
		return -EINVAL;
	pthread_mutex_lock(&t->lock);
	rc = look(kind, id, &f);
	for (i = 0; i < all->n && all->v[i].id != id; i++)
		;
	is_gone = rc == -EINVAL;
	if (rc == 0 && (i == all->n || !is_it(&all->v[i], &f))) {
		rc = f.id == id ? -EPERM : -EINVAL;
		is_gone = true;
	}
	if (is_gone && i < all->n)
		drop(all, i);
	pthread_mutex_unlock(&t->lock);
	return rc == -EACCES ? -EPERM : rc;
}

/* Without CAP_SYS_ADMIN even root removes only what is its own. */
static void remove_as(enum sv_ipc_kind kind, int id, uid_t maker)
{
	const uid_t own = geteuid();

	if (syscall(SYS_setresuid, -1, maker, -1) < 0)
		return;
	kernel_remove(kind, id);
	if (syscall(SYS_setresuid, -1, own, -1) < 0)
		abort();
}

static void clear_kind(enum sv_ipc_kind kind, struct objects *all)
{
	struct facts f;

	while (all->n > 0) {
		const struct object *o = &all->v[--all->n];
		/* by its key: the id may not be known yet, and may be another's by now */
		const int id = kernel_get(kind, o->real, 0, 0);

		if (id < 0 || (o->id >= 0 && o->id != id))
			continue;
		if (kernel_remove(kind, id) == -EPERM && look(kind, id, &f) == 0)
			remove_as(kind, id, f.maker);
	}
}

struct sv_ipc *sv_ipc_new(void)
{
	struct sv_ipc *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void sv_ipc_clear(struct sv_ipc *t)
{
	clear_kind(SV_IPC_SHM, &t->of[SV_IPC_SHM]);
	clear_kind(SV_IPC_SEM, &t->of[SV_IPC_SEM]);
	clear_kind(SV_IPC_MSG, &t->of[SV_IPC_MSG]);
}

void sv_ipc_close(struct sv_ipc *t)
{
	if (!t)
		return;
	sv_ipc_clear(t);
	munmap(t, sizeof(*t));
}
