/* watcher.c - duplicates an inotify descriptor of the caller. */
#include "decode/watcher.h"

#include "decode/dupfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Only what looks like an inotify instance is duplicated: of anything else a
 * copy of ours could be noticed, as an end of file that does not come. */
static int looks_like_one(const struct sv_tracee *t, int number)
{
	static const char expected[] = "anon_inode:inotify";
	char name[64], text[sizeof(expected)];
	ssize_t k;

	if (number < 0)
		return -EBADF;
	snprintf(name, sizeof(name), "%d/fd/%d", (int)t->call->tid, number);
	k = readlinkat(t->proc_fd, name, text, sizeof(text));
	if (k < 0)
		return errno == ENOENT ? -EBADF : -errno;
	if (k == sizeof(expected) - 1 && !memcmp(text, expected, (size_t)k))
		return 0;
	return sv_tracee_fd_is_path(t, number) ? -EBADF : -EINVAL;
}

/* The kernel itself is asked, with a name that it cannot read: what it says
 * before that is what it would say natively. */
static int ask_kernel(int fd, uint32_t mask)
{
	return syscall(SYS_inotify_add_watch, fd, NULL, mask) < 0 ? -errno : -EINVAL;
}

int sv_take_watcher(const struct sv_tracee *t, int number, uint32_t mask, int *out)
{
	int rc = ask_kernel(-1, mask);

	*out = -EPERM;
	if (rc != -EBADF)
		return rc;
	rc = looks_like_one(t, number);
	if (rc == -EBADF || rc == -EINVAL)
		return rc;
	if (rc < 0)
		return 0;
	*out = sv_duplicate(t, number);
	if (*out == -EBADF)
		return -EBADF;
	if (*out < 0)
		return 0;
	rc = ask_kernel(*out, mask);
	return rc == -EFAULT ? 0 : rc;
}
