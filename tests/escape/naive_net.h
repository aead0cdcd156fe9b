/* naive_net.h - a naive supervisor's ways to judge what a socket is connected or sent to. */
#ifndef NAIVE_NET_H
#define NAIVE_NET_H

#include "naive.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline bool good_address(const struct ask *a, uint64_t at)
{
	struct sockaddr_in in;

	return copy_in((pid_t)a->n.pid, at, &in, sizeof(in)) &&
	       in.sin_addr.s_addr != inet_addr(a->forbidden);
}

/* connect and sendto */
static inline bool judge_address(struct ask *a)
{
	return good_address(a, a->n.data.args[a->call->path]);
}

static inline bool judge_message(struct ask *a)
{
	struct msghdr h;

	return copy_in((pid_t)a->n.pid, a->n.data.args[1], &h, sizeof(h)) &&
	       (!h.msg_name || good_address(a, (uintptr_t)h.msg_name));
}

static inline int socket_is(const struct ask *a, int name)
{
	int pidfd = (int)syscall(SYS_pidfd_open, a->n.pid, 0);
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)a->n.data.args[0], 0);
	int value = -1;
	socklen_t n = sizeof(value);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, name, &value, &n) < 0)
		value = -1;
	close(fd);
	close(pidfd);
	return value;
}

/* "A local socket takes no such address, so let it." */
static inline bool judge_family(struct ask *a)
{
	return socket_is(a, SO_DOMAIN) == AF_UNIX || judge_address(a);
}

/* "A stream has no use for an address, so let it." */
static inline bool judge_type(struct ask *a)
{
	return socket_is(a, SO_TYPE) == SOCK_STREAM || judge_message(a);
}

#endif
