/* network_waits.c - calls on sockets that wait, that fail half-way, or that come by thousands.
 *
 *   network_waits signals WHAT    connect, local, stream or packets: interrupted, twice
 *   network_waits busy WHAT       opens files while 200 threads wait in such calls
 *   network_waits rights          descriptors that are passed, from a program with threads
 *   network_waits many WHAT N     N calls, most of which fail; then waits for its input's end
 *   network_waits pending         whether SIGCHLD waits, blocked since before the start */
#include "sockets.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

enum { BIG = 4 << 20, WAITERS = 200, BUSY_MS = 2000 };

static char big[BIG];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- calls that wait for ever */

static struct sockaddr_in full;
static struct sockaddr_un full_local = { .sun_family = AF_UNIX, .sun_path = "full" };

/* Servers whose queues are full. */
static void fill_up(void)
{
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	serve(&full, 0, 0);
	for (int i = 0; i < 4; i++)
		connect(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), (addr *)&full, sizeof(full));
	unlink(full_local.sun_path);
	if (bind(s, (addr *)&full_local, sizeof(full_local)) < 0 || listen(s, 0) < 0)
		say("fill", -1);
	connect(socket(AF_UNIX, SOCK_STREAM, 0), (addr *)&full_local, sizeof(full_local));
}

static int full_pair(int type)
{
	int pair[2];

	socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, pair);
	while (write(pair[0], big, 1000) > 0)
		;
	fcntl(pair[0], F_SETFL, 0);
	return pair[0];
}

