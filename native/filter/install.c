/* install.c - seccomp(2) and SCM_RIGHTS. */
#include "filter/install.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#define SYNC_WAKE_UP 1UL

int sv_filter_install(const uint8_t *program, size_t bytes, bool *killable)
{
	struct sock_fprog prog = {
		.len = (unsigned short)(bytes / sizeof(struct sock_filter)),
		.filter = (struct sock_filter *)(uintptr_t)program,
	};
	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			  flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog);

	*killable = fd >= 0;
	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
	return fd < 0 ? -errno : (int)fd;
}

int sv_send_fd(int sock, int fd, uint8_t note)
{
	union { char raw[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } ctl;
	struct iovec io = { &note, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = ctl.raw,
			    .msg_controllen = sizeof(ctl.raw) };
	struct cmsghdr *h = (struct cmsghdr *)(void *)ctl.raw;

	memset(ctl.raw, 0, sizeof(ctl.raw));
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	return sendmsg(sock, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int sv_recv_fd(int sock, uint8_t *note)
{
	union { char raw[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } ctl;
	struct iovec io = { note, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = ctl.raw,
			    .msg_controllen = sizeof(ctl.raw) };
	struct cmsghdr *h;
	ssize_t k;
	int fd;

	do {
		k = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	} while (k < 0 && errno == EINTR);
	if (k <= 0)
		return k < 0 ? -errno : -EPIPE;
	h = CMSG_FIRSTHDR(&m);
	if (!h || h->cmsg_type != SCM_RIGHTS || h->cmsg_len != CMSG_LEN(sizeof(int)))
		return -ENOMSG;
	memcpy(&fd, CMSG_DATA(h), sizeof(fd));
	return fd;
}

void sv_listener_tune(int listener)
{
	/* by value: given a pointer the kernel refuses silently */
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP);
}
