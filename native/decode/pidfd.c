/* pidfd.c - /proc/TID/fdinfo/N of a pidfd. */
#include "decode/pidfd.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SELF_THREAD = -10000, SELF_PROCESS = -10001 };	/* PIDFD_SELF_* */

static int own(const struct sv_tracee *t, int fd, struct sv_pidfd *out)
{
	out->thread = fd == SELF_THREAD;
	out->pid = t->call->tid;
	return out->thread ? 0 : sv_tracee_tgid(t, &out->pid);
}

static bool is_folder(const struct sv_tracee *t, int fd)
{
	cleanup_fd int there = sv_tracee_fd(t, fd);
	struct stat st;

	return there >= 0 && fstat(there, &st) == 0 && S_ISDIR(st.st_mode);
}

int sv_tracee_pidfd(const struct sv_tracee *t, int fd, struct sv_pidfd *out)
{
	char name[64], text[1024];
	cleanup_fd int info = -1;
	const char *pid, *flags;
	ssize_t n;

	if (fd == SELF_THREAD || fd == SELF_PROCESS)
		return own(t, fd, out);
	if (fd < 0)
		return -EBADF;
	snprintf(name, sizeof(name), "%d/fdinfo/%d", (int)t->call->tid, fd);
	info = openat(t->proc_fd, name, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return errno == ENOENT ? -EBADF : -errno;
	n = read(info, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = 0;
	pid = strstr(text, "\nPid:");
	flags = strstr(text, "flags:");
	if (!pid || !flags)
		return is_folder(t, fd) ? -EISDIR : -EBADF;
	out->pid = (pid_t)strtol(pid + 5, NULL, 10);
	out->thread = strtoul(flags + 6, NULL, 8) & O_EXCL;	/* PIDFD_THREAD */
	return out->pid > 0 ? 0 : -ESRCH;
}