static long wait_in(const char *what)
{
	struct iovec iov = { big, sizeof(big) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (!strcmp(what, "connect"))
		return connect(socket(AF_INET, SOCK_STREAM, 0), (addr *)&full, sizeof(full));
	if (!strcmp(what, "local"))
		return connect(socket(AF_UNIX, SOCK_STREAM, 0), (addr *)&full_local,
			       sizeof(full_local));
	if (!strcmp(what, "stream"))
		return sendmsg(full_pair(SOCK_STREAM), &h, 0);
	iov.iov_len = 1000;
	return sendmsg(full_pair(SOCK_SEQPACKET), &h, 0);
}

static volatile sig_atomic_t came;

static void on_signal(int sig)
{
	(void)sig;
	came++;
}

/* The first signal is to be gone on after, the second not. */
static void *disturb(void *who)
{
	usleep(300000);
	pthread_kill(*(pthread_t *)who, SIGUSR1);
	usleep(300000);
	pthread_kill(*(pthread_t *)who, SIGUSR2);
	return NULL;
}

static void signals(const char *what)
{
	struct sigaction again = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sigaction once = { .sa_handler = on_signal };
	pthread_t self = pthread_self(), t;
	const double start = now();
	long rc;

	sigaction(SIGUSR1, &again, NULL);
	sigaction(SIGUSR2, &once, NULL);
	fill_up();
	pthread_create(&t, NULL, disturb, &self);
	rc = wait_in(what);
	printf("%s %s signals %d %s\n", what, outcome(rc), (int)came,
	       now() - start > 500 ? "late" : "early");
}

/* ---- others meanwhile */

static void *wait_there(void *what)
{
	wait_in(what);
	return NULL;
}

/* How many files can be opened one after the other, each after a rest of 1 ms. */
static void busy(char *what)
{
	const double start = now();
	pthread_attr_t attr;
	int opens = 0;

	fill_up();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < WAITERS; i++) {
		pthread_t t;

		pthread_create(&t, &attr, wait_there, what);
	}
	while (now() - start < BUSY_MS) {
		close(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
		opens++;
		usleep(1000);
	}
	printf("%d\n", opens);
}

/* ---- passed descriptors */

union control {
	struct cmsghdr h;
	char room[CMSG_SPACE(300 * sizeof(int))];
};

static long pass(int to, const int *fds, int n, size_t cut, int count)
{
	static union control c[2];
	struct iovec iov = { "x", 1 };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c };
	const size_t space = CMSG_SPACE((size_t)n * sizeof(int));

	memset(c, 0, sizeof(c));
	for (int i = 0; i < count; i++) {
		struct cmsghdr *m = (void *)((char *)c + (size_t)i * space);

		*m = (struct cmsghdr){ CMSG_LEN((size_t)n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(m), fds, (size_t)n * sizeof(int));
	}
	h.msg_controllen = (size_t)count * space - cut;
	return sendmsg(to, &h, MSG_DONTWAIT);
}

/* How many arrive, and whether they are the files that were sent. */
static void take(int from, const int *fds, int n)
{
	static union control c[2];
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c,
			    .msg_controllen = sizeof(c) };
	int got = 0, same = 0;

	if (recvmsg(from, &h, MSG_DONTWAIT) < 0)
		return say("  nothing", -1);
	for (struct cmsghdr *m = CMSG_FIRSTHDR(&h); m; m = CMSG_NXTHDR(&h, m)) {
		int *list = (int *)(void *)CMSG_DATA(m);
		const int here = (int)((m->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		for (int i = 0; i < here; i++, got++) {
			struct stat a, b;

			fstat(list[i], &a);
			fstat(fds[got % n], &b);
			same += a.st_ino == b.st_ino && a.st_dev == b.st_dev;
			close(list[i]);
		}
	}
	printf("  %d arrived, %d the same\n", got, same);
}

static void rights(void)
{
	static int fds[300];
	int pair[2], twice[2], bad[3];
	const int many[] = { 1, 3, 252, 253, 254, 299 };

	be_two();
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	for (int i = 0; i < 300; i++)
		fds[i] = i % 2 ? pair[0] : open("/", O_PATH | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
		printf("%d: %s\n", many[i], outcome(pass(pair[0], fds, many[i], 0, 1)));
		take(pair[1], fds, many[i]);
	}
	twice[0] = twice[1] = pair[0];
	say("the same twice", pass(pair[0], twice, 2, 0, 1));
	take(pair[1], twice, 2);
	say("two headers", pass(pair[0], fds, 2, 0, 2));
	take(pair[1], fds, 2);
	say("too many in two headers", pass(pair[0], fds, 127, 0, 2));
	take(pair[1], fds, 127);
	for (int i = 0; i < 3; i++)
		bad[i] = fds[i];
	bad[2] = 999;
	say("one that is not open", pass(pair[0], bad, 3, 0, 1));
	bad[1] = -1;
	say("a negative one", pass(pair[0], bad, 2, 0, 1));
	for (size_t cut = 1; cut <= 32; cut++)
		printf("cut by %zu: %s\n", cut, outcome(pass(pair[0], fds, 3, cut, 1)));
}

/* ---- many */

static unsigned int dice(unsigned int sides)
{
	static unsigned int x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x % sides;
}

/* Control data by chance, most of it wrong, to an address that is allowed. */
static void send_noise(int fd, const struct sockaddr_in *to)
{
	static const int levels[] = { SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_UDP, 282 };
	_Alignas(8) char c[128];
	struct cmsghdr *first = (void *)c;
	struct iovec iov = { dice(8) ? "x" : (void *)8, 1 };
	struct msghdr h = { .msg_name = (void *)(uintptr_t)to, .msg_namelen = sizeof(*to),
			    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c,
			    .msg_controllen = dice(sizeof(c) + 1) };

	for (size_t i = 0; i < sizeof(c); i++)
		c[i] = (char)dice(256);
	*first = (struct cmsghdr){ dice(140), levels[dice(5)], (int)dice(64) };
	sendmsg(fd, &h, MSG_DONTWAIT);
}

static void send_rights(const int *pair)
{
	int fds[200];

	for (int i = 0; i < 200; i++)
		fds[i] = dice(400) ? pair[1] : 999;
	if (pass(pair[0], fds, 1 + (int)dice(200), dice(4) ? 0 : dice(40), 1) > 0)
		take(pair[1], fds, 200);
}

static void send_and_die(const char *what)
{
	pid_t pid = fork();

	if (pid == 0) {
		be_two();
		wait_in(what);
		_exit(0);
	}
	usleep(dice(30000));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void many(const char *what, int n)
{
	static const char *const waits[] = { "connect", "local", "stream", "packets" };
	struct sockaddr_in good, bad = ip4("127.0.0.1", 9);
	int server = serve(&good, 64, 0), udp = socket(AF_INET, SOCK_DGRAM, 0), pair[2];

	be_two();
	fill_up();
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	for (int i = 0; i < n; i++) {
		if (!strcmp(what, "noise")) {
			send_noise(udp, &good);
		} else if (!strcmp(what, "rights")) {
			send_rights(pair);
		} else if (!strcmp(what, "killed")) {
			send_and_die(waits[i % 4]);
		} else {
			int fd = socket(AF_INET, SOCK_STREAM, 0);

			connect(fd, i % 2 ? (addr *)&bad : (addr *)&good, sizeof(good));
			close(fd);
			if (i % 2 == 0)
				close(accept(server, NULL, NULL));
			connect(udp, (addr *)8, sizeof(good));
		}
	}
	printf("done\n");
	fflush(stdout);
	(void)!read(0, big, 1);
}

static void pending(void)
{
	sigset_t set;

	sigpending(&set);
	printf("%s\n", sigismember(&set, SIGCHLD) ? "waits" : "none");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(mode, "signals"))
		signals(argv[2]);
	else if (!strcmp(mode, "busy"))
		busy(argv[2]);
	else if (!strcmp(mode, "rights"))
		rights();
	else if (!strcmp(mode, "many"))
		many(argv[2], atoi(argv[3]));
	else if (!strcmp(mode, "pending"))
		pending();
	return 0;
}
