/* net_race.c - what a socket is connected or sent to changes while the call is judged: its
 * address ("connect", "sendto"), the name of a message ("name"), the message's pointer to
 * it ("pointer"); by a sibling thread, or by a CLONE_VM process ("peer"). Or the socket
 * itself: a local one and one of IP take turns on the descriptor of a connect
 * ("dup2-connect"), a stream and a datagram on that of a sendmsg ("dup2-send"), by a
 * thread; or by a process that shares the descriptors alone ("dup2-files").
 *
 * A hit is what came to 127.0.0.1, as net_server.c counts it. */
#include "race.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

static struct sockaddr_in good, bad;
static struct {
	struct sockaddr_in name;
	struct msghdr h;
	struct iovec iov;
	int slot, one, two;
	bool pointer, swaps;
	volatile int stop;
} *s;

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };

	a.sin_addr.s_addr = inet_addr(ip);
	return a;
}

static void *change(void *arg)
{
	volatile uint32_t *ip = &s->name.sin_addr.s_addr;
	void *volatile *name = &s->h.msg_name;
	uint32_t seed = 88172645u;

	(void)arg;
	for (int i = 0; !s->stop; i++) {
		if (s->swaps)
			dup2(i & 1 ? s->one : s->two, s->slot);
		else if (s->pointer)
			*name = i & 1 ? &good : &bad;
		else
			*ip = i & 1 ? good.sin_addr.s_addr : bad.sin_addr.s_addr;
		race_dwell(&seed);
	}
	return NULL;
}

static int change_peer(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(RACE_ALARM);
	change(arg);
	_exit(0);
}

/* How many came to 127.0.0.1 until now. */
static long came(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[32] = "";

	for (int i = 0; i < 20; i++) {
		/* what is on its way must arrive */
		usleep(100000);
		if (sendto(fd, "?", 1, 0, (struct sockaddr *)&good, sizeof(good)) != 1)
			race_fail("asking the server");
		if (poll(&p, 1, 1000) == 1 && recv(fd, text, sizeof(text) - 1, 0) > 0) {
			close(fd);
			return atol(text);
		}
	}
	race_fail("no answer of the server");
	return 0;
}

static int tcp(void)
{
	struct linger hard = { 1, 0 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	return fd;
}

static void try_connect(struct race *r)
{
	int fd = s->swaps ? s->slot : tcp();

	if (connect(fd, (struct sockaddr *)&s->name, sizeof(s->name)) < 0 && errno == EACCES)
		r->other++;
	if (!s->swaps) {
		close(fd);
		return;
	}
	/* a connected one is of no more use */
	close(s->one);
	s->one = tcp();
}

static void try_send(struct race *r, bool message)
{
	const long n = message ? sendmsg(s->slot, &s->h, MSG_DONTWAIT | MSG_NOSIGNAL) :
				 sendto(s->slot, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&s->name,
					sizeof(s->name));

	if (n < 0 && errno == EACCES)
		r->other++;
}

static void prepare(const char *mode)
{
	int pair[2];

	s = race_shared();
	s->name = good;
	s->h = (struct msghdr){ .msg_name = &s->name, .msg_namelen = sizeof(s->name),
				.msg_iov = &s->iov, .msg_iovlen = 1 };
	s->iov = (struct iovec){ "x", 1 };
	s->slot = socket(AF_INET, SOCK_DGRAM, 0);
	s->pointer = !strcmp(mode, "pointer");
	s->swaps = !strncmp(mode, "dup2", 4);
	if (!s->swaps)
		return;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		race_fail("socketpair");
	s->two = pair[0];
	s->one = !strcmp(mode, "dup2-connect") ? tcp() : socket(AF_INET, SOCK_DGRAM, 0);
	s->slot = dup2(s->two, 100);
	s->name = bad;
}

int main(int argc, char **argv)
{
	struct race r;
	const char *mode;
	pthread_t t = 0;
	pid_t peer = 0;
	bool connects;
	long before;

	race_usage(argc, 4, "net_race TRIES PORT MODE [peer]");
	race_begin(&r, argv[1]);
	good = address("127.0.0.2", argv[2]);
	bad = address("127.0.0.1", argv[2]);
	mode = argv[3];
	prepare(mode);
	connects = strstr(mode, "connect") != NULL;
	before = came();
	if (!strcmp(mode, "dup2-files"))
		peer = clone(change_peer, (char *)race_shared() + RACE_BUF, CLONE_FILES | SIGCHLD, NULL);
	else if (race_is(argc, argv, 4, "peer"))
		peer = race_clone_vm(change_peer, NULL);
	else
		t = race_thread(change, NULL);
	while (race_more(&r)) {
		if (connects)
			try_connect(&r);
		else
			try_send(&r, strcmp(mode, "sendto") != 0);
	}
	s->stop = 1;
	if (t)
		pthread_join(t, NULL);
	if (peer > 0)
		waitpid(peer, NULL, 0);
	r.hits = came() - before;
	return race_end(&r);
}
