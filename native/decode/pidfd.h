/* pidfd.h - whom a task's pidfd stands for. */
#ifndef SV_DECODE_PIDFD_H
#define SV_DECODE_PIDFD_H

#include "decode/tracee.h"

struct sv_pidfd {
	pid_t pid;		/* as this process numbers it */
	bool thread;		/* it is for that thread alone (PIDFD_THREAD) */
};

/* Looks once: the number may mean another one as soon as this returns, so what is done
 * next goes by out->pid. The kernel's own words for "this thread" and "this process" are
 * known, too. -EBADF: no pidfd, -ESRCH: it was reaped, -EISDIR: a folder, perhaps one of
 * /proc, which pidfd_send_signal(2) takes, too. */
int sv_tracee_pidfd(const struct sv_tracee *t, int fd, struct sv_pidfd *out);

#endif
