/* traced.c - debuggers inside, as they are and as an attacker would have them.
 *
 *   traced traceme              the first program asks its parent to trace it
 *   traced attach PID           PTRACE_ATTACH and PTRACE_SEIZE of a process
 *   traced options              options that would take the filter or the exec stop away
 *   traced weak PROGRAM         exec of a task that was seized without an exec stop
 *   traced blocked PROGRAM      exec of a traced task that blocks SIGTRAP
 *   traced race N GOOD BAD      execs of a traced task whose path somebody flips
 *   traced orphan N GOOD BAD    the same, and the tracer dies at once */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
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

/* The child waits on the pipe, then executes; prints what it got. */
static pid_t starter(int *go, const char *program, int block)
{
	int p[2];
	pid_t pid;
	char c;

	if (pipe(p) < 0 || (pid = fork()) < 0)
		exit(1);
	if (pid == 0) {
		sigset_t trap;

		close(p[1]);
		sigemptyset(&trap);
		sigaddset(&trap, SIGTRAP);
		if (block)
			sigprocmask(SIG_BLOCK, &trap, NULL);
		if (read(p[0], &c, 1) < 0)
			_exit(1);
		execl(program, program, (char *)NULL);
		printf("exec %s\n", outcome(-1));
		fflush(stdout);
		_exit(0);
	}
	close(p[0]);
	*go = p[1];
	return pid;
}

static void unstoppable(const char *program, int block)
{
	int go, status;
	pid_t pid = starter(&go, program, block);

	fflush(stdout);
	if (block) {
		ptrace(PTRACE_ATTACH, pid, 0, 0);
		waitpid(pid, &status, 0);
		ptrace(PTRACE_CONT, pid, 0, 0);
	} else {
		printf("auto %s\n", outcome(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEFORK)));
		printf("seize %s\n", outcome(ptrace(PTRACE_SEIZE, pid, 0, 0)));
		printf("again %s\n", outcome(ptrace(PTRACE_SETOPTIONS, pid, 0, 0)));
		fflush(stdout);
	}
	if (write(go, "x", 1) != 1)
		exit(1);
	while (waitpid(pid, &status, 0) == pid && !WIFEXITED(status) && !WIFSIGNALED(status))
		ptrace(PTRACE_CONT, pid, 0, 0);
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

static void racer(void)
{
	char *argv[] = { (char *)"prog", NULL };

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	execv((const char *)shared, argv);
	_exit(99);
}

/* One try as the tracer; 1 = it ended by itself, 0 = refused or killed. */
static int trace_one(int die)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		racer();
	if (die)
		_exit(0);
	while (waitpid(pid, &status, 0) == pid) {
		if (WIFEXITED(status))
			return WEXITSTATUS(status) == 0;
		if (WIFSIGNALED(status))
			return 0;
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
	return 0;
}

static void race(int n, int die)
{
	int ran = 0, i, status;
	pid_t flips;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	strcpy((char *)shared, good);
	flips = flipper();
	for (i = 0; i < n; i++) {
		pid_t tracer = fork();

		if (tracer == 0)
			_exit(trace_one(die) ? 0 : 1);
		waitpid(tracer, &status, 0);
		ran += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	kill(flips, SIGKILL);
	waitpid(flips, &status, 0);
	printf("ran %d of %d\n", ran, n);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "traceme"))
		printf("traceme %s\n", outcome(ptrace(PTRACE_TRACEME, 0, 0, 0)));
	else if (!strcmp(mode, "attach"))
		attach(atoi(argv[2]));
	else if (!strcmp(mode, "options"))
		options();
	else if (!strcmp(mode, "weak") || !strcmp(mode, "blocked"))
		unstoppable(argv[2], mode[0] == 'b');
	else if (!strcmp(mode, "race") || !strcmp(mode, "orphan")) {
		good = argv[3];
		bad = argv[4];
		race(atoi(argv[2]), mode[0] == 'o');
	}
	return 0;
}
