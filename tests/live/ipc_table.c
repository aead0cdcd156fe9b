/* ipc_table.c - System V objects, one line a call or a fact: keys, sizes, flags and
 * permissions; commands; semaphores, messages and segments between processes. Ids and
 * keys are not shown, as they differ from run to run.
 *
 * usage: ipc_table FOLDER   (not used) */
#include "table.h"

#include <limits.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>

enum { SHM, SEM, MSG };

static const char *const kinds[] = { "shm", "sem", "msg" };
static const int get_call[] = { SYS_shmget, SYS_semget, SYS_msgget };
static const int ctl_call[] = { SYS_shmctl, SYS_semctl, SYS_msgctl };
static key_t own_key;

static long get(int kind, key_t key, long arg, int flags)
{
	if (kind == MSG)
		return syscall(SYS_msgget, key, flags);
	return syscall(get_call[kind], key, arg, flags);
}

static long ctl(int kind, int id, int cmd, void *arg)
{
	if (kind == SEM)
		return syscall(SYS_semctl, id, 0, cmd, arg);
	return syscall(ctl_call[kind], id, cmd, arg);
}

static long removed(int kind, int id)
{
	return ctl(kind, id, IPC_RMID, NULL);
}

static void say(const char *part, const char *what, long rc)
{
	const int err = errno;

	if (rc < 0)
		printf("%s\t%s\t%s\n", part, what, err_name(err));
	else
		printf("%s\t%s\t%ld\n", part, what, rc);
}

static void say_id(const char *part, const char *what, long rc, long expected)
{
	say(part, what, rc < 0 ? rc : rc == expected);
}

static const long sizes[] = { 0, 1, 4, 5, 4096, 4097, 1 << 20, -1, LONG_MIN, LONG_MAX, 1L << 32 };
static const int flag_sets[] = { 0, 0600, IPC_CREAT, IPC_CREAT | 0600, IPC_CREAT | IPC_EXCL | 0600,
				 IPC_EXCL | 0600, 0777, IPC_CREAT | 0777, 0022, 0200 };

/* Every size and flag on a key that is missing, one that is there, and none. */
static void lookups(int kind, long there, int mode)
{
	char what[96];
	size_t i, k;

	for (i = 0; i < COUNT(sizes); i++) {
		for (k = 0; k < COUNT(flag_sets); k++) {
			long id = -1, rc;

			if (there >= 0)
				id = get(kind, own_key, there, mode | IPC_CREAT);
			rc = get(kind, own_key, sizes[i], flag_sets[k]);
			snprintf(what, sizeof(what), "there %ld %o, size %ld, flags %o", there, mode,
				 sizes[i], flag_sets[k]);
			say_id(kinds[kind], what, rc, id);
			if (rc >= 0 && rc != id)
				say("  remove", what, removed(kind, (int)rc));
			rc = get(kind, IPC_PRIVATE, sizes[i], flag_sets[k]);
			say_id(kinds[kind], "private", rc, id);
			if (rc >= 0)
				removed(kind, (int)rc);
			if (id >= 0)
				say("  remove", "own", removed(kind, (int)id));
		}
		if (kind == MSG)
			break;
	}
}

static void say_perm(const char *part, const struct ipc_perm *p)
{
	printf("%s\tperm\t%u.%u %u.%u %o\n", part, p->uid, p->gid, p->cuid, p->cgid, p->mode);
}

static bool now(time_t t)
{
	const time_t n = time(NULL);

	return t >= n - 5 && t <= n + 1;
}

