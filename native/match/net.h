/* net.h - decisions about addresses and local sockets.
 *
 * As decide.h: the strictest rule that matches wins; of equally strict ones that with
 * the longer prefix (of the address, of the pattern), then the first id; what no rule
 * speaks of is denied, in an open block allowed. No allocation, no lock, no system
 * call. */
#ifndef SV_MATCH_NET_H
#define SV_MATCH_NET_H

#include "policy/blob.h"

/* Somebody to connect or send to, or a place to bind. */
struct sv_peer {
	enum sv_net_kind kind;
	struct sv_ip ip;
	uint16_t port;
	struct sv_str name;	/* PATH: true path; ABSTRACT: the name */
};

/* op: one enum sv_net_op. The policy, then every block that the caller is in. Of the
 * rules that matched, only the one that won is named. */
void sv_match_peer(const struct sv_policy *p, uint32_t blocks, uint32_t op,
		   const struct sv_peer *peer, struct sv_match *out);
/* The same with all of them, for people. */
void sv_match_peer_told(const struct sv_policy *p, uint32_t blocks, uint32_t op,
			const struct sv_peer *peer, struct sv_match *out);

/* Whether a socket's file, or a folder that may hold some, can be renamed: as
 * sv_match_may_move(), for what network rules say of its path. */
bool sv_match_socket_may_move(const struct sv_policy *p, uint32_t blocks, struct sv_str from,
			      struct sv_str to, bool folder);

#endif
