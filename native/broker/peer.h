/* peer.h - whom the address of a call speaks of, and what the rules say of it. */
#ifndef SV_BROKER_PEER_H
#define SV_BROKER_PEER_H

#include "broker/work.h"

#include <sys/socket.h>

/* A duplicate of the caller's socket, borrowed from w->in, and what it is. */
struct sv_sock {
	int fd;
	int domain;
	int type;
	int protocol;
};

/* An address of the target, copied once; zeros behind its end. */
struct sv_addr {
	struct sockaddr_storage a;
	int len;
};

/* Whether a network rule made w->match: no default, and no default of a block. */
bool sv_by_network_rule(const struct sv_work *w);

/* Why a call is turned down that no rule in w->match speaks about; why NULL = by that rule. */
struct sv_no {
	int err;
	const char *why;
};

/* What judging returns besides 0 and the kernel's -errno. */
enum { SV_REFUSED = -4096 };

/* The answer to a call with rc other than 0: as the kernel would say, or as refused. */
void sv_turn_down(struct sv_work *w, int rc, const struct sv_no *no);

/* The caller's socket. False: refused, as the machine does not let it be duplicated. */
bool sv_take_sock(struct sv_work *w, struct sv_sock *out);
/* Copies the address. 0 or -errno, as the kernel would say. */
int sv_read_addr(struct sv_work *w, uint64_t at, uint32_t len, struct sv_addr *out);
/* Copies the address and makes its text the call's name. False: it failed, as the
 * kernel would say, and was answered. */
bool sv_take_addr(struct sv_work *w, uint64_t at, uint32_t len, struct sv_addr *out);

/* What the rules say of an IP address: op is SV_OP_CONNECT, SV_OP_BIND or SV_OP_SEND.
 * An unspecified address to connect to becomes the loopback's that it stands for. What the
 * kernel takes for no address of such a socket is left to it. False: refused, w->match
 * says why; nothing was answered. */
bool sv_judge_addr(struct sv_work *w, uint32_t op, const struct sv_sock *s, struct sv_addr *addr);
/* The same for a socket that listens without having been bound. */
bool sv_judge_any(struct sv_work *w, const struct sv_sock *s);

#endif
