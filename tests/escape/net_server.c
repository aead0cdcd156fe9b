/* net_server.c - the two ends that a race may reach: 127.0.0.2, which is allowed, and
 * 127.0.0.1, which is not, at one port, by TCP and UDP. Prints the port, and ends with its
 * standard input. The datagram "?" at 127.0.0.2 is answered with how many came to 127.0.0.1. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GOOD_TCP, GOOD_UDP, BAD_TCP, BAD_UDP, INPUT, ENDS };

static struct pollfd ends[ENDS] = { [INPUT] = { .fd = 0, .events = POLLIN } };

static void open_end(int i, uint16_t *port)
{
	const int type = i & 1 ? SOCK_DGRAM : SOCK_STREAM;
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = *port };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

	a.sin_addr.s_addr = inet_addr(i < BAD_TCP ? "127.0.0.2" : "127.0.0.1");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, n) < 0 || (type == SOCK_STREAM && listen(fd, 4096) < 0)) {
		perror("net_server");
		exit(1);
	}
	getsockname(fd, (struct sockaddr *)&a, &n);
	*port = a.sin_port;
	ends[i] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* Takes all that waits at one end; returns how many. */
static long take(int i, long bad)
{
	struct linger hard = { 1, 0 };
	struct sockaddr_in from;
	char byte, text[32];
	long count = 0;

	for (;;) {
		socklen_t n = sizeof(from);
		int fd = i & 1 ? (int)recvfrom(ends[i].fd, &byte, 1, 0, (struct sockaddr *)&from, &n) :
				 accept4(ends[i].fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			return count;
		count++;
		if (!(i & 1)) {
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
			close(fd);
		} else if (byte == '?') {
			int len = snprintf(text, sizeof(text), "%ld", bad);

			sendto(ends[i].fd, text, (size_t)len, 0, (struct sockaddr *)&from, n);
		}
	}
}

int main(void)
{
	uint16_t port = 0;
	long bad = 0;

	for (int i = 0; i < INPUT; i++)
		open_end(i, &port);
	printf("%d\n", ntohs(port));
	fflush(stdout);
	while (poll(ends, ENDS, -1) > 0 && !ends[INPUT].revents) {
		bad += take(BAD_TCP, 0) + take(BAD_UDP, 0);
		take(GOOD_TCP, 0);
		take(GOOD_UDP, bad);
	}
	return 0;
}
