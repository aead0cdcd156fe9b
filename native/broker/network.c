/* network.c - sockets, and what they connect to, bind and listen on.
 *
 * All is done on a duplicate of the caller's socket with our copy of the address: what
 * was judged is what is used. */
#include "broker/bound.h"
#include "broker/local.h"
#include "broker/slow.h"

#include "base/fd.h"
#include "effect/creds.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static const char no_rule[] = "a socket of a kind whose addresses no rule can speak of";
static const char no_rules[] = "no network rule allows anything, and what this socket sends would "
			       "not be decided";

static bool is_inet(int domain)
{
	return domain == AF_INET || domain == AF_INET6;
}

static bool is_datagram(int family, uint32_t protocol)
{
	return protocol == 0 || protocol == IPPROTO_UDP || protocol == IPPROTO_UDPLITE ||
	       protocol == (family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

/* Sockets whose addresses are decided. SCTP is not among them: it connects by other
 * calls. Datagrams only where sending is decided, too. */
static bool makes(const struct sv_work *w, int family, int type, uint32_t protocol)
{
	const bool sending = w->sh->policy->flags & SV_POLICY_NET;

	if (family == AF_UNIX)
		return type == SOCK_STREAM || type == SOCK_SEQPACKET || (type == SOCK_DGRAM && sending);
	if (!is_inet(family))
		return false;
	if (type == SOCK_DGRAM)
		return sending && is_datagram(family, protocol);
	return type == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP ||
				       (protocol == IPPROTO_MPTCP && sending));
}

static void refuse_socket(struct sv_work *w, const char *what, int err)
{
	struct sv_pathname *name = &w->in.name[0];

	name->len = snprintf(name->text, sizeof(name->text), "%s of family %d, type %d", what,
			     w->in.which, (int)w->in.flags & 0xf);
	if (!w->sh->observe)
		return sv_refuse_why(w, err, w->sh->policy->flags & SV_POLICY_NET ? no_rule : no_rules);
	w->match = (struct sv_match){ .action = SV_DENY, .rule = -1, .err = err };
	sv_let_go(w);
}

/* The kernel lets a netlink socket change routes only where its maker could, too: made
 * by us without capabilities it is good for reading, whoever writes to it. */
static void make_netlink(struct sv_work *w)
{
	const int type = (int)w->in.flags;
	int rc = sv_creds_bare();
	int fd = rc < 0 ? rc : socket(AF_NETLINK, type | SOCK_CLOEXEC, NETLINK_ROUTE);

	rc = fd < 0 ? -errno : 0;
	if (!w->switched)
		sv_creds_leave();
	if (rc < 0)
		sv_fail_call(w, -rc);
	else if (sv_still_valid(&w->t) < 0)
		close(fd);
	else
		sv_give_fd(w, fd, type & SOCK_CLOEXEC, false);
}

static bool is_route(const struct sv_work *w, int type)
{
	return w->in.which == AF_NETLINK && (type == SOCK_RAW || type == SOCK_DGRAM) &&
	       (int)w->call.args[2] == NETLINK_ROUTE && !w->sh->observe &&
	       w->sh->policy->flags & SV_POLICY_NET;
}

void sv_do_socket(struct sv_work *w)
{
	const int type = (int)w->in.flags & 0xf;

	if (is_route(w, type))
		return make_netlink(w);
	if (makes(w, w->in.which, type, (uint32_t)w->call.args[2]))
		return sv_let_go(w);
	refuse_socket(w, "socket", EACCES);
}

/* Both ends are connected for good; a raw one is a datagram socket by another
 * name and could be sent from to any address. */
void sv_do_socketpair(struct sv_work *w)
{
	const int type = (int)w->in.flags & 0xf;

	if (w->in.which == AF_UNIX && (type == SOCK_STREAM || type == SOCK_SEQPACKET ||
				       (type == SOCK_DGRAM && w->sh->policy->flags & SV_POLICY_NET)))
		return sv_let_go(w);
	refuse_socket(w, "socket pair", EACCES);
}

/* 0 = the socket is of no kind that calls with addresses are done for. */
static int take(struct sv_work *w, struct sv_sock *s)
{
	if (!sv_take_sock(w, s))
		return 0;
	if (s->domain == AF_UNIX || s->domain == AF_NETLINK || is_inet(s->domain))
		return s->domain;
	sv_refuse_why(w, EACCES, "no rule can speak of the addresses of such a socket");
	return 0;
}

static void give(struct sv_work *w, int rc)
{
	const int err = rc < 0 ? -errno : 0;

	sv_close_fd(&w->in.sock);	/* the caller closes it next, perhaps for good */
	sv_give_result(w, err);
}

static bool is_near(const struct sv_addr *to)
{
	const struct sockaddr_in *v4 = (const void *)&to->a;
	const struct sockaddr_in6 *v6 = (const void *)&to->a;

	if (to->a.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return to->a.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void connect_inet(struct sv_work *w, const struct sv_sock *s, struct sv_addr *to)
{
	const bool ends = to->a.ss_family == AF_UNSPEC;	/* a datagram socket's connection */
	int rc;

	if (!sv_judge_addr(w, SV_OP_CONNECT, s, to))
		return sv_refuse(w);
	rc = ends ? 0 : sv_take_connection(w);
	if (rc < 0)
		return sv_fail_call(w, -rc);
	if (w->sh->observe)
		return sv_let_go(w);
	if (sv_still_valid(&w->t) < 0)
		return;
	if (s->type == SOCK_STREAM && !ends)
		return sv_may_wait(s) && !is_near(to) ? sv_connect_slowly(w, to, NULL) :
							sv_connect_near(w, s, to, NULL);
	give(w, connect(s->fd, (const void *)&to->a, (socklen_t)to->len));
}

/* The kernel would look at our rights to it, not at the caller's. */
static bool to_programs(const struct sv_addr *to)
{
	const struct sockaddr_nl *nl = (const void *)&to->a;

	return nl->nl_family == AF_NETLINK && (nl->nl_pid || nl->nl_groups);
}

/* What rules would say is on record, and the kernel goes on. */
static void watch_local(struct sv_work *w, const struct sv_sock *s, const struct sv_addr *given)
{
	struct sv_no no = { 0, NULL };
	struct sv_addr to;

	if (s->domain == AF_UNIX)
		sv_local_reach(w, SV_OP_CONNECT, given, &to, &no);
	sv_let_go(w);
}

void sv_do_connect(struct sv_work *w)
{
	struct sv_addr to;
	struct sv_sock s;

	if (!sv_take_addr(w, w->in.addr, w->in.addrlen, &to) || !take(w, &s))
		return;
	if (is_inet(s.domain))
		return connect_inet(w, &s, &to);
	if (w->sh->observe)
		return watch_local(w, &s, &to);
	if (s.domain == AF_UNIX)
		return sv_local_connect(w, &s, &to);
	if (to_programs(&to))
		return sv_refuse_why(w, EPERM, "a netlink message to other programs");
	if (sv_still_valid(&w->t) == 0)
		give(w, connect(s.fd, (const void *)&to.a, (socklen_t)to.len));
}

/* Who asks for any port gets what connecting and sending would give it unasked: only a
 * rule that denies it counts, and where no rule allows anything nothing is given. Listening
 * on it is decided when it comes to that. */
static bool any_port(struct sv_work *w, const struct sv_addr *to)
{
	const struct sockaddr_in *in = (const void *)&to->a;	/* the port lies at one place in both */

	if (in->sin_port || !(w->sh->policy->flags & SV_POLICY_NET) || sv_by_network_rule(w))
		return false;
	w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	return true;
}

void sv_do_bind(struct sv_work *w)
{
	struct sv_addr to;
	struct sv_sock s;
	bool decided;
	int rc;

	if (!sv_take_addr(w, w->in.addr, w->in.addrlen, &to) || !take(w, &s))
		return;
	decided = is_inet(s.domain) && sv_judge_addr(w, SV_OP_BIND, &s, &to);
	if (is_inet(s.domain) && !decided && !any_port(w, &to))
		return sv_refuse(w);
	if (w->sh->observe)
		return sv_let_go(w);
	if (s.domain == AF_UNIX)
		return sv_local_bind(w, &s, &to);
	if (sv_still_valid(&w->t) < 0)
		return;
	rc = bind(s.fd, (const void *)&to.a, (socklen_t)to.len);
	if (rc == 0 && decided)
		sv_bound_note(w->sh->bound, s.fd);
	give(w, rc);
}

void sv_do_listen(struct sv_work *w)
{
	struct sv_sock s;

	if (w->sh->observe)
		return sv_let_go(w);
	if (!take(w, &s))
		return;
	if (s.domain == AF_UNIX)
		return sv_local_listen(w, &s);
	/* A local port says nothing: a connect chooses one, too, and the kernel goes on naming it
	 * when that was dissolved and listen would choose another, on every address. */
	if (is_inet(s.domain) && !sv_bound_noted(w->sh->bound, s.fd) && !sv_judge_any(w, &s))
		return sv_refuse(w);
	if (sv_still_valid(&w->t) == 0)
		give(w, listen(s.fd, (int)w->call.args[1]));
}

/* The way that packets take. IPV6_2292PKTOPTIONS and IPV6_FLOWLABEL_MGR take it as control
 * data: a routing header among other things. */
static bool is_way(int level, uint64_t option)
{
	enum { OPTIONS = 4, PKTOPTIONS = 6, FLOWLABEL_MGR = 32, RTHDR = 57 };

	if (level == IPPROTO_IP)
		return option == OPTIONS;
	return option == RTHDR || option == PKTOPTIONS || option == FLOWLABEL_MGR;
}

/* Notified for high options, which of IP and IPv6 are the tables of the packet filter
 * that root may replace for the whole machine, and for those that say a way. */
void sv_do_setsockopt(struct sv_work *w)
{
	const uint64_t option = w->in.flags;

	if (w->in.which != IPPROTO_IP && w->in.which != IPPROTO_IPV6)
		return sv_let_go(w);
	if (option >= 64)
		return sv_refuse_why(w, EPERM, "the packet filter belongs to the machine");
	if (is_way(w->in.which, option))
		return sv_refuse_why(w, EPERM, "packets would take a way round the address that was "
					       "decided");
	sv_let_go(w);
}
