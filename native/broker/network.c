/* network.c - sockets. Nothing outside is reachable until there are network rules: stream
 * sockets are made, as every user lookup makes one; local ones connect inside the tree. */
#include "broker/local.h"

#include "decode/sockaddr.h"
#include "syscalls/nr.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const char not_yet[] = "network calls are refused: this version has no network rules";
static const char nscd[] = "unix:/var/run/nscd/socket";

static void refuse(struct sv_work *w)
{
	if (!w->sh->observe)
		return sv_refuse_why(w, EACCES, not_yet);
	w->match = (struct sv_match){ .action = SV_DENY, .rule = -1, .err = EACCES };
	sv_let_go(w);
}

/* Sockets that take an address only by connect, bind and listen, which are
 * refused: made freely, as programs probe for them. SCTP and MPTCP are not
 * among them: they connect by other calls or past the kernel's TCP rule. */
static bool leads_nowhere(int family, int type, uint32_t protocol)
{
	if (family == AF_UNIX)
		return type == SOCK_STREAM || type == SOCK_SEQPACKET;
	return (family == AF_INET || family == AF_INET6) && type == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

void sv_do_socket(struct sv_work *w)
{
	const int type = (int)w->in.flags & 0xf;

	if (leads_nowhere(w->in.which, type, (uint32_t)w->call.args[2]))
		return sv_let_go(w);
	w->in.name[0].len = snprintf(w->in.name[0].text, sizeof(w->in.name[0].text),
				     "socket of family %d, type %d", w->in.which, type);
	refuse(w);
}

/* Both ends are connected for good; a raw one is a datagram socket by another
 * name and could be sent from to any address. */
void sv_do_socketpair(struct sv_work *w)
{
	const int type = (int)w->in.flags & 0xf;

	if (w->in.which == AF_UNIX && (type == SOCK_STREAM || type == SOCK_SEQPACKET))
		return sv_let_go(w);
	w->in.name[0].len = snprintf(w->in.name[0].text, sizeof(w->in.name[0].text),
				     "socket pair of family %d, type %d", w->in.which, type);
	refuse(w);
}

/* Returns the address's length, or -errno. */
static int name_address(struct sv_work *w, uint64_t addr, uint32_t len, struct sockaddr_storage *a)
{
	int n = sv_read_sockaddr(&w->t, addr, len, a);

	if (n >= 0)
		w->in.name[0].len = sv_show_sockaddr(a, n, w->in.name[0].text,
						     sizeof(w->in.name[0].text));
	return n;
}

/* glibc asks the name service cache before it reads its files: answered as on
 * a machine that runs none, which is what its absence must look like. */
static bool is_nscd(const struct sv_work *w)
{
	return w->call.nr == __NR_connect && !strcmp(w->in.name[0].text, nscd);
}

static bool locally(struct sv_work *w, const struct sockaddr_un *addr, int len)
{
	switch (w->call.nr) {
	case __NR_bind:
		return sv_local_bind(w, addr, len);
	case __NR_connect:
		return sv_local_connect(w, addr, len);
	default:
		return sv_local_listen(w);
	}
}

void sv_do_network(struct sv_work *w)
{
	struct sockaddr_storage a = { 0 };
	const int err = sv_socket_errno(w);
	int n = w->in.addr ? name_address(w, w->in.addr, w->in.addrlen, &a) : 0;

	if (err && !w->sh->observe)
		return sv_fail_call(w, err);
	/* without a path: a name that the kernel chooses, and it reads no more */
	if (w->in.addr && w->in.addrlen == sizeof(sa_family_t))
		return sv_let_go(w);
	if (is_nscd(w) && !w->sh->observe)
		return sv_fail_call(w, ENOENT);
	if (!w->sh->observe && locally(w, (const void *)&a, n))
		return;
	refuse(w);
}

void sv_do_sendto(struct sv_work *w)
{
	struct sockaddr_storage a;

	name_address(w, w->call.args[4], (uint32_t)w->call.args[5], &a);
	refuse(w);
}

/* Notified for high options only; of IP and IPv6 they are the tables of the
 * packet filter, which root may replace for the whole machine. */
void sv_do_setsockopt(struct sv_work *w)
{
	if (w->in.which != IPPROTO_IP && w->in.which != IPPROTO_IPV6)
		return sv_let_go(w);
	sv_refuse_why(w, EPERM, "the packet filter belongs to the machine");
}
