/* netloop.c - times calls of the network on this machine: `netloop OP N` prints
 * "OP ns_per_call". Ops: socket (make and close one: under network rules that is one empty
 * notification), connect (socket, connect, close, and the other side's accept and close),
 * eager (the same, non-blocking), sendto (a datagram by address, and its receipt), send (the
 * same connected), stream (64 KiB written and read). One tenth more runs first. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in here[3];	/* of a listener, of datagrams, of a stream */
static int listener, from, to, both[2];
static char data[65536];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int bound(int type, struct sockaddr_in *name)
{
	socklen_t n = sizeof(*name);
	int fd = socket(AF_INET, type, 0);

	*name = (struct sockaddr_in){ .sin_family = AF_INET };
	name->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)name, n) < 0 ||
	    getsockname(fd, (struct sockaddr *)name, &n) < 0)
		exit(1);
	return fd;
}

static void *take(void *unused)
{
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0)
		close(fd);
	return unused;
}

static void prepare(void)
{
	pthread_t thread;

	int stream = bound(SOCK_STREAM, &here[2]);

	listen(stream, 1);
	both[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(both[0], (struct sockaddr *)&here[2], sizeof(here[2])) < 0)
		exit(1);
	both[1] = accept(stream, NULL, NULL);
	listener = bound(SOCK_STREAM, &here[0]);
	listen(listener, 1000);
	to = bound(SOCK_DGRAM, &here[1]);
	from = socket(AF_INET, SOCK_DGRAM, 0);
	pthread_create(&thread, NULL, take, NULL);
}

static int connect_once(int flags)
{
	const struct linger reset = { 1, 0 };	/* no port is kept waiting */
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0);
	int rc = connect(fd, (struct sockaddr *)&here[0], sizeof(here[0]));

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	return flags ? 0 : rc;
}

static int stream_once(void)
{
	size_t done = 0;
	ssize_t n;

	if (write(both[0], data, sizeof(data)) != (ssize_t)sizeof(data))
		return -1;
	for (; done < sizeof(data); done += (size_t)n)
		if ((n = read(both[1], data, sizeof(data))) <= 0)
			return -1;
	return 0;
}

static int once(const char *op)
{
	if (!strcmp(op, "socket"))
		return close(socket(AF_INET, SOCK_STREAM, 0));
	if (!strcmp(op, "connect"))
		return connect_once(0);
	if (!strcmp(op, "eager"))
		return connect_once(SOCK_NONBLOCK);
	if (!strcmp(op, "stream"))
		return stream_once();
	if (!strcmp(op, "sendto"))
		return sendto(from, data, 100, 0, (struct sockaddr *)&here[1], sizeof(here[1])) < 0 ||
		       recv(to, data, 200, 0) != 100;
	if (!strcmp(op, "send"))
		return send(from, data, 100, 0) != 100 || recv(to, data, 200, 0) != 100;
	return -1;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0, i;
	double start;

	if (argc != 3 || n <= 0)
		return 2;
	prepare();
	if (!strcmp(argv[1], "send") && connect(from, (struct sockaddr *)&here[1], sizeof(here[1])) < 0)
		return 1;
	for (i = 0; i < n / 10 + 1; i++) {
		if (once(argv[1])) {
			perror(argv[1]);
			return 1;
		}
	}
	start = now();
	for (i = 0; i < n; i++)
		once(argv[1]);
	printf("%s %.1f\n", argv[1], (now() - start) / (double)n);
	printf("Seccomp:\t%d\n", prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
	return 0;
}
