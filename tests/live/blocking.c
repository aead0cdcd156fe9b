/* blocking.c - opens that wait for another end.
 *
 *   blocking crowd N ROUNDS   nanoseconds per open+close, alone and beside N waiting openers
 *   blocking alarm FLAGS      a FIFO open that SIGALRM interrupts; prints what came of it
 *   blocking wait NAME        says "waiting", then opens for reading
 *   blocking meet             two ends open the same FIFO at once */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static int by_size(const void *a, const void *b)
{
	const long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

/* Median of single calls: one preempted call must not count. */
static long median(int rounds)
{
	static long t[100000];
	int i;

	for (i = 0; i < rounds; i++) {
		struct timespec a, b;
		int fd;

		clock_gettime(CLOCK_MONOTONIC, &a);
		fd = open("file", O_RDWR | O_CREAT, 0644);
		if (fd < 0)
			exit(2);
		close(fd);
		clock_gettime(CLOCK_MONOTONIC, &b);
		t[i] = (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec;
	}
	qsort(t, (size_t)rounds, sizeof(t[0]), by_size);
	return t[rounds / 2];
}

static int crowd(int n, int rounds)
{
	pid_t *pids = calloc((size_t)n, sizeof(*pids));
	long before, beside;
	int i, ended = 0;

	mkfifo("fifo", 0644);
	before = median(rounds);
	for (i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			(void)!open("fifo", O_RDONLY);
			_exit(0);
		}
		if (pids[i] < 0)
			return 3;
	}
	usleep(500000);
	beside = median(rounds);
	for (i = 0; i < n; i++)
		ended += waitpid(pids[i], NULL, WNOHANG) != 0;
	printf("%ld %ld early=%d\n", before, beside, ended);
	for (i = 0; i < n; i += 2)
		kill(pids[i], SIGKILL);
	(void)!open("fifo", O_WRONLY);
	for (i = 0; i < n; i++)
		waitpid(pids[i], NULL, 0);
	free(pids);
	return 0;
}

static int interrupted(int flags)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = flags };
	struct itimerval every = { { 0, 30000 }, { 0, 30000 } }, none = { { 0, 0 }, { 0, 0 } };
	pid_t helper;
	int fd, err;

	mkfifo("fifo", 0644);
	helper = fork();
	if (helper == 0) {
		usleep(400000);
		fd = open("fifo", O_WRONLY);
		usleep(2000000);	/* keep it: an opening that is tried again must meet us */
		_exit(fd < 0);
	}
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	fd = open("fifo", O_RDONLY);
	err = errno;
	setitimer(ITIMER_REAL, &none, NULL);
	printf("%s alarms=%s\n", fd < 0 ? strerrorname_np(err) : "opened",
	       alarms == 1 ? "one" : alarms > 3 ? "several" : "odd");
	fflush(stdout);
	kill(helper, SIGKILL);
	waitpid(helper, NULL, 0);
	return 0;
}

static int meet(void)
{
	char buf[8] = "";
	int fd;

	mkfifo("fifo", 0644);
	if (fork() == 0) {
		fd = open("fifo", O_WRONLY);
		_exit(write(fd, "hello", 5) != 5);
	}
	fd = open("fifo", O_RDONLY);
	(void)!read(fd, buf, 5);
	wait(NULL);
	printf("%s then %zd\n", buf, read(fd, buf, 5));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "crowd"))
		return crowd(atoi(argv[2]), atoi(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "alarm"))
		return interrupted(strcmp(argv[2], "restart") ? 0 : SA_RESTART);
	if (argc == 2 && !strcmp(argv[1], "meet"))
		return meet();
	if (argc == 3 && !strcmp(argv[1], "wait")) {
		puts("ready");
		fflush(stdout);
		return open(argv[2], O_RDONLY) < 0;
	}
	return 99;
}
