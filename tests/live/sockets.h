/* sockets.h - what the programs about the edges of sockets share. */
#ifndef SOCKETS_H
#define SOCKETS_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct sockaddr addr;

static inline const char *outcome(long rc)
{
	return rc < 0 ? strerrorname_np(errno) : "ok";
}

static inline void say(const char *what, long rc)
{
	printf("%s %s\n", what, outcome(rc));
	fflush(stdout);
}

static inline struct sockaddr_in ip4(const char *ip, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	a.sin_addr.s_addr = inet_addr(ip);
	return a;
}

static inline struct sockaddr_un local(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	memcpy(a.sun_path, path, strnlen(path, sizeof(a.sun_path)));
	return a;
}

static inline void *idle(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* A second thread: what its program sends then goes through the supervisor. */
static inline void be_two(void)
{
	pthread_t t;

	pthread_create(&t, NULL, idle, NULL);
}

/* A listener on 127.0.0.2, its address in *at. */
static inline int serve(struct sockaddr_in *at, int queue, int protocol)
{
	int fd = socket(AF_INET, SOCK_STREAM, protocol);
	socklen_t n = sizeof(*at);

	*at = ip4("127.0.0.2", 0);
	if (bind(fd, (addr *)at, n) < 0 || listen(fd, queue) < 0) {
		say("serve", -1);
		exit(1);
	}
	getsockname(fd, (addr *)at, &n);
	return fd;
}

#endif
