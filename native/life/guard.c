/* guard.c - fork into guardian and supervisor. */
#include "life/guard.h"

#include "base/err.h"
#include "ipc/objects.h"
#include "life/killtree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int lifeline = -1;
static sigset_t user_mask;
static bool guarded;
static struct sv_ipc *ipc;

int sv_guard_lifeline(void)
{
	return lifeline;
}

const sigset_t *sv_guard_mask(void)
{
	return guarded ? &user_mask : NULL;
}

struct sv_ipc *sv_guard_ipc(struct sv_err *err)
{
	struct sv_ipc *t = ipc ? ipc : sv_ipc_new();

	ipc = NULL;
	if (!t)
		sv_fail(err, ENOMEM, "System V objects", "out of memory");
	return t;
}

/* Is it stopped by now? The third field of proc_pid_stat(5), behind the name's bracket. */
static bool is_stopped(pid_t pid)
{
	char name[32], text[512];
	const char *end;
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] == 'T';
}

/* Ctrl-Z stops us as well, maybe between the news and what we do about it: when the shell
 * has let all go on meanwhile, nobody is to be stopped any more. */
static void stop_with(pid_t command)
{
	if (!is_stopped(command))
		return;
	kill(getppid(), SIGTSTP);
	if (!is_stopped(command))
		kill(getppid(), SIGCONT);
}

bool sv_guard_follow(pid_t command, int wstatus)
{
	static bool followed;
	const bool stopped = WIFSTOPPED(wstatus), goes_on = WIFCONTINUED(wstatus);

	/* SIGTSTP, whatever stopped it: the kernel drops that where no shell is there to
	 * let us go on */
	if (guarded && stopped)
		stop_with(command);
	else if (guarded && followed)
		kill(getppid(), SIGCONT);
	followed = stopped;
	return stopped || goes_on;
}

void sv_forwarded_signals(sigset_t *set)
{
	static const int list[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };
	size_t i;

	sigemptyset(set);
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		sigaddset(set, list[i]);
}

static void nap(void)
{
	struct timespec t = { 0, 2000000 };

	nanosleep(&t, NULL);
}

/* Until no child is left: what is killed below us is reparented to us. */
static void end_tree(void)
{
	static const char text[] = "supervise: the supervisor died; its tree was ended\n";
	bool any = false;

	for (;;) {
		pid_t pid;

		if (sv_kill_descendants(getpid(), SIGKILL) > 0)
			any = true;
		while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			break;
		nap();
	}
	if (any)
		(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
}

/* Reaps; returns true with the status once the supervisor itself ended. */
static bool reap(pid_t supervisor, int *status)
{
	bool ended = false;
	pid_t pid;
	int st;

	while ((pid = waitpid(-1, &st, WNOHANG | __WALL)) > 0) {
		if (pid == supervisor) {
			*status = st;
			ended = true;
		}
	}
	return ended;
}

/* Signals that the terminal sends reach the whole process group by themselves. */
static void pass_on(pid_t supervisor, const siginfo_t *si)
{
	if (si->si_code != SI_KERNEL)
		kill(supervisor, si->si_signo);
}

static _Noreturn void guard(pid_t supervisor, const sigset_t *set)
{
	int status = 0;
	siginfo_t si;

	for (;;) {
		int sig = sigwaitinfo(set, &si);

		if (sig == SIGCHLD && reap(supervisor, &status))
			break;
		if (sig > 0 && sig != SIGCHLD)
			pass_on(supervisor, &si);
	}
	end_tree();
	sv_ipc_clear(ipc);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int sv_guard(struct sv_err *err)
{
	sigset_t set;
	int p[2];
	pid_t pid;

	if (guarded)
		return sv_fail(err, EALREADY, "guardian", "there is one already");
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return sv_fail(err, errno, "guardian", "prctl: %s", strerror(errno));
	ipc = sv_guard_ipc(err);
	if (!ipc)
		return -ENOMEM;
	if (pipe2(p, O_CLOEXEC) < 0)
		return sv_fail(err, errno, "guardian", "no pipe: %s", strerror(errno));
	sv_forwarded_signals(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &user_mask);
	pid = fork();
	if (pid < 0) {
		int code = errno;

		sigprocmask(SIG_SETMASK, &user_mask, NULL);
		close(p[0]);
		close(p[1]);
		return sv_fail(err, code, "guardian", "no process can be started: %s",
			       strerror(code));
	}
	if (pid > 0) {
		close(p[0]);
		signal(SIGTTOU, SIG_IGN);
		signal(SIGTTIN, SIG_IGN);
		guard(pid, &set);
	}
	close(p[1]);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	lifeline = p[0];
	guarded = true;
	return 0;
}
