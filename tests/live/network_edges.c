/* network_edges.c - sockets at their edges; each mode prints one line per call.
 *
 *   network_edges listen PROTOCOL  who may listen: bound ones, and whom a connect left a port
 *   network_edges ways             options that say which way packets take
 *   network_edges forms PORT       every way to write 127.0.0.1:PORT, in every call
 *   network_edges changed PORT N   an IPv6 socket that becomes one of IPv4 while it sends
 *   network_edges netlink          changes to routes and interfaces, by every call
 *   network_edges reach PATH       connects and sends to a local socket; "@" stands for a zero
 *   network_edges relink N DIR OUTSIDE  links OUTSIDE to names that were just bound */
#include "sockets.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

static bool on_every_address(int fd)
{
	struct sockaddr_in a;
	socklen_t n = sizeof(a);
	int listens = 0;
	socklen_t ln = sizeof(listens);

	getsockname(fd, (addr *)&a, &n);
	getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &ln);
	return listens && a.sin_addr.s_addr == INADDR_ANY;
}

static void listen_one(const char *name, int fd)
{
	const int rc = listen(fd, 1);

	printf("%s %s%s\n", name, outcome(rc), on_every_address(fd) ? " everywhere" : "");
}

static void may_listen(int protocol)
{
	struct sockaddr_in to, mine = ip4("127.0.0.2", 0), closed = ip4("127.0.0.2", 1);
	const addr none = { .sa_family = AF_UNSPEC };
	int server = serve(&to, 8, protocol), fd, i;

	listen_one("again", server);
	listen_one("fresh", socket(AF_INET, SOCK_STREAM, protocol));
	fd = socket(AF_INET, SOCK_STREAM, protocol);
	connect(fd, (addr *)&to, sizeof(to));
	listen_one("connected", fd);
	connect(fd, &none, sizeof(none));
	listen_one("dissolved", fd);
	listen_one("accepted", accept(server, NULL, NULL));
	fd = socket(AF_INET, SOCK_STREAM, protocol);
	connect(fd, (addr *)&closed, sizeof(closed));
	listen_one("failed", fd);
	for (i = 0; i < 2; i++) {
		fd = socket(AF_INET, SOCK_STREAM, protocol);
		bind(fd, (addr *)&mine, sizeof(mine));
		connect(fd, i ? (addr *)&closed : (addr *)&to, sizeof(to));
		connect(fd, &none, sizeof(none));
		listen_one(i ? "bound, failed" : "bound, dissolved", fd);
	}
}