static void stats(void)
{
	struct shmid_ds shm;
	struct semid_ds sem;
	struct msqid_ds msg;
	int id = (int)get(SHM, own_key, 5000, IPC_CREAT | 0640);

	say("stat", "shm", ctl(SHM, id, IPC_STAT, &shm));
	say_perm("stat", &shm.shm_perm);
	printf("stat\tshm\t%zu %lu %d %d %d %d\n", shm.shm_segsz, (long)shm.shm_nattch, now(shm.shm_ctime),
	       now(shm.shm_atime), now(shm.shm_dtime), shm.shm_lpid);
	shm.shm_perm.mode = 0123;
	say("stat", "shm set", ctl(SHM, id, IPC_SET, &shm));
	say("stat", "shm again", ctl(SHM, id, IPC_STAT, &shm));
	if (geteuid() == 0)
		say_perm("stat", &shm.shm_perm);
	say("stat", "gone", removed(SHM, id));
	say("stat", "gone again", removed(SHM, id));

	id = (int)get(SEM, own_key, 7, IPC_CREAT | 0604);
	say("stat", "sem", ctl(SEM, id, IPC_STAT, &sem));
	say_perm("stat", &sem.sem_perm);
	printf("stat\tsem\t%lu %d %d\n", (long)sem.sem_nsems, now(sem.sem_ctime), now(sem.sem_otime));
	say("stat", "gone", removed(SEM, id));

	id = (int)get(MSG, own_key, 0, IPC_CREAT | 0666);
	say("stat", "msg", ctl(MSG, id, IPC_STAT, &msg));
	say_perm("stat", &msg.msg_perm);
	printf("stat\tmsg\t%lu %lu %d %d\n", (long)msg.msg_qnum, (long)msg.msg_qbytes, now(msg.msg_ctime),
	       now(msg.msg_stime));
	msg.msg_qbytes = 100;
	say("stat", "msg set", ctl(MSG, id, IPC_SET, &msg));
	say("stat", "msg set", ctl(MSG, id, IPC_SET, NULL));
	say("stat", "gone", removed(MSG, id));
}

/* Those that count or list what the whole machine has are refused on purpose. */
static bool machine_wide(int kind, int cmd)
{
	if (kind == SHM)
		return cmd >= SHM_STAT && cmd <= 15;
	return kind == SEM ? cmd >= SEM_STAT && cmd <= 20 : cmd >= MSG_STAT && cmd <= 13;
}

static void commands(int kind)
{
	static char buf[4096];
	char what[64];
	int cmd, which;

	for (cmd = -1; cmd < 30; cmd++) {
		for (which = 0; which < 5; which++) {
			const int id = (int)get(kind, IPC_PRIVATE, 3, 0600);
			const int used[] = { id, id, -1, 0x7ffffff0, id };
			void *arg = which == 1 ? NULL : which == 4 ? (void *)-1L : buf;
			long rc;

			if (machine_wide(kind, cmd)) {
				removed(kind, id);
				continue;
			}
			memset(buf, 0, sizeof(buf));
			rc = ctl(kind, used[which], cmd, arg);
			snprintf(what, sizeof(what), "command %d case %d", cmd, which);
			say(kinds[kind], what, cmd == IPC_INFO && rc >= 0 ? 0 : rc);
			if (cmd != IPC_RMID || removed(kind, id) >= 0 || errno != EINVAL)
				removed(kind, id);
		}
	}
}

static pid_t child_that(void (*work)(int), int id)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		work(id);
		fflush(stdout);
		_exit(0);
	}
	return pid;
}

static void await(pid_t pid)
{
	int st;

	waitpid(pid, &st, 0);
	if (st)
		printf("child\tended\t%d\n", st);
}

static long sem_do(int id, int num, int op, int flags)
{
	struct sembuf b = { (unsigned short)num, (short)op, (short)flags };

	return syscall(SYS_semop, id, &b, 1UL);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void interruptible(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &sa, NULL);
}

static void sem_wait_zero(int id)
{
	interruptible();
	say("child", "waits", sem_do(id, 0, 0, 0));
}

static void sem_take(int id)
{
	interruptible();
	say("child", "takes", sem_do(id, 0, -5, 0));
}

