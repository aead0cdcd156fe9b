/* fds.c - descriptor numbers, limits and copies that nobody may keep.
 *
 *   fds lowest     opens fill the lowest gap
 *   fds limit N    opens under RLIMIT_NOFILE N until one fails
 *   fds ghost N    writes, closes and executes a file N times; prints how often it was busy
 *   fds eof N      closes the writing end of a pipe opened by name; prints the worst wait, us
 *   fds many N     opens and closes N times in several ways, says "ready" before and after
 *   fds lock       a lock is free as soon as its holder closed */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int create(const char *name)
{
	return open(name, O_RDWR | O_CREAT, 0644);
}

static int lowest(void)
{
	int a = create("a"), b = create("b"), c = create("c"), d, e;

	close(b);
	d = open("a", O_RDONLY);
	close(0);
	e = open("c", O_RDONLY | O_CLOEXEC);
	printf("%d %d %d %d %d\n", a, b, c, d, e);
	return 0;
}

static int limited(rlim_t n)
{
	struct rlimit r = { n, n };
	int i, fd;

	setrlimit(RLIMIT_NOFILE, &r);
	for (i = 0; (fd = i % 2 ? create("a") : open("/etc/passwd", O_RDONLY)) >= 0; i++)
		;
	printf("%d %s", i, strerrorname_np(errno));
	close(3);
	printf(" %d", create("again"));
	fd = create("too-many");
	printf(" %s\n", fd < 0 ? strerrorname_np(errno) : "ok");
	return 0;
}

/* Exit code of ./prog: 1 = busy, 2 = another failure. */
static int run_it(void)
{
	char *argv[] = { "prog", NULL };
	pid_t pid = vfork();
	int st = 0;

	if (pid == 0) {
		execv("./prog", argv);
		_exit(errno == ETXTBSY ? 1 : 2);
	}
	waitpid(pid, &st, 0);
	return WIFEXITED(st) ? WEXITSTATUS(st) : 3;
}

static int ghost(int n)
{
	static const char script[] = "#!/bin/true\n";
	int i, busy = 0, odd = 0;

	for (i = 0; i < n; i++) {
		int fd = open("prog", O_WRONLY | O_CREAT | O_TRUNC, 0755);
		int code;

		if (fd < 0 || write(fd, script, sizeof(script) - 1) < 0)
			return 2;
		close(fd);
		code = run_it();
		busy += code == 1;
		odd += code > 1;
		unlink("prog");
	}
	printf("busy=%d odd=%d\n", busy, odd);
	return 0;
}

static int end_of_file(int n)
{
	int i, bad = 0;

	for (i = 0; i < n; i++) {
		char name[64], c;
		int fds[2], w;

		if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
			return 2;
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fds[1]);
		w = open(name, O_WRONLY);
		close(fds[1]);
		close(w);
		bad += w < 0 || read(fds[0], &c, 1) != 0;
		close(fds[0]);
	}
	printf("late=%d\n", bad);
	return 0;
}

static int locks(int n)
{
	int i, bad = 0;

	for (i = 0; i < n; i++) {
		int a = create("lock"), b;

		flock(a, LOCK_EX);
		close(a);
		b = create("lock");
		bad += flock(b, LOCK_EX | LOCK_NB) < 0;
		close(b);
	}
	printf("held=%d\n", bad);
	return 0;
}

static void each_way(int i)
{
	int fd;

	switch (i % 7) {
	case 0: fd = create("a"); break;
	case 1: fd = open("a", O_RDONLY); break;
	case 2: fd = open("missing", O_RDONLY); break;
	case 3: fd = open("/root/x", O_RDWR); break;
	case 4: fd = open(".", O_RDONLY | O_DIRECTORY); break;
	case 5: fd = open("/proc/self/status", O_RDONLY); break;
	default:
		rename("a", "b");
		chmod("b", 0600);
		link("b", "c");
		unlink("b");
		unlink("c");
		fd = open("fifo", O_RDONLY | O_NONBLOCK);
	}
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	int i;
	char c;

	if (argc == 2 && !strcmp(argv[1], "lowest"))
		return lowest();
	if (argc != 3)
		return 99;
	if (!strcmp(argv[1], "limit"))
		return limited((rlim_t)atoi(argv[2]));
	if (!strcmp(argv[1], "ghost"))
		return ghost(atoi(argv[2]));
	if (!strcmp(argv[1], "eof"))
		return end_of_file(atoi(argv[2]));
	if (!strcmp(argv[1], "lock"))
		return locks(atoi(argv[2]));
	mkfifo("fifo", 0644);
	for (i = 0; i < 700; i++)
		each_way(i);
	puts("ready");
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		return 3;
	for (i = 0; i < atoi(argv[2]); i++)
		each_way(i);
	puts("ready");
	fflush(stdout);
	return read(0, &c, 1) != 1;
}