static void ways(void)
{
	static const struct {
		const char *name;
		int level;
		uint64_t option;
	} all[] = {
		{ "IP_OPTIONS", IPPROTO_IP, 4 }, { "high IP_OPTIONS", IPPROTO_IP, 4 | 5ULL << 32 },
		{ "IPV6_RTHDR", IPPROTO_IPV6, 57 }, { "IPV6_2292PKTOPTIONS", IPPROTO_IPV6, 6 },
		{ "IPV6_FLOWLABEL_MGR", IPPROTO_IPV6, 32 }, { "SO_BROADCAST", SOL_SOCKET, SO_BROADCAST },
		{ "TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT }, { "IP_TTL", IPPROTO_IP, IP_TTL },
	};
	char value[64] = { 1 };
	int v4 = socket(AF_INET, SOCK_STREAM, 0), v6 = socket(AF_INET6, SOCK_STREAM, 0);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		say(all[i].name, syscall(SYS_setsockopt, all[i].level == IPPROTO_IPV6 ? v6 : v4,
					 all[i].level | 1ULL << 32, all[i].option, value, 4));
}

/* ---- forms of an address */

struct form {
	const char *name;
	union {
		addr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_storage all;
	} a;
	socklen_t len;
};

static struct form form4(const char *name, int family, const char *ip, int port, socklen_t len)
{
	struct form f = { .name = name, .len = len };

	f.a.v4 = ip4(ip, port);
	f.a.v4.sin_family = (sa_family_t)family;
	return f;
}

static struct form form6(const char *ip, int port, socklen_t len)
{
	struct form f = { .name = ip, .len = len };

	f.a.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	inet_pton(AF_INET6, ip, &f.a.v6.sin6_addr);
	return f;
}

/* One byte off its place, as some programs have it. */
static addr *misaligned(const struct form *f)
{
	static char room[sizeof(struct sockaddr_storage) + 1];

	memcpy(room + 1, &f->a, sizeof(f->a));
	return (addr *)(void *)(room + 1);
}

static void reach(int domain, int type, int protocol, const struct form *f)
{
	struct iovec iov = { "x", 1 };
	struct mmsghdr m = { .msg_hdr = { .msg_name = misaligned(f), .msg_namelen = f->len,
					  .msg_iov = &iov, .msg_iovlen = 1 } };
	int fd = socket(domain, type | SOCK_NONBLOCK, protocol);
	char what[96];

	if (fd < 0)
		return;
	snprintf(what, sizeof(what), "%d %d %d %s/%d", domain, type, protocol, f->name, (int)f->len);
	printf("connect %s %s\n", what, outcome(connect(fd, misaligned(f), f->len)));
	if (type == SOCK_DGRAM)
		(void)!write(fd, "x", 1);
	close(fd);
	fd = socket(domain, type | SOCK_NONBLOCK, protocol);
	printf("sendto %s %s\n", what, outcome(sendto(fd, "x", 1, 0, misaligned(f), f->len)));
	printf("fastopen %s %s\n", what,
	       outcome(sendto(fd, "x", 1, MSG_FASTOPEN, misaligned(f), f->len)));
	printf("sendmsg %s %s\n", what, outcome(sendmsg(fd, &m.msg_hdr, 0)));
	printf("sendmmsg %s %s\n", what, outcome(sendmmsg(fd, &m, 1, 0)));
	close(fd);
}

static void forms(int port)
{
	const struct form all[] = {
		form4("plain", AF_INET, "127.0.0.1", port, 16), form4("any", AF_INET, "0.0.0.0", port, 16),
		form4("unspec", AF_UNSPEC, "127.0.0.1", port, 16),
		form4("unspec any", AF_UNSPEC, "0.0.0.0", port, 16),
		form4("v6 family", AF_INET6, "127.0.0.1", port, 16),
		form4("odd family", 77, "127.0.0.1", port, 16),
		form4("short", AF_INET, "127.0.0.1", port, 15), form4("stub", AF_INET, "127.0.0.1", port, 2),
		form4("one", AF_INET, "127.0.0.1", port, 1), form4("none", AF_INET, "127.0.0.1", port, 0),
		form4("long", AF_INET, "127.0.0.1", port, 128),
		form4("too long", AF_INET, "127.0.0.1", port, 129),
		form4("negative", AF_INET, "127.0.0.1", port, (socklen_t)-1),
		form6("::1", port, 28), form6("::", port, 28), form6("::", port, 24),
		form6("::ffff:127.0.0.1", port, 28), form6("::ffff:127.0.0.1", port, 24),
		form6("::ffff:0.0.0.0", port, 28), form6("::127.0.0.1", port, 28),
		form6("::ffff:127.0.0.1", port, 23), form6("64:ff9b::127.0.0.1", port, 28),
		form6("2002:7f00:1::", port, 28),
	};
	const int kinds[][2] = { { SOCK_STREAM, 0 }, { SOCK_STREAM, 262 }, { SOCK_DGRAM, 0 },
				 { SOCK_DGRAM, 136 } };

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			reach(AF_INET, kinds[k][0], kinds[k][1], &all[i]);
			reach(AF_INET6, kinds[k][0], kinds[k][1], &all[i]);
		}
}

/* 127.0.0.1 as the address of a family that says nothing: of IPv6 it is none, of IPv4 one. */
static volatile int changing;

static void *change(void *unused)
{
	const int inet = AF_INET;
	int fd;

	while ((fd = changing) >= 0)
		if (fd)
			setsockopt(fd, IPPROTO_IPV6, 1 /* IPV6_ADDRFORM */, &inet, sizeof(inet));
	return unused;
}

static void changed(int port, int n)
{
	const struct form f = form4("", AF_UNSPEC, "127.0.0.1", port, 16);
	const struct form good = form6("::ffff:127.0.0.2", port, 28);
	static char data[60000];
	int sent = 0;
	pthread_t t;

	pthread_create(&t, NULL, change, NULL);
	for (int i = 0; i < n; i++) {
		int fd = socket(AF_INET6, SOCK_DGRAM, 0);

		connect(fd, &good.a.any, good.len);
		changing = fd;
		sent += sendto(fd, data, sizeof(data), MSG_DONTWAIT, &f.a.any, f.len) > 0;
		changing = 0;
		close(fd);
	}
	changing = -1;
	pthread_join(t, NULL);
	printf("sent %s\n", sent ? "some" : "none");
}

/* ---- netlink */

struct request {
	struct nlmsghdr h;
	struct rtmsg r;
	struct rtattr a;
	uint32_t to;
	struct rtattr b;
	uint32_t oif;
};