static void sem_undo(int id)
{
	say("child", "undo", sem_do(id, 1, 3, SEM_UNDO));
	say("child", "value", ctl(SEM, id, GETVAL, NULL));
}

/* Until so many wait for it. */
static void await_waiters(int id, int cmd)
{
	const struct timespec nap = { 0, 2000000 };
	int i;

	for (i = 0; i < 2000 && syscall(SYS_semctl, id, 0, cmd, NULL) < 1; i++)
		nanosleep(&nap, NULL);
	if (i == 2000)
		printf("nobody waits\n");
}

static void semaphores(void)
{
	struct sembuf many[600] = { 0 };
	struct timespec soon = { 0, 1000000 }, odd = { 0, -1 };
	int id = (int)get(SEM, IPC_PRIVATE, 2, 0600);
	pid_t pid;

	say("sem", "set", ctl(SEM, id, SETVAL, (void *)1L));
	say("sem", "too much", ctl(SEM, id, SETVAL, (void *)40000L));
	say("sem", "down", sem_do(id, 0, -1, 0));
	say("sem", "pid", ctl(SEM, id, GETPID, NULL) == getpid());
	say("sem", "would block", sem_do(id, 0, -1, IPC_NOWAIT));
	say("sem", "wrong number", sem_do(id, 2, -1, 0));
	say("sem", "too high", sem_do(id, 0, 32767, 0));
	say("sem", "too high", sem_do(id, 0, 1, 0));
	say("sem", "none", syscall(SYS_semop, id, many, 0UL));
	say("sem", "many", syscall(SYS_semop, id, many, 600UL));
	say("sem", "fault", syscall(SYS_semop, id, NULL, 1UL));
	say("sem", "set", ctl(SEM, id, SETVAL, NULL));
	say("sem", "wide count", syscall(SYS_semop, id, many, 1UL << 32 | 1));
	many[0].sem_num = 1;
	say("sem", "timed out", syscall(SYS_semtimedop, id, &(struct sembuf){ 1, -1, 0 }, 1UL, &soon));
	say("sem", "odd time", syscall(SYS_semtimedop, id, many, 1UL, &odd));
	say("sem", "bad time", syscall(SYS_semtimedop, id, many, 1UL, (void *)-1L));
	say("sem", "missing", syscall(SYS_semop, 0x7ffffff0, many, 1UL));
	say("sem", "missing", syscall(SYS_semop, 0x7ffffff0, many, 600UL));
	say("sem", "missing", syscall(SYS_semop, 0x7ffffff0, NULL, 1UL));
	say("sem", "missing", syscall(SYS_semop, 0x7ffffff0, NULL, 0UL));
	say("sem", "missing", syscall(SYS_semtimedop, 0x7ffffff0, NULL, 1UL, (void *)-1L));
	say("sem", "missing", syscall(SYS_semtimedop, 0x7ffffff0, many, 1UL, &odd));

	say("sem", "set", ctl(SEM, id, SETVAL, (void *)0L));
	await(child_that(sem_undo, id));
	say("sem", "undone", syscall(SYS_semctl, id, 1, GETVAL, NULL));
	say("sem", "set", ctl(SEM, id, SETVAL, (void *)2L));
	pid = child_that(sem_wait_zero, id);
	await_waiters(id, GETZCNT);
	say("sem", "down", sem_do(id, 0, -2, 0));
	await(pid);
	pid = child_that(sem_take, id);
	await_waiters(id, GETNCNT);
	kill(pid, SIGUSR1);
	await(pid);
	pid = child_that(sem_take, id);
	await_waiters(id, GETNCNT);
	say("sem", "remove", removed(SEM, id));
	await(pid);
	say("sem", "after", sem_do(id, 0, 0, 0));
}

struct message {
	long type;
	char text[9000];
};

static long send_msg(int id, long type, size_t n, int flags)
{
	static struct message m;

	m.type = type;
	memset(m.text, (int)('a' + type % 26), sizeof(m.text));
	return syscall(SYS_msgsnd, id, &m, n, flags);
}

