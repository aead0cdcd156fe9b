/* loop.c - times one call in a loop: `loop OP N PATH` prints "OP ns_per_call".
 *
 * Ops: getppid (no rule speaks about it), openclose (an existing file, read
 * only), creat (create, close, unlink), stat, list (all entries of a folder). One tenth
 * more runs first. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The folder stays open from the first time on. */
static int list(const char *path)
{
	static char entries[32768];
	static int fd = -1;
	long n;

	if (fd < 0)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	do {
		n = syscall(SYS_getdents64, fd, entries, sizeof(entries));
	} while (n > 0);
	return (int)n;
}

static int once(const char *op, const char *path)
{
	struct stat st;
	int fd;

	if (!strcmp(op, "getppid"))
		return syscall(SYS_getppid) < 0;
	if (!strcmp(op, "stat"))
		return stat(path, &st);
	if (!strcmp(op, "list"))
		return list(path);
	if (!strcmp(op, "openclose")) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		return fd < 0 ? -1 : close(fd);
	}
	if (!strcmp(op, "creat")) {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0 || close(fd) < 0)
			return -1;
		return unlink(path);
	}
	return -1;
}

/* The proof that a filter was (2), or was not (0), in force. */
static void show_filter(void)
{
	printf("Seccomp:\t%d\n", prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0, i;
	double start;

	if (argc != 4 || n <= 0)
		return 2;
	for (i = 0; i < n / 10 + 1; i++) {
		if (once(argv[1], argv[3])) {
			perror(argv[1]);
			return 1;
		}
	}
	start = now();
	for (i = 0; i < n; i++)
		once(argv[1], argv[3]);
	printf("%s %.1f\n", argv[1], (now() - start) / (double)n);
	show_filter();
	return 0;
}
