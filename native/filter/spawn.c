/* spawn.c - fork, confine, hand over, exec. */
#include "filter/spawn.h"

#include "base/err.h"
#include "base/fd.h"
#include "filter/install.h"
#include "filter/landlock.h"
#include "filter/messenger.h"
#include "filter/rlimits.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child's steps, in order; the number of a failed one is sent back. */
enum step { STEP_OK, STEP_PARENT, STEP_NNP, STEP_FDS, STEP_CWD, STEP_LABEL, STEP_KEEP, STEP_FLOOR, STEP_FILTER, STEP_SEND };

static const char *const step_text[] = {
	"", "the supervisor went away", "no_new_privs is refused",
	"descriptors cannot be closed (close_range)", "the folder cannot be entered",
	"a policy with blocks needs a limit for message queues (ulimit -q) of 65535 or more",
	"the right to raise limits cannot be given up",
	"Landlock refuses the domain", "seccomp refuses the filter", "the listener cannot be sent",
};

struct report {
	int32_t step;
	int32_t err;
};

/* Candidate program files, made before fork: no malloc in the child. */
struct candidates {
	char **v;
	size_t n;
};

static void candidates_free(struct candidates *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		free(c->v[i]);
	free(c->v);
}

static const char *env_path(const char *const *envp)
{
	for (; envp && *envp; envp++)
		if (!strncmp(*envp, "PATH=", 5))
			return *envp + 5;
	return "/usr/local/bin:/usr/bin:/bin";
}

static int add_candidate(struct candidates *c, const char *dir, size_t n, const char *file)
{
	char **v = realloc(c->v, (c->n + 1) * sizeof(*v));
	char *text;

	if (!v)
		return -ENOMEM;
	c->v = v;
	if (asprintf(&text, "%.*s%s%s", (int)n, dir, n ? "/" : "", file) < 0)
		return -ENOMEM;
	c->v[c->n++] = text;
	return 0;
}

static int find_candidates(const struct sv_start *st, struct candidates *c)
{
	const char *file = st->path ? st->path : st->argv[0];
	const char *p;
	int rc = 0;

	if (st->path || strchr(file, '/') || !*file)
		return add_candidate(c, "", 0, file);
	for (p = env_path(st->envp); rc == 0; p++) {
		size_t n = strcspn(p, ":");

		rc = n ? add_candidate(c, p, n, file) : add_candidate(c, ".", 1, file);
		p += n;
		if (!*p)
			break;
	}
	return rc;
}

static _Noreturn void child_fail(int sock, int step, int err)
{
	struct report r = { step, err };

	(void)!write(sock, &r, sizeof(r));
	_exit(127);
}

/* What a program expects of a fresh process: Python's own dispositions and
 * our mask must not leak into it. */
static void reset_signals(const sigset_t *mask)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };

	sigaction(SIGPIPE, &sa, NULL);
	sigaction(SIGXFSZ, &sa, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
}

static void confine(const struct sv_spawn *s, int sock, pid_t parent)
{
	const struct rlimit none = { SV_LABEL_BASE, SV_LABEL_BASE };
	int rc;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		child_fail(sock, STEP_PARENT, ESRCH);
	/* we hid our own memory before the fork; the target's must be readable */
	if (prctl(PR_SET_DUMPABLE, 1) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		child_fail(sock, STEP_NNP, errno);
	if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		child_fail(sock, STEP_FDS, errno);
	if (s->start->cwd && chdir(s->start->cwd) < 0)
		child_fail(sock, STEP_CWD, errno);
	if (s->labels && setrlimit(RLIMIT_MSGQUEUE, &none) < 0)
		child_fail(sock, STEP_LABEL, errno);
	rc = s->limited ? sv_rlimits_keep() : 0;
	if (rc < 0)
		child_fail(sock, STEP_KEEP, -rc);
	if (s->ruleset >= 0) {
		rc = sv_landlock_enter(s->ruleset);
		if (rc < 0)
			child_fail(sock, STEP_FLOOR, -rc);
	}
}

static void hand_over(const struct sv_spawn *s, int sock)
{
	static struct sv_messenger m;
	bool killable;
	int fd, rc = sv_messenger_start(&m, sock);
	char go;

	if (rc < 0)
		child_fail(sock, STEP_SEND, -rc);
	fd = sv_filter_install(s->filter, s->filter_len, &killable);
	if (fd < 0) {
		sv_messenger_send(&m, -1, false);
		child_fail(sock, STEP_FILTER, -fd);
	}
	if (sv_messenger_send(&m, fd, killable) < 0)
		child_fail(sock, STEP_SEND, EPIPE);
	close(fd);
	if (read(sock, &go, 1) != 1)
		_exit(127);
}

static char *const *as_args(const char *const *v)
{
	return (char *const *)(uintptr_t)v;
}

/* As execvp(3): the next candidate after "not there", EACCES remembered, a
 * file without a magic number goes to the shell. */
static int try_all(const struct sv_start *st, const struct candidates *c, const char **sh_argv)
{
	int seen = ENOENT;
	size_t i;

	for (i = 0; i < c->n; i++) {
		execve(c->v[i], as_args(st->argv), as_args(st->envp));
		if (errno == ENOEXEC) {
			sh_argv[1] = c->v[i];
			execve("/bin/sh", as_args(sh_argv), as_args(st->envp));
		}
		if (errno == EACCES)
			seen = EACCES;
		else if (errno != ENOENT && errno != ENOTDIR)
			return errno;
	}
	return seen;
}

static _Noreturn void child(const struct sv_spawn *s, const struct candidates *c,
			    const char **sh_argv, int sock, pid_t parent)
{
	int err;

	reset_signals(s->mask);
	confine(s, sock, parent);
	hand_over(s, sock);
	err = try_all(s->start, c, sh_argv);
	child_fail(sock, STEP_OK, err);
}

/* An inherited socket that takes addresses would send where no rule looked. */
static int check_stdio(struct sv_err *err)
{
	int fd;

	for (fd = 0; fd < 3; fd++) {
		int type = 0;
		socklen_t n = sizeof(type);

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0)
			continue;
		if (type != SOCK_STREAM && type != SOCK_SEQPACKET)
			return sv_fail(err, ESOCKTNOSUPPORT, "stdio",
				       "descriptor %d is a datagram socket: give the command a pipe or a file", fd);
	}
	return 0;
}