static void take_msg(const char *what, int id, long type, size_t n, int flags)
{
	struct message m = { .type = -7 };
	long rc = syscall(SYS_msgrcv, id, &m, n, type, flags);

	say("msg", what, rc);
	printf("  type\t%ld\t%.1s\n", m.type, m.text);
}

static void msg_take(int id)
{
	interruptible();
	take_msg("child", id, 99, 10, 0);
}

static void settle(pid_t pid)
{
	char name[64], state = 'R';
	const struct timespec nap = { 0, 2000000 };
	int i;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	for (i = 0; i < 1000 && (state != 'S' || i < 25); i++) {
		FILE *f = fopen(name, "r");

		if (!f || fscanf(f, "%*d %*s %c", &state) != 1)
			state = 'R';
		if (f)
			fclose(f);
		nanosleep(&nap, NULL);
	}
}

static void messages(void)
{
	int id = (int)get(MSG, IPC_PRIVATE, 0, 0600), i;
	struct msqid_ds ds;
	pid_t pid;

	for (i = 1; i <= 6; i++)
		say("msg", "send", send_msg(id, i, (size_t)i * 10, 0));
	say("msg", "type 0", send_msg(id, 0, 1, 0));
	say("msg", "type -1", send_msg(id, -1, 1, 0));
	say("msg", "too long", send_msg(id, 1, 8193, 0));
	say("msg", "fault", syscall(SYS_msgsnd, id, NULL, 1UL, 0));
	say("msg", "text fault", syscall(SYS_msgsnd, id, (void *)-8L, 1UL, 0));
	say("msg", "negative", syscall(SYS_msgsnd, id, &ds, -1L, 0));
	say("msg", "missing", syscall(SYS_msgsnd, 0x7ffffff0, NULL, 1UL, 0));
	say("msg", "missing", send_msg(0x7ffffff0, 0, 1, 0));
	say("msg", "missing", send_msg(0x7ffffff0, 1, 9999, 0));
	say("msg", "missing", send_msg(0x7ffffff0, 1, 1, 0));
	take_msg("missing", 0x7ffffff0, 1, 1, 0);
	take_msg("type 3", id, 3, 100, 0);
	take_msg("up to 4", id, -4, 100, 0);
	take_msg("not 2", id, 2, 100, MSG_EXCEPT);
	take_msg("too long", id, 0, 5, 0);
	take_msg("cut", id, 0, 5, MSG_NOERROR);
	take_msg("none such", id, 42, 5, IPC_NOWAIT);
	take_msg("copy", id, 0, 100, MSG_COPY | IPC_NOWAIT);
	take_msg("copy wrongly", id, 0, 100, MSG_COPY);
	say("msg", "stat", ctl(MSG, id, IPC_STAT, &ds));
	printf("msg\tstat\t%lu %d %d\n", (long)ds.msg_qnum, ds.msg_lspid == getpid(), now(ds.msg_rtime));
	for (i = 0; i < 3; i++)
		say("msg", "fill", send_msg(id, 50, 8000, IPC_NOWAIT));
	pid = child_that(msg_take, id);
	settle(pid);
	kill(pid, SIGUSR1);
	await(pid);
	pid = child_that(msg_take, id);
	settle(pid);
	say("msg", "remove", removed(MSG, id));
	await(pid);
	take_msg("after", id, 0, 5, 0);
}

static void *attach(const char *what, int id, void *at, int flags)
{
	const long p = syscall(SYS_shmat, id, at, flags);

	say("shm", what, p == -1 ? p : 0);
	return p == -1 ? NULL : (void *)p;
}

static void shm_child(int id)
{
	int *p = attach("child", id, NULL, 0);

	if (p)
		p[1] = p[0] + 1;
}

