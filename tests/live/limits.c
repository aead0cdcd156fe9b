/* limits.c - every way to set the limit that says in which blocks a process is.
 * One line a try: its name, and the errno or "done".
 *
 *   limits PID     PID: another process of ours, whose limits are tried, too */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rlimit first;

static void said(const char *name, long rc)
{
	printf("%s %s\n", name, rc ? strerrorname_np(errno) : "done");
}

static void try_values(const char *who, pid_t pid)
{
	const rlim_t hard[] = { 65535, 0, RLIM_INFINITY, first.rlim_max, 819200 };
	char name[64];

	for (unsigned int i = 0; i < sizeof(hard) / sizeof(hard[0]); i++) {
		struct rlimit r = { hard[i], hard[i] }, old;

		snprintf(name, sizeof(name), "prlimit-%s-%u", who, i);
		said(name, syscall(SYS_prlimit64, pid, RLIMIT_MSGQUEUE, &r, i & 1 ? &old : NULL));
		if (!pid) {
			snprintf(name, sizeof(name), "setrlimit-%u", i);
			said(name, syscall(SYS_setrlimit, RLIMIT_MSGQUEUE, &r));
		}
	}
	struct rlimit soft = { first.rlim_cur - 1, first.rlim_max };
	snprintf(name, sizeof(name), "soft-%s", who);
	said(name, syscall(SYS_prlimit64, pid, RLIMIT_MSGQUEUE, &soft, NULL));
	/* the kernel takes the low half of the number alone */
	snprintf(name, sizeof(name), "high-%s", who);
	said(name, syscall(SYS_prlimit64, (long)pid | 1L << 32, RLIMIT_MSGQUEUE | 7L << 32, &soft, NULL));
	said("high-set", syscall(SYS_setrlimit, RLIMIT_MSGQUEUE | 1L << 63, &soft));
}

static void *in_thread(void *arg)
{
	(void)arg;
	try_values("thread", (pid_t)syscall(SYS_gettid));
	return NULL;
}

int main(int argc, char **argv)
{
	struct rlimit now, files;
	pthread_t thread;
	pid_t child;

	setvbuf(stdout, NULL, _IOLBF, 0);
	getrlimit(RLIMIT_MSGQUEUE, &first);
	try_values("self", 0);
	try_values("own", getpid());
	try_values("parent", getppid());
	if (argc > 1)
		try_values("other", atoi(argv[1]));
	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	try_values("child", child);
	kill(child, 9);
	waitpid(child, NULL, 0);
	/* looking is free, and so are other limits, those that share bits included */
	getrlimit(RLIMIT_MSGQUEUE, &now);
	printf("same %d\n", now.rlim_cur == first.rlim_cur && now.rlim_max == first.rlim_max);
	for (int what = 0; what < RLIM_NLIMITS; what++) {
		if (what == RLIMIT_MSGQUEUE)
			continue;
		getrlimit(what, &files);
		if (syscall(SYS_prlimit64, 0, what, &files, NULL) || syscall(SYS_setrlimit, what, &files))
			printf("limit %d %s\n", what, strerrorname_np(errno));
	}
	return 0;
}