static int receive(struct sv_spawn *s, int sock, struct sv_err *err)
{
	struct report r = { STEP_PARENT, EPIPE };
	uint8_t note = 0;
	int fd = sv_recv_fd(sock, &note);

	if (fd >= 0) {
		if (s->need_killable && !note) {
			close(fd);
			return sv_fail(err, ENOSYS, "wait-killable",
				       "this kernel cannot keep a brokered call from running twice "
				       "(seccomp WAIT_KILLABLE_RECV, Linux 5.19)");
		}
		s->listener = fd;
		s->killable = note;
		return 0;
	}
	if (fd == -ENOMSG && recv(sock, (char *)&r + 1, sizeof(r) - 1, MSG_WAITALL) ==
				     (ssize_t)sizeof(r) - 1)
		((char *)&r)[0] = (char)note;
	if (r.step < 0 || r.step > STEP_SEND)
		r.step = STEP_PARENT;
	if (r.step == STEP_FILTER && r.err == EBUSY)
		return sv_fail(err, EBUSY, "filter", "another supervisor already holds this tree");
	return sv_fail(err, r.err, "start", "%s: %s", step_text[r.step], strerror(r.err));
}

static size_t count(const char *const *v)
{
	size_t n = 0;

	while (v[n])
		n++;
	return n;
}

static int run(struct sv_spawn *s, const struct candidates *c, const char **sh_argv,
	       struct sv_err *err)
{
	const pid_t parent = getpid();
	int sv[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return sv_fail(err, errno, "start", "no socket pair: %s", strerror(errno));
	s->pid = fork();
	if (s->pid == 0)
		child(s, c, sh_argv, sv[1], parent);
	rc = s->pid < 0 ? sv_fail(err, errno, "start", "no process can be started: %s",
				  strerror(errno)) : 0;
	close(sv[1]);
	if (rc == 0)
		rc = receive(s, sv[0], err);
	if (rc < 0) {
		close(sv[0]);
		if (s->pid > 0) {
			kill(s->pid, SIGKILL);
			waitpid(s->pid, NULL, 0);
		}
		return rc;
	}
	s->control = sv[0];
	return 0;
}

int sv_spawn_child(struct sv_spawn *s, struct sv_err *err)
{
	struct candidates c = { NULL, 0 };
	size_t n = count(s->start->argv), i;
	const char **sh_argv;
	int rc = check_stdio(err);

	if (rc < 0)
		return rc;
	if (n == 0)
		return sv_fail(err, EINVAL, "start", "no command given");
	sh_argv = calloc(n + 2, sizeof(*sh_argv));
	if (!sh_argv || find_candidates(s->start, &c) < 0) {
		rc = sv_fail(err, ENOMEM, "start", "out of memory");
	} else {
		sh_argv[0] = "sh";
		for (i = 1; i < n; i++)
			sh_argv[i + 1] = s->start->argv[i];
		rc = run(s, &c, sh_argv, err);
	}
	candidates_free(&c);
	free(sh_argv);
	return rc;
}

int sv_spawn_release(struct sv_spawn *s)
{
	return send(s->control, "g", 1, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}