static void segments(void)
{
	int id = (int)get(SHM, own_key, 8192, IPC_CREAT | 0600), id2;
	struct shmid_ds ds;
	int *p = attach("attach", id, NULL, 0), *q;

	p[0] = 41;
	await(child_that(shm_child, id));
	printf("shm\tshared\t%d\n", p[1]);
	attach("odd address", id, (char *)p + 1, 0);
	attach("taken", id, p, 0);
	attach("remap nowhere", id, NULL, SHM_REMAP);
	attach("missing", 0x7ffffff0, NULL, 0);
	attach("negative", -1, NULL, 0);
	q = attach("read only", id, NULL, SHM_RDONLY);
	printf("shm\tread\t%d\n", q ? q[0] : -1);
	say("shm", "lock", ctl(SHM, id, SHM_LOCK, NULL));
	say("shm", "unlock", ctl(SHM, id, SHM_UNLOCK, NULL));
	say("shm", "remove", removed(SHM, id));
	say("shm", "stat", ctl(SHM, id, IPC_STAT, &ds));
	printf("shm\tstat\t%o %lu\n", ds.shm_perm.mode, (long)ds.shm_nattch);
	say("shm", "remove again", removed(SHM, id));
	await(child_that(shm_child, id));
	say("shm", "old key", get(SHM, own_key, 0, 0));
	id2 = (int)get(SHM, own_key, 100, IPC_CREAT | IPC_EXCL | 0600);
	printf("shm\tanother\t%d\n", id2 != id && id2 >= 0);
	say_id("shm", "by key", get(SHM, own_key, 0, 0), id2);
	attach("both", id, NULL, 0);
	attach("both", id2, NULL, 0);
	say("shm", "detach", shmdt(p));
	say("shm", "detach", shmdt(p));
	say("shm", "remove", removed(SHM, id2));
	attach("still", id, NULL, 0);
}

/* Objects of another user, and what an object of ours looks like to them. */
static void as_others(int kind)
{
	static const int modes[] = { 0, 0600, 0640, 0604, 0444, 0660, 0222 };
	char what[64];
	size_t i, k;

	for (i = 0; i < COUNT(modes); i++) {
		const int id = (int)get(kind, own_key, 3, IPC_CREAT | modes[i]);
		struct msqid_ds msg;
		struct shmid_ds shm;
		struct semid_ds sem;
		void *ds = kind == SHM ? (void *)&shm : kind == SEM ? (void *)&sem : (void *)&msg;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			if (syscall(SYS_setgroups, 0, NULL) < 0 || setresgid(222, i % 2 ? 222 : 0, 222) < 0 ||
			    setresuid(i % 3 ? 333 : 0, 333, 0) < 0)
				die("ids");
			for (k = 0; k < COUNT(flag_sets); k++) {
				snprintf(what, sizeof(what), "mode %o flags %o", modes[i], flag_sets[k]);
				say_id("other", what, get(kind, own_key, 2, flag_sets[k]), id);
			}
			say("other", "stat", ctl(kind, id, IPC_STAT, ds));
			say("other", "remove", removed(kind, id));
			say_id("other", "another", get(kind, own_key + 1, 3, IPC_CREAT | 0600), -1);
			say("other", "stat", ctl(kind, (int)get(kind, own_key + 1, 0, 0), IPC_STAT, ds));
			say_perm("other", ds);
			fflush(stdout);
			_exit(0);
		}
		await(pid);
		say("mine", "of other", removed(kind, (int)get(kind, own_key + 1, 0, 0)));
		say("mine", "own", removed(kind, id));
	}
}

int main(void)
{
	int kind;

	own_key = (key_t)(0x5a000000 | (getpid() & 0xffff) << 4);
	for (kind = SHM; kind <= MSG; kind++) {
		lookups(kind, -1, 0);
		lookups(kind, 4, 0600);
		lookups(kind, 4, 0);
		commands(kind);
		if (geteuid() == 0)
			as_others(kind);
	}
	stats();
	semaphores();
	messages();
	segments();
	return 0;
}
