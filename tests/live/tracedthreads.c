/* tracedthreads.c - two threads of one process execute at once, one of them under a debugger.
 *
 *   tracedthreads takeover N    the leader's exec is in supervise's hands when the debugged
 *                               thread's exec ends the leader and takes its number; the new
 *                               program then executes once more
 *   tracedthreads hold N        the debugger never takes note of a thread that the exec
 *                               ended, so that the exec keeps its lock; do others go on? */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORD = 100000, MORE = 18, PATIENCE_MS = 4000 };
enum who { IDLE, TRACED, FREE, THREADS };

struct shared {
	volatile int go;
	volatile pid_t tid[THREADS];
};

static struct shared *sh;
static const char *self;
static char *many[MORE + 2], *few[MORE + 2];
static int delay;

static void spin(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
}

static void *thread(void *arg)
{
	const enum who who = (enum who)(intptr_t)arg;
	char *words[] = { (char *)"last", NULL };

	sh->tid[who] = (pid_t)syscall(SYS_gettid);
	while (!sh->go || who == IDLE)
		if (who == IDLE)
			pause();
	if (who == FREE)
		spin(delay);
	execv(self, who == FREE ? words : few);
	_exit(9);
}

static void start(enum who who)
{
	pthread_t t;

	if (pthread_create(&t, NULL, thread, (void *)(intptr_t)who))
		_exit(8);
	while (!sh->tid[who])
		usleep(50);
}

/* Its status, within the patience; -1 = nothing came. */
static int status_of(pid_t pid, pid_t traced)
{
	int st;

	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		pid_t got = waitpid(pid, &st, WNOHANG | __WALL);

		if (got == pid && !WIFSTOPPED(st))
			return st;
		if (got == pid)
			ptrace(PTRACE_CONT, pid, 0, 0);
		if (traced && waitpid(traced, &st, WNOHANG | __WALL) == traced && WIFSTOPPED(st))
			ptrace(PTRACE_CONT, traced, 0, 0);
		usleep(1000);
	}
	return -1;
}

static void seize(enum who who)
{
	if (ptrace(PTRACE_SEIZE, sh->tid[who], 0, 0) < 0)
		perror("seize");
}

static void reset(void)
{
	memset(sh, 0, sizeof(*sh));
	delay = rand() % 200000;
}

static bool takeover(void)
{
	pid_t pid;

	reset();
	pid = fork();
	if (pid == 0) {
		start(TRACED);
		while (!sh->go)
			;
		spin(delay / 20);
		execv(self, many);
		_exit(9);
	}
	while (!sh->tid[TRACED])
		usleep(50);
	seize(TRACED);
	sh->go = 1;
	return status_of(pid, sh->tid[TRACED]) == 0;
}

static bool hold(void)
{
	char *words[] = { (char *)"last", NULL };
	pid_t pid, other;
	bool ran;

	reset();
	pid = fork();
	if (pid == 0) {
		start(IDLE);
		start(FREE);
		start(TRACED);
		for (;;)
			pause();
	}
	while (!sh->tid[TRACED])
		usleep(50);
	seize(IDLE);
	seize(TRACED);
	sh->go = 1;
	usleep(3000);
	other = fork();
	if (other == 0) {
		execv(self, words);
		_exit(9);
	}
	ran = status_of(other, 0) == 0;
	kill(pid, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	return ran;
}

static void repeat(bool (*once)(void), int n)
{
	int good = 0, i = 0;

	/* One that hangs says enough. */
	while (i < n && good == i) {
		good += once();
		i++;
	}
	printf("%d of %d\n", good, i);
}

int main(int argc, char **argv)
{
	static char text[WORD + 1];
	char *words[] = { (char *)"last", NULL };

	self = "/proc/self/exe";
	if (!strcmp(argv[0], "last"))
		return 0;
	if (!strcmp(argv[0], "once more")) {
		execv(self, words);
		return 9;
	}
	memset(text, 'a', WORD);
	for (int i = 1; i <= MORE; i++)
		many[i] = text;
	for (int i = 1; i <= MORE / 6; i++)
		few[i] = text;
	many[0] = few[0] = (char *)"once more";
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	srand((unsigned int)getpid());
	if (argc == 3)
		repeat(!strcmp(argv[1], "hold") ? hold : takeover, atoi(argv[2]));
	return 0;
}
