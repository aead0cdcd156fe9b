/* traced.c - debuggers inside, as they are and as an attacker would have them.
 *
 *   traced                      is the forbidden program: says so
 *   traced traceme              the first program asks its parent to trace it
 *   traced attach PID           PTRACE_ATTACH and PTRACE_SEIZE of a process
 *   traced options              options that would take the filter away
 *   traced orphans N            children that ask to be traced while their parent dies
 *   traced memory               writes to /proc/PID/mem: own, of a tracee, of somebody else
 *   traced race N GOOD BAD      execs of a traced task whose path somebody flips
 *   traced orphan N GOOD BAD    the same, and the tracer dies at once
 *   traced seized N GOOD BAD    the same, seized without a stop at the exec */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *outcome(long rc)
{
	return rc < 0 ? strerrorname_np(errno) : "ok";
}

static void attach(pid_t pid)
{
	printf("attach %s\n", outcome(ptrace(PTRACE_ATTACH, pid, 0, 0)));
	printf("seize %s\n", outcome(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC)));
}

static void options(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
			raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	printf("plain %s\n", outcome(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD)));
	printf("suspend %s\n", outcome(ptrace(PTRACE_SETOPTIONS, pid, 0, 1L << 21)));
	ptrace(PTRACE_CONT, pid, 0, SIGKILL);
	waitpid(pid, &status, 0);
}

static volatile char *shared;
static const char *good, *bad;

static pid_t flipper(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (;;) {
		strcpy((char *)shared, bad);
		for (volatile int i = 0; i < 300; i++)
			;
		strcpy((char *)shared, good);
		for (volatile int i = 0; i < 300; i++)
			;
	}
}

enum how { RACE, ORPHAN, SEIZED };

static void racer(enum how how, int go)
{
	char *argv[] = { (char *)"prog", NULL };
	char c;

	if (how != SEIZED)
		ptrace(PTRACE_TRACEME, 0, 0, 0);
	else if (read(go, &c, 1) != 1)
		_exit(98);
	execv((const char *)shared, argv);
	_exit(99);
}

/* One try as the tracer; 1 = it ended by itself, 0 = refused or killed. */
static int trace_one(enum how how)
{
	int p[2], status;
	pid_t pid;

	if (pipe(p) < 0 || (pid = fork()) < 0)
		_exit(2);
	if (pid == 0)
		racer(how, p[0]);
	if (how == ORPHAN)
		_exit(0);
	if (how == SEIZED && (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0 || write(p[1], "x", 1) != 1))
		_exit(3);
	while (waitpid(pid, &status, 0) == pid) {
		if (WIFEXITED(status))
			return WEXITSTATUS(status) == 0;
		if (WIFSIGNALED(status))
			return 0;
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
	return 0;
}

static void race(int n, enum how how)
{
	int ran = 0, i, status;
	pid_t flips;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	strcpy((char *)shared, good);
	flips = flipper();
	for (i = 0; i < n; i++) {
		pid_t tracer = fork();

		if (tracer == 0)
			_exit(trace_one(how) ? 0 : 1);
		waitpid(tracer, &status, 0);
		ran += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	kill(flips, SIGKILL);
	waitpid(flips, &status, 0);
	printf("ran %d of %d\n", ran, n);
}

/* The parent may be gone, and ours the new one, when the call is carried out. */
static void orphans(int n)
{
	int i, status;

	for (i = 0; i < n; i++) {
		pid_t parent = fork();

		if (parent == 0) {
			if (fork() == 0) {
				ptrace(PTRACE_TRACEME, 0, 0, 0);
				raise(SIGUSR1);
				_exit(0);
			}
			for (volatile int k = 0; k < 60 * (i % 500); k++)
				;
			_exit(0);
		}
		waitpid(parent, &status, 0);
	}
	printf("done\n");
}

static long value = 1;

static const char *poke(pid_t pid)
{
	const long two = 2;
	char name[40];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", pid);
	fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return strerrorname_np(errno);
	n = pwrite(fd, &two, sizeof(two), (off_t)(uintptr_t)&value);
	close(fd);
	return n == sizeof(two) ? "ok" : strerrorname_np(errno);
}

static void memory(void)
{
	const char *own = poke(getpid());
	pid_t pid = fork();
	int status;

	if (pid == 0)
		for (;;)
			pause();
	printf("own %s %ld\n", own, value);
	printf("child %s\n", poke(pid));
	if (ptrace(PTRACE_ATTACH, pid, 0, 0) == 0)
		waitpid(pid, &status, 0);
	printf("tracee %s\n", poke(pid));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	const char *hows[] = { "race", "orphan", "seized" };

	if (argc == 1)
		puts("FORBIDDEN");
	else if (!strcmp(mode, "traceme"))
		printf("traceme %s\n", outcome(ptrace(PTRACE_TRACEME, 0, 0, 0)));
	else if (!strcmp(mode, "attach"))
		attach(atoi(argv[2]));
	else if (!strcmp(mode, "options"))
		options();
	else if (!strcmp(mode, "orphans"))
		orphans(atoi(argv[2]));
	else if (!strcmp(mode, "memory"))
		memory();
	for (int i = 0; i < 3; i++)
		if (!strcmp(mode, hows[i])) {
			good = argv[3];
			bad = argv[4];
			race(atoi(argv[2]), (enum how)i);
		}
	return 0;
}
