/* respond.c - SEND and ADDFD. */
#include "effect/respond.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif

static int send_response(int listener, struct seccomp_notif_resp *r)
{
	while (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, r) < 0) {
		if (errno != EINTR)
			return errno == EINPROGRESS ? -ENOENT : -errno;
	}
	return 0;
}

int sv_answer_errno(int listener, uint64_t id, int err)
{
	struct seccomp_notif_resp r = { .id = id, .error = -(err > 0 ? err : EACCES) };

	return send_response(listener, &r);
}

int sv_answer_value(int listener, uint64_t id, int64_t value)
{
	struct seccomp_notif_resp r = { .id = id, .val = value };

	return send_response(listener, &r);
}

int sv_answer_continue(int listener, uint64_t id)
{
	struct seccomp_notif_resp r = { .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	return send_response(listener, &r);
}

int sv_lend(int listener, uint64_t id, int fd)
{
	struct seccomp_notif_addfd add = { .id = id, .srcfd = (uint32_t)fd, .newfd_flags = O_CLOEXEC };
	int n, saved;

	do {
		n = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	} while (n < 0 && errno == EINTR);
	saved = errno;
	close(fd);
	return n < 0 ? -saved : n;
}

int sv_inject(int listener, uint64_t id, int fd, bool cloexec, bool writable)
{
	struct seccomp_notif_addfd add = {
		.id = id,
		.flags = writable ? 0 : SECCOMP_ADDFD_FLAG_SEND,
		.srcfd = (uint32_t)fd,
		.newfd_flags = cloexec ? O_CLOEXEC : 0,
	};
	int n, saved;

	do {
		n = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	} while (n < 0 && errno == EINTR);
	saved = errno;
	close(fd);
	if (n < 0)
		return -saved;
	return writable ? sv_answer_value(listener, id, n) : 0;
}