/* A route to 198.51.100.0/24 by the loopback interface. */
static struct request route(void)
{
	return (struct request){
		.h = { .nlmsg_len = sizeof(struct request), .nlmsg_type = RTM_NEWROUTE,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE },
		.r = { .rtm_family = AF_INET, .rtm_dst_len = 24, .rtm_table = RT_TABLE_MAIN,
		       .rtm_protocol = RTPROT_STATIC, .rtm_scope = RT_SCOPE_LINK,
		       .rtm_type = RTN_UNICAST },
		.a = { .rta_len = 8, .rta_type = RTA_DST }, .to = htonl(0xc6336400),
		.b = { .rta_len = 8, .rta_type = RTA_OIF }, .oif = 1,
	};
}

/* What the kernel answered. */
static void answered(const char *how, int fd, long n)
{
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char rest[256];
	} a;

	if (n > 0 && recv(fd, &a, sizeof(a), MSG_DONTWAIT) > 0) {
		errno = -a.e.error;
		n = a.e.error ? -1 : 0;
	} else if (n > 0) {
		errno = ENOMSG;
		n = -1;
	}
	say(how, n);
}

static int handed_over(int fd)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} c = { .h = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	char byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c,
			    .msg_controllen = sizeof(c) };
	int pair[2], got = -1;

	memcpy(CMSG_DATA(&c.h), &fd, sizeof(fd));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && sendmsg(pair[0], &h, 0) == 1 &&
	    recvmsg(pair[1], &h, 0) == 1)
		memcpy(&got, CMSG_DATA(&c.h), sizeof(got));
	return got;
}

static void netlink(void)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct sockaddr_nl other = { .nl_family = AF_NETLINK, .nl_pid = 4242 };
	struct request q = route();
	struct iovec iov = { &q, sizeof(q) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), passed = handed_over(fd);

	answered("write", fd, write(fd, &q, sizeof(q)));
	answered("send", fd, send(fd, &q, sizeof(q), 0));
	answered("sendto", fd, sendto(fd, &q, sizeof(q), 0, (addr *)&kernel, sizeof(kernel)));
	answered("sendmsg", fd, sendmsg(fd, &h, 0));
	h.msg_name = &kernel;
	h.msg_namelen = sizeof(kernel);
	answered("sendmsg to", fd, sendmsg(fd, &h, 0));
	answered("passed", passed, write(passed, &q, sizeof(q)));
	say("connect", connect(fd, (addr *)&kernel, sizeof(kernel)));
	answered("connected", fd, write(fd, &q, sizeof(q)));
	say("other", connect(fd, (addr *)&other, sizeof(other)));
	say("ioctl", ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &up));
}

/* ---- local sockets */

static void reach_local(const char *path)
{
	struct sockaddr_un a = local(path);
	const int len = (int)(2 + strnlen(path, sizeof(a.sun_path)));
	int s = socket(AF_UNIX, SOCK_STREAM, 0), d = socket(AF_UNIX, SOCK_DGRAM, 0);

	for (size_t i = 0; i < sizeof(a.sun_path); i++)
		if (a.sun_path[i] == '@')
			a.sun_path[i] = 0;
	say("stream", connect(s, (addr *)&a, (socklen_t)len));
	say("datagram", sendto(d, "x", 1, 0, (addr *)&a, (socklen_t)len));
}

static char spot[108], victim[108];
static volatile int over;

static void *relinker(void *unused)
{
	while (!over) {
		unlink(spot);
		(void)!link(victim, spot);
	}
	return unused;
}

/* What is at the name when it was bound must not be taken for what was bound. */
static void relink(int n, const char *folder, const char *outside)
{
	int reached = 0, bound = 0;
	pthread_t t;

	snprintf(spot, sizeof(spot), "%s/s", folder);
	snprintf(victim, sizeof(victim), "%s", outside);
	pthread_create(&t, NULL, relinker, NULL);
	for (int i = 0; i < n; i++) {
		struct sockaddr_un a = local(spot);
		int s = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);
		char byte;

		unlink(spot);
		bound += bind(s, (addr *)&a, sizeof(a)) == 0;
		reached += connect(c, (addr *)&a, sizeof(a)) == 0 && read(c, &byte, 1) == 1;
		close(c);
		close(s);
	}
	over = 1;
	pthread_join(t, NULL);
	printf("bound %s reached %d\n", bound ? "some" : "none", reached);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "listen"))
		may_listen(atoi(argv[2]));
	else if (!strcmp(mode, "ways"))
		ways();
	else if (!strcmp(mode, "forms"))
		forms(atoi(argv[2]));
	else if (!strcmp(mode, "changed"))
		changed(atoi(argv[2]), atoi(argv[3]));
	else if (!strcmp(mode, "netlink"))
		netlink();
	else if (!strcmp(mode, "reach"))
		reach_local(argv[2]);
	else if (!strcmp(mode, "relink"))
		relink(atoi(argv[2]), argv[3], argv[4]);
	return 0;
}
