/* test_ipc.c - the table of System V objects: keys of the run's own, ids that must
 * be known again, its limit, threads, and that nothing stays. */
#include "check.h"

#include "ipc/objects.h"

#include <errno.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 200 };

static const enum sv_ipc_kind kinds[] = { SV_IPC_SHM, SV_IPC_SEM, SV_IPC_MSG };

static int raw_remove(enum sv_ipc_kind kind, int id)
{
	if (kind == SV_IPC_SHM)
		return shmctl(id, IPC_RMID, NULL);
	return kind == SV_IPC_SEM ? semctl(id, 0, IPC_RMID) : msgctl(id, IPC_RMID, NULL);
}

static int raw_get(enum sv_ipc_kind kind, key_t key, int flags)
{
	if (kind == SV_IPC_SHM)
		return shmget(key, 4, flags);
	return kind == SV_IPC_SEM ? semget(key, 4, flags) : msgget(key, flags);
}

/* Two runs and the outside have different objects under one key. */
static void test_keys(enum sv_ipc_kind kind)
{
	struct sv_ipc *a = sv_ipc_new(), *b = sv_ipc_new();
	const key_t key = 0x52000000 | (key_t)getpid();
	int out = raw_get(kind, key, IPC_CREAT | 0600), in, other;

	CHECK(a && b && out >= 0);
	CHECK(sv_ipc_get(a, kind, key, 4, 0) == -ENOENT);
	in = sv_ipc_get(a, kind, key, 4, IPC_CREAT | 0600);
	CHECK(in >= 0 && in != out);
	CHECK(sv_ipc_get(a, kind, key, 4, 0600) == in);
	CHECK(sv_ipc_get(a, kind, key, 4, IPC_CREAT | 0600) == in);
	CHECK(sv_ipc_get(a, kind, key, 4, IPC_CREAT | IPC_EXCL | 0600) == -EEXIST);
	CHECK(sv_ipc_get(b, kind, key, 4, 0) == -ENOENT);
	other = sv_ipc_get(b, kind, key, 4, IPC_CREAT | IPC_EXCL | 0600);
	CHECK(other >= 0 && other != in && other != out);
	CHECK(sv_ipc_get(a, kind, IPC_PRIVATE, 4, 0600) != sv_ipc_get(a, kind, IPC_PRIVATE, 4, 0600));

	CHECK(sv_ipc_check(a, kind, in) == 0);
	CHECK(sv_ipc_check(a, kind, other) == -EPERM);
	CHECK(sv_ipc_check(a, kind, out) == -EPERM);
	CHECK(sv_ipc_check(a, kind, -1) == -EINVAL);
	CHECK(sv_ipc_check(a, kind, 0x7ffffff0) == -EINVAL);

	sv_ipc_close(a);
	CHECK(raw_remove(kind, in) < 0 && errno == EINVAL);
	CHECK(sv_ipc_check(b, kind, other) == 0);
	sv_ipc_close(b);
	CHECK(raw_remove(kind, other) < 0 && errno == EINVAL);
	CHECK(raw_remove(kind, out) == 0);
}

/* Who removes an object gives its key back; what is gone is forgotten. */
static void test_removed(enum sv_ipc_kind kind)
{
	struct sv_ipc *t = sv_ipc_new();
	int id = sv_ipc_get(t, kind, 7, 4, IPC_CREAT | 0600), again;

	CHECK(raw_remove(kind, id) == 0);
	CHECK(sv_ipc_get(t, kind, 7, 4, 0) == -ENOENT);
	CHECK(sv_ipc_check(t, kind, id) == -EINVAL);
	again = sv_ipc_get(t, kind, 7, 4, IPC_CREAT | 0600);
	CHECK(again >= 0 && again != id && sv_ipc_check(t, kind, again) == 0);
	CHECK(sv_ipc_check(t, kind, id) == -EINVAL);
	sv_ipc_close(t);
}

/* Removed while it is attached it lives on by its id, and its key is free. */
static void test_dying(void)
{
	struct sv_ipc *t = sv_ipc_new();
	int id = sv_ipc_get(t, SV_IPC_SHM, 7, 4, IPC_CREAT | 0600), other;
	void *p = shmat(id, NULL, 0);

	CHECK(shmctl(id, IPC_RMID, NULL) == 0);
	CHECK(sv_ipc_check(t, SV_IPC_SHM, id) == 0);
	CHECK(sv_ipc_get(t, SV_IPC_SHM, 7, 4, 0) == -ENOENT);
	other = sv_ipc_get(t, SV_IPC_SHM, 7, 4, IPC_CREAT | 0600);
	CHECK(other >= 0 && other != id);
	CHECK(sv_ipc_check(t, SV_IPC_SHM, id) == 0);
	CHECK(sv_ipc_get(t, SV_IPC_SHM, 7, 4, 0600) == other);
	CHECK(shmdt(p) == 0);
	CHECK(sv_ipc_check(t, SV_IPC_SHM, id) == -EINVAL);
	CHECK(sv_ipc_check(t, SV_IPC_SHM, other) == 0);
	sv_ipc_close(t);
}

