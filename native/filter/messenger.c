/* messenger.c - one descriptor, sent by a process of its own. */
#include "filter/messenger.h"

#include "filter/install.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int deliver(void *arg)
{
	struct sv_messenger *m = arg;
	char go;

	/* it holds both ends of the pipe, which tells it nothing of a child that died before */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == m->parent &&
	    read(m->wake[0], &go, 1) == 1 && m->fd >= 0)
		m->rc = sv_send_fd(m->sock, m->fd, m->note);
	_exit(0);
}

int sv_messenger_start(struct sv_messenger *m, int sock)
{
	m->sock = sock;
	m->rc = -EPIPE;
	if (pipe2(m->wake, O_CLOEXEC) < 0)
		return -errno;
	m->parent = getpid();
	/* no signal at its end: where SIGCHLD is blocked, the command would find it pending */
	m->pid = clone(deliver, m->stack + sizeof(m->stack), CLONE_VM | CLONE_FILES, m);
	return m->pid < 0 ? -errno : 0;
}

int sv_messenger_send(struct sv_messenger *m, int fd, bool killable)
{
	m->fd = fd;
	m->note = killable;
	if (write(m->wake[1], "g", 1) != 1)
		kill(m->pid, SIGKILL);
	while (waitpid(m->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	close(m->wake[0]);
	close(m->wake[1]);
	return m->rc;
}
