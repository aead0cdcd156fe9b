/* net.c - the prefix tree for addresses, the trie and globs for local sockets. */
#include "match/net.h"

#include "match/blocks.h"
#include "match/glob.h"

#include <errno.h>

enum { TOLD = 16 };

/* Where to put rules that match besides the one that wins; NULL = nowhere. */
struct tally {
	struct sv_match *to;
	const struct sv_policy *p;
};

/* One entry per rule, the strictest first. */
static void note(struct tally *t, uint32_t rule)
{
	const enum sv_action action = t->p->rules[rule].action;
	int n = t->to->matched < TOLD ? t->to->matched : TOLD, at = 0;

	for (int i = 0; i < n; i++)
		if (t->to->rules[i] == (int)rule)
			return;
	while (at < n && t->p->rules[t->to->rules[at]].action >= action)
		at++;
	t->to->matched++;
	if (at == TOLD)
		return;
	for (int i = n < TOLD ? n : TOLD - 1; i > at; i--)
		t->to->rules[i] = t->to->rules[i - 1];
	t->to->rules[at] = (int)rule;
}

static int best_address(const struct sv_policy *p, uint32_t op, const struct sv_peer *peer,
			struct tally *t)
{
	const struct sv_cidr *c = op == SV_OP_CONNECT ? p->net.connect : p->net.bind;
	const int32_t best = sv_cidr_best(c, peer->ip, peer->port);
	int32_t all[64];
	size_t n = t ? sv_cidr_all(c, peer->ip, peer->port, all, 64) : 0;

	for (size_t i = 0; i < n && i < 64; i++)
		note(t, p->by_rank[all[i]]);
	return best == SV_CIDR_NONE ? -1 : (int)p->by_rank[best];
}

static void take(const struct sv_policy *p, uint32_t op, const struct sv_entry *e,
		 const struct sv_entry **best, struct tally *t)
{
	if (!(p->rules[e->rule].ops & op))
		return;
	if (!*best || e->key > (*best)->key)
		*best = e;
	if (t)
		note(t, e->rule);
}

/* False: a bound of the walk was passed, so that nothing is known. */
static bool best_path(const struct sv_policy *p, uint32_t op, struct sv_str path,
		      const struct sv_entry **best, struct tally *t)
{
	struct sv_walk w;

	if (!sv_trie_walk(p->net.paths, path, &w))
		return false;
	for (int i = 0; i < w.nhits; i++) {
		struct sv_entries e = sv_trie_entries(p->net.paths, w.hits[i]);

		for (uint32_t k = 0; k < e.nmatch; k++)
			take(p, op, &e.p[k], best, t);
	}
	return true;
}

static void best_name(const struct sv_policy *p, uint32_t op, struct sv_str name,
		      const struct sv_entry **best, struct tally *t)
{
	for (uint32_t i = 0; i < p->net.nnames; i++)
		if (sv_glob_match(p->net.names[i].name, name))
			take(p, op, &p->net.names[i].entry, best, t);
}

static void conclude(const struct sv_policy *p, int rule, struct sv_match *out)
{
	out->action = p->open ? SV_ALLOW : SV_DENY;
	out->rule = p->open ? -1 : p->fallback;
	out->err = EACCES;
	if (rule < 0)
		return;
	out->action = p->rules[rule].action;
	out->rule = rule;
	out->err = p->rules[rule].err;
}

static void answer(const struct sv_policy *p, uint32_t op, const struct sv_peer *peer, bool told,
		   struct sv_match *out)
{
	const struct sv_entry *best = NULL;
	struct tally tally = { out, p }, *t = told ? &tally : NULL;
	int rule = -1;

	*out = (struct sv_match){ .action = SV_DENY, .rule = p->fallback, .err = EACCES };
	if (op != SV_OP_CONNECT && op != SV_OP_BIND)
		return;
	if (peer->kind == SV_NET_ADDRESS)
		rule = best_address(p, op, peer, t);
	else if (peer->kind == SV_NET_ABSTRACT)
		best_name(p, op, peer->name, &best, t);
	else if (!best_path(p, op, peer->name, &best, t))
		return;
	conclude(p, best ? (int)best->rule : rule, out);
}

static void answer_in(const struct sv_policy *p, uint32_t blocks, uint32_t op,
		      const struct sv_peer *peer, bool told, struct sv_match *out)
{
	struct sv_match m;

	answer(p, op, peer, told, out);
	for (uint32_t i = 0; i < p->nblocks; i++)
		if (blocks >> i & 1) {
			answer(&p->blocks[i], op, peer, told, &m);
			sv_match_stricter(out, &m);
		}
}

void sv_match_peer(const struct sv_policy *p, uint32_t blocks, uint32_t op,
		   const struct sv_peer *peer, struct sv_match *out)
{
	answer_in(p, blocks, op, peer, false, out);
}

void sv_match_peer_told(const struct sv_policy *p, uint32_t blocks, uint32_t op,
			const struct sv_peer *peer, struct sv_match *out)
{
	answer_in(p, blocks, op, peer, true, out);
}

/* A path that cannot be walked is denied whatever the rules say. */
static bool may_move_in(const struct sv_policy *p, const struct sv_peer *from,
			const struct sv_peer *to, bool folder)
{
	struct sv_match a, b;

	if (folder)
		return sv_trie_same_below(p->net.paths, from->name, to->name);
	answer(p, SV_OP_CONNECT, from, false, &a);
	answer(p, SV_OP_CONNECT, to, false, &b);
	return b.action >= a.action;
}

bool sv_match_socket_may_move(const struct sv_policy *p, uint32_t blocks, struct sv_str from,
			      struct sv_str to, bool folder)
{
	const struct sv_peer a = { .kind = SV_NET_PATH, .name = from };
	const struct sv_peer b = { .kind = SV_NET_PATH, .name = to };

	if (!may_move_in(p, &a, &b, folder))
		return false;
	for (uint32_t i = 0; blocks && i < p->nblocks; i++)
		if (!may_move_in(&p->blocks[i], &a, &b, folder))
			return false;
	return true;
}