static void test_errnos(void)
{
	struct sv_ipc *t = sv_ipc_new();

	CHECK(sv_ipc_get(t, SV_IPC_SHM, IPC_PRIVATE, 0, 0600) == -EINVAL);
	CHECK(sv_ipc_get(t, SV_IPC_SEM, IPC_PRIVATE, 0, 0600) == -EINVAL);
	CHECK(sv_ipc_get(t, SV_IPC_SEM, 7, (uint64_t)-1, 0) == -EINVAL);
	CHECK(sv_ipc_get(t, SV_IPC_SHM, 7, 4096, IPC_CREAT | 0600) >= 0);
	CHECK(sv_ipc_get(t, SV_IPC_SHM, 7, 4097, 0600) == -EINVAL);
	CHECK(sv_ipc_get(t, SV_IPC_SHM, 7, 4097, IPC_CREAT | IPC_EXCL) == -EEXIST);
	CHECK(sv_ipc_get(t, SV_IPC_SEM, 7, 2, IPC_CREAT | 0600) >= 0);
	CHECK(sv_ipc_get(t, SV_IPC_SEM, 7, 1u << 20, IPC_CREAT | IPC_EXCL) == -EINVAL);
	sv_ipc_close(t);
}

/* What is gone makes room. */
static void test_limit(void)
{
	struct sv_ipc *t = sv_ipc_new();
	int ids[SV_IPC_MAX], i;

	for (i = 0; i < SV_IPC_MAX; i++) {
		ids[i] = sv_ipc_get(t, SV_IPC_MSG, i % 2 ? i : IPC_PRIVATE, 0, IPC_CREAT | 0600);
		CHECK(ids[i] >= 0);
	}
	CHECK(sv_ipc_get(t, SV_IPC_MSG, IPC_PRIVATE, 0, 0600) == -ENOSPC);
	CHECK(sv_ipc_get(t, SV_IPC_MSG, 5000, 0, 0600) == -ENOENT);
	CHECK(sv_ipc_get(t, SV_IPC_MSG, 5000, 0, IPC_CREAT | 0600) == -ENOSPC);
	CHECK(sv_ipc_get(t, SV_IPC_MSG, 9, 0, IPC_CREAT | 0600) == ids[9]);
	CHECK(sv_ipc_get(t, SV_IPC_SEM, 9, 1, IPC_CREAT | 0600) >= 0);
	for (i = 0; i < SV_IPC_MAX; i += 3)
		CHECK(msgctl(ids[i], IPC_RMID, NULL) == 0);
	for (i = 0; i < SV_IPC_MAX; i += 3)
		CHECK(sv_ipc_get(t, SV_IPC_MSG, IPC_PRIVATE, 0, 0600) >= 0);
	CHECK(sv_ipc_get(t, SV_IPC_MSG, IPC_PRIVATE, 0, 0600) == -ENOSPC);
	for (i = 0; i < SV_IPC_MAX; i++)
		CHECK(sv_ipc_check(t, SV_IPC_MSG, ids[i]) == (i % 3 ? 0 : -EINVAL));
	sv_ipc_close(t);
	for (i = 0; i < SV_IPC_MAX; i++)
		CHECK(msgctl(ids[i], IPC_RMID, NULL) < 0);
}

static void *worker(void *arg)
{
	struct sv_ipc *t = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		enum sv_ipc_kind kind = kinds[i % 3];
		int id = sv_ipc_get(t, kind, 1 + i % 5, 4, IPC_CREAT | 0600);
		int own = sv_ipc_get(t, kind, IPC_PRIVATE, 4, 0600);

		if (id < 0 || own < 0 || sv_ipc_check(t, kind, own) < 0)
			return t;
		raw_remove(kind, own);
		if (i % 7 == 0)
			raw_remove(kind, id);
	}
	return NULL;
}

static void test_threads(void)
{
	struct sv_ipc *t = sv_ipc_new();
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, worker, t) == 0);
	for (i = 0; i < THREADS; i++) {
		void *failed = NULL;

		pthread_join(threads[i], &failed);
		CHECK(!failed);
	}
	sv_ipc_close(t);
}

/* A child makes objects and dies; the parent removes them. */
static void test_shared(void)
{
	struct sv_ipc *t = sv_ipc_new();
	int p[2], id = -1, st;
	pid_t pid;

	CHECK(pipe(p) == 0);
	pid = fork();
	if (pid == 0) {
		id = sv_ipc_get(t, SV_IPC_SEM, 3, 1, IPC_CREAT | 0600);
		_exit(write(p[1], &id, sizeof(id)) != sizeof(id));
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	CHECK(read(p[0], &id, sizeof(id)) == sizeof(id) && id >= 0);
	CHECK(semctl(id, 0, GETVAL) == 0);
	sv_ipc_clear(t);
	CHECK(semctl(id, 0, GETVAL) < 0 && errno == EINVAL);
	sv_ipc_close(t);
	close(p[0]);
	close(p[1]);
}

int main(void)
{
	size_t i;

	if (msgctl(0, IPC_INFO, NULL) < 0 && errno == ENOSYS) {
		printf("this kernel has no System V objects\n");
		return 77;
	}
	for (i = 0; i < 3; i++) {
		test_keys(kinds[i]);
		test_removed(kinds[i]);
	}
	test_dying();
	test_errnos();
	test_limit();
	test_threads();
	test_shared();
	return check_end();
}
