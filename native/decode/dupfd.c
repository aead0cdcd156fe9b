/* dupfd.c - pidfd_getfd, and open folders. */
#include "decode/dupfd.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* PIDFD_THREAD: threads may have descriptors of their own. */
enum { THREAD = O_EXCL };

/* Before Linux 6.9 a pidfd is always of the thread group's leader: of use where
 * the thread still shares its descriptors. */
static int open_pidfd(const struct sv_tracee *t)
{
	int fd = (int)syscall(SYS_pidfd_open, t->call->tid, THREAD);
	pid_t tgid;

	if (fd >= 0 || errno != EINVAL)
		return fd < 0 ? -errno : fd;
	if (sv_tracee_tgid(t, &tgid) < 0)
		return -ESRCH;
	if (tgid != t->call->tid && syscall(SYS_kcmp, tgid, t->call->tid, KCMP_FILES, 0, 0))
		return -EPERM;
	fd = (int)syscall(SYS_pidfd_open, tgid, 0);
	return fd < 0 ? -errno : fd;
}

int sv_duplicate(const struct sv_tracee *t, int number)
{
	cleanup_fd int pidfd = open_pidfd(t);
	int fd;

	if (pidfd < 0)
		return pidfd;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	return fd < 0 ? -errno : fd;
}

/* Anything else is not duplicated: a copy of ours could be noticed. */
int sv_take_folder(const struct sv_tracee *t, int number, int *out)
{
	cleanup_fd int pin = sv_tracee_fd(t, number);
	struct stat st;

	*out = -EPERM;
	if (pin < 0)
		return pin == -EBADF ? -EBADF : 0;
	if (fstat(pin, &st) == 0 && !S_ISDIR(st.st_mode))
		return sv_tracee_fd_is_path(t, number) ? -EBADF : -ENOTDIR;
	*out = sv_duplicate(t, number);
	return *out == -EBADF ? -EBADF : 0;
}

int sv_take_socket(const struct sv_tracee *t, int number, int *out)
{
	socklen_t n = sizeof(int);
	int type, fd = sv_duplicate(t, number), rc = 0;

	*out = -EPERM;
	if (fd < 0)
		return fd == -EBADF ? -EBADF : 0;
	/* of a descriptor with O_PATH EBADF, of any other that is none ENOTSOCK */
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0)
		rc = -errno;
	if (rc < 0)
		close(fd);
	else
		*out = fd;
	return rc;
}
