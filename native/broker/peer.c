/* peer.c - addresses as the kernel takes them, asked of the network rules.
 *
 * One sockaddr may reach more than its text says: "::" is both loopbacks, a wildcard of
 * IPv6 binds IPv4 too, and some IPv6 addresses carry an IPv4 address that a gateway may
 * send to. All that it may reach is asked about. */
#include "broker/peer.h"

#include "decode/sockaddr.h"
#include "match/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

enum { V6_LEN = 24 };	/* SIN6_LEN_RFC2133: without a scope */

static const uint8_t loopback4[4] = { 127, 0, 0, 1 };
static const uint8_t any4[4];

static int option(int fd, int name)
{
	int value = -1;
	socklen_t n = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &n) < 0 ? -1 : value;
}

bool sv_take_sock(struct sv_work *w, struct sv_sock *out)
{
	out->fd = w->in.sock;
	if (out->fd < 0 && w->sh->observe) {
		sv_let_go(w);
		return false;
	}
	if (out->fd < 0) {
		sv_refuse_why(w, EACCES, "this machine does not let the supervisor duplicate a socket "
					 "(pidfd_getfd)");
		return false;
	}
	out->domain = option(out->fd, SO_DOMAIN);
	out->type = option(out->fd, SO_TYPE);
	out->protocol = option(out->fd, SO_PROTOCOL);
	return true;
}

void sv_turn_down(struct sv_work *w, int rc, const struct sv_no *no)
{
	if (rc == SV_REFUSED && no->why)
		sv_refuse_why(w, no->err, no->why);
	else if (rc == SV_REFUSED)
		sv_refuse(w);
	else if (rc == -EPERM || rc == -ESRCH)
		sv_refuse_why(w, EACCES, "the caller's memory or descriptors cannot be read");
	else
		sv_fail_call(w, -rc);
}

int sv_read_addr(struct sv_work *w, uint64_t at, uint32_t len, struct sv_addr *out)
{
	struct sv_pathname *name = &w->in.name[0];

	out->len = sv_read_sockaddr(&w->t, at, len, &out->a);
	if (out->len < 0)
		return out->len;
	name->len = sv_show_sockaddr(&out->a, out->len, name->text, sizeof(name->text));
	return 0;
}

bool sv_take_addr(struct sv_work *w, uint64_t at, uint32_t len, struct sv_addr *out)
{
	const struct sv_no none = { 0, NULL };
	const int rc = sv_read_addr(w, at, len, out);

	if (rc < 0)
		sv_turn_down(w, rc, &none);
	return rc == 0;
}

bool sv_by_network_rule(const struct sv_work *w)
{
	return w->match.rule >= 0 && w->sh->policy->rules[w->match.rule].kind == SV_RULE_NETWORK;
}

static bool ask(struct sv_work *w, uint32_t op, struct sv_ip ip, uint16_t port)
{
	const struct sv_peer peer = { .kind = SV_NET_ADDRESS, .ip = ip, .port = port };

	sv_match_peer(w->sh->policy, sv_blocks_in(w), op == SV_OP_BIND ? op : SV_OP_CONNECT, &peer,
		      &w->match);
	return w->match.action == SV_ALLOW;
}

/* The IPv4 address that a gateway may make of this one: 64:ff9b::/96 (RFC 6052),
 * 2002::/16 (RFC 3056), ::/96 (RFC 4291). */
static const uint8_t *carried(const uint8_t b[16])
{
	static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b };
	static const uint8_t compatible[12];

	if (!memcmp(b, nat64, 12) || (!memcmp(b, compatible, 12) && (b[12] || b[13] || b[14])))
		return b + 12;
	return b[0] == 0x20 && b[1] == 0x02 ? b + 2 : NULL;
}

/* Of what an address carries only a network rule that denies it counts. */
static bool ask_carried(struct sv_work *w, uint32_t op, const uint8_t b[16], uint16_t port)
{
	const struct sv_match as_is = w->match;
	const uint8_t *v4 = carried(b);

	if (!v4 || ask(w, op, sv_ip4(v4), port) || !sv_by_network_rule(w)) {
		w->match = as_is;
		return true;
	}
	return false;
}

static bool judge4(struct sv_work *w, uint32_t op, uint8_t *b, uint16_t port)
{
	if (op != SV_OP_BIND && !memcmp(b, any4, 4))
		memcpy(b, loopback4, 4);
	return ask(w, op, sv_ip4(b), port);
}

/* Both must be allowed. Of two refusals that of a rule counts, and not the default's. */
static bool ask_both(struct sv_work *w, uint32_t op, struct sv_ip a, struct sv_ip b, uint16_t port)
{
	const bool first = ask(w, op, a, port);

	if (!first && sv_by_network_rule(w))
		return false;
	if (!ask(w, op, b, port))
		return false;
	return first || ask(w, op, a, port);
}

static bool judge6(struct sv_work *w, uint32_t op, struct in6_addr *in, uint16_t port)
{
	uint8_t *b = in->s6_addr;

	if (IN6_IS_ADDR_V4MAPPED(in))
		return judge4(w, op, b + 12, port);
	if (!IN6_IS_ADDR_UNSPECIFIED(in))
		return ask(w, op, sv_ip6(b), port) && ask_carried(w, op, b, port);
	if (op == SV_OP_BIND)
		return ask_both(w, op, sv_ip4(any4), sv_ip6(b), port);
	return ask_both(w, op, sv_ip4(loopback4), sv_ip6(in6addr_loopback.s6_addr), port);
}

/* Of what family the kernel takes it, 0 = of none that it uses. */
static int family_of(const struct sv_sock *s, uint32_t op, const struct sv_addr *addr)
{
	const int f = addr->a.ss_family;

	/* inet_bind() and udp_sendmsg() do not mind; and a socket of IPv6 may be one of IPv4
	 * before they look (IPV6_ADDRFORM) */
	if (f == AF_UNSPEC && op != SV_OP_CONNECT)
		return AF_INET;
	if (f == AF_INET && (s->domain == AF_INET || s->domain == AF_INET6))
		return AF_INET;
	return f == AF_INET6 && s->domain == AF_INET6 ? AF_INET6 : 0;
}

static bool has_ports(const struct sv_sock *s)
{
	return s->protocol != IPPROTO_ICMP && s->protocol != IPPROTO_ICMPV6;
}

bool sv_judge_addr(struct sv_work *w, uint32_t op, const struct sv_sock *s, struct sv_addr *addr)
{
	struct sockaddr_in *v4 = (void *)&addr->a;
	struct sockaddr_in6 *v6 = (void *)&addr->a;
	bool good = true;

	w->ops |= op;
	w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	switch (family_of(s, op, addr)) {
	case AF_INET:
		if (addr->len >= (int)sizeof(*v4))
			good = judge4(w, op, (uint8_t *)&v4->sin_addr,
				      has_ports(s) ? ntohs(v4->sin_port) : 0);
		break;
	case AF_INET6:
		if (addr->len >= V6_LEN)
			good = judge6(w, op, &v6->sin6_addr, has_ports(s) ? ntohs(v6->sin6_port) : 0);
		break;
	default:
		break;
	}
	return good || w->sh->observe;
}

bool sv_judge_any(struct sv_work *w, const struct sv_sock *s)
{
	struct sv_addr any = { .len = sizeof(struct sockaddr_in6) };
	struct sv_pathname *name = &w->in.name[0];

	any.a.ss_family = (sa_family_t)s->domain;
	name->len = sv_show_sockaddr(&any.a, any.len, name->text, sizeof(name->text));
	return sv_judge_addr(w, SV_OP_BIND, s, &any);
}
