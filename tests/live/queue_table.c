/* queue_table.c - POSIX message queues: names, flags, modes and attributes, one line a
 * call with what was made of it.
 *
 * usage: queue_table FOLDER   (not used) */
#include "table.h"

#include <limits.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/wait.h>

static char name[64];

static long q_open(const char *path, int flags, int mode, const void *attr)
{
	return syscall(SYS_mq_open, path, flags, mode, attr);
}

static long q_unlink(const char *path)
{
	return syscall(SYS_mq_unlink, path);
}

static void say(const char *part, const char *what, long rc)
{
	const int err = errno;

	printf("%s\t%s\t%s\n", part, what, rc < 0 ? err_name(err) : "ok");
}

/* What a descriptor of a queue is; closes it. */
static void show(const char *part, const char *what, long fd)
{
	struct mq_attr a;
	struct stat st;

	say(part, what, fd);
	if (fd < 0)
		return;
	if (fstat((int)fd, &st) < 0 || mq_getattr((int)fd, &a) < 0)
		die("getattr");
	printf("  %ld\t%o %u.%u %u\t%x %x %ld %ld\n", fd, st.st_mode, st.st_uid, st.st_gid,
	       (unsigned)st.st_nlink, fcntl((int)fd, F_GETFL), fcntl((int)fd, F_GETFD), a.mq_maxmsg,
	       a.mq_msgsize);
	close((int)fd);
}

static void names(void)
{
	static char n255[256], n256[257], n4096[4097];
	static const char *const bad[] = { "", ".", "..", "/", "/x", "a/b", "a/", n256, n4096, NULL };
	size_t i;

	memset(n256, 'n', 256);
	memset(n4096, 'n', 4096);
	snprintf(n255, sizeof(n255), "%s%0*d", name, 255 - (int)strlen(name), 0);
	for (i = 0; i < COUNT(bad); i++) {
		say("name", "open", q_open(bad[i], O_RDONLY, 0, NULL));
		say("name", "open wrongly", q_open(bad[i], O_ACCMODE, 0, NULL));
		say("name", "open, bad attributes", q_open(bad[i], O_RDONLY, 0, (void *)-1L));
		say("name", "create", q_open(bad[i], O_RDWR | O_CREAT, 0600, NULL));
		say("name", "unlink", q_unlink(bad[i]));
	}
	show("name", "longest", q_open(n255, O_RDWR | O_CREAT, 0600, NULL));
	say("name", "longest", q_unlink(n255));
}

static const int flag_sets[] = {
	O_RDONLY, O_WRONLY, O_RDWR, O_ACCMODE, O_RDWR | O_CREAT, O_RDONLY | O_CREAT,
	O_RDWR | O_CREAT | O_EXCL, O_ACCMODE | O_CREAT | O_EXCL, O_RDONLY | O_EXCL,
	O_RDWR | O_NONBLOCK, O_RDWR | O_TRUNC | O_CREAT, O_RDWR | O_DIRECTORY, O_RDWR | O_CLOEXEC,
	O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK,
};
static const int modes[] = { -1, 0, 0400, 0200, 0600, 0606, 0060, 07777 };

static void flags(void)
{
	char what[64];
	size_t i, k;

	for (i = 0; i < COUNT(modes); i++) {
		for (k = 0; k < COUNT(flag_sets); k++) {
			umask(0);
			if (modes[i] >= 0)
				close((int)q_open(name, O_RDWR | O_CREAT | O_EXCL, modes[i], NULL));
			umask(k % 2 ? 027 : 0);
			snprintf(what, sizeof(what), "queue %o flags %x", modes[i], flag_sets[k]);
			show("flags", what, q_open(name, flag_sets[k], 0666, NULL));
			say("flags", "unlink", q_unlink(name));
		}
	}
}

static void attributes(void)
{
	static const long numbers[] = { -1, 0, 1, 10, 11, 8192, 8193, 65536, 65537, LONG_MAX };
	char what[64];
	size_t i, k;

	for (i = 0; i < COUNT(numbers); i++) {
		for (k = 0; k < COUNT(numbers); k++) {
			struct mq_attr a = { .mq_maxmsg = numbers[i], .mq_msgsize = numbers[k],
					     .mq_flags = O_NONBLOCK, .mq_curmsgs = 3 };

			snprintf(what, sizeof(what), "%ld messages of %ld", numbers[i], numbers[k]);
			show("attr", what, q_open(name, O_RDWR | O_CREAT, 0600, &a));
			show("attr", "again", q_open(name, O_RDWR, 0600, &a));
			q_unlink(name);
		}
	}
	say("attr", "unreadable", q_open(name, O_RDWR | O_CREAT, 0600, (void *)8L));
}

static void on_signal(int sig)
{
	(void)sig;
}

/* Messages cross processes, in order, also by descriptors opened again. */
static void messages(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	char text[8192] = "", self[64];
	unsigned prio = 0;
	int q = (int)q_open(name, O_RDWR | O_CREAT, 0600, NULL), r;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		r = (int)q_open(name, O_WRONLY, 0, NULL);
		_exit(mq_send(r, "low", 4, 1) | mq_send(r, "high", 5, 9));
	}
	waitpid(pid, &r, 0);
	say("send", "child", r ? -1 : 0);
	say("take", "high", mq_receive(q, text, sizeof(text), &prio));
	printf("  %s\t%u\n", text, prio);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", q);
	r = open(self, O_RDWR | O_NONBLOCK);
	say("again", "open", r);
	say("take", "low", mq_receive(r, text, sizeof(text), &prio));
	printf("  %s\t%u\n", text, prio);
	say("take", "none", mq_receive(r, text, sizeof(text), &prio));
	say("chmod", "descriptor", fchmod(q, 0640));
	say("unlink", "", q_unlink(name));
	say("unlink", "again", q_unlink(name));
	say("send", "unlinked", mq_send(q, "still", 6, 0));
	show("again", "unlinked", open(self, O_RDONLY));
	say("take", "still", mq_receive(q, text, sizeof(text), NULL));
	sigaction(SIGALRM, &sa, NULL);
	ualarm(20000, 0);
	say("take", "interrupted", mq_receive(q, text, sizeof(text), NULL));
	close(q);
	close(r);
}

/* The sticky folder lets nobody else remove a queue. */
static void others(void)
{
	pid_t pid;
	int st;

	close((int)q_open(name, O_RDWR | O_CREAT, 0604, NULL));
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (setresgid(222, 222, 222) < 0 || setresuid(0, 333, 0) < 0)
			die("ids");
		show("other", "read", q_open(name, O_RDONLY, 0, NULL));
		show("other", "write", q_open(name, O_RDWR, 0, NULL));
		say("other", "unlink", q_unlink(name));
		strcat(name, "o");
		show("other", "create", q_open(name, O_RDWR | O_CREAT, 0620, NULL));
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &st, 0);
	say("other", "child", st ? -1 : 0);
	say("mine", "unlink", q_unlink(name));
	strcat(name, "o");
	say("mine", "unlink other's", q_unlink(name));
}

int main(void)
{
	snprintf(name, sizeof(name), "sv-test-%d-", (int)getpid());
	names();
	flags();
	attributes();
	messages();
	if (geteuid() == 0)
		others();
	return 0;
}
