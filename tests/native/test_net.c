/* test_net.c - network rules against a model that looks at them one by one: random
 * addresses, ports and local sockets, in policies with blocks. */
#include "check.h"
#include "gen.h"
#include "make_blob.h"
#include "naive.h"

#include "match/net.h"

#include <errno.h>

enum { RULES = 7, SETS = 1 + MAKE_BLOCKS };

struct one {
	int action;
	uint32_t ops;
	enum sv_net_kind kind;
	uint8_t bytes[16];
	size_t n;
	unsigned prefix, lo, hi;
	char text[GEN_TEXT];
};

struct set {
	struct one rule[RULES];
	int n;
	bool open;
};

/* Few bits differ, so that prefixes and addresses meet. */
static void random_bytes(uint8_t *out, size_t n)
{
	memset(out, 0, 16);
	out[0] = (uint8_t)(check_random(2) ? 10 : 127);
	out[n - 1] = (uint8_t)check_random(4);
	out[n / 2] = (uint8_t)(check_random(2) << 7);
}

static void mask(uint8_t *p, size_t n, unsigned prefix)
{
	for (unsigned bit = prefix; bit < n * 8; bit++)
		p[bit / 8] &= (uint8_t)~(0x80 >> bit % 8);
}

static void random_one(struct one *o)
{
	static const uint32_t ops[] = { SV_OP_CONNECT, SV_OP_BIND, SV_OP_CONNECT | SV_OP_BIND };

	memset(o, 0, sizeof(*o));
	o->action = check_random(2) ? SV_ALLOW : SV_DENY;
	o->ops = ops[check_random(3)];
	o->kind = (enum sv_net_kind)check_random(3);
	if (o->kind == SV_NET_ADDRESS) {
		o->n = check_random(2) ? 4 : 16;
		random_bytes(o->bytes, o->n);
		o->prefix = check_random((uint32_t)o->n * 8 + 1);
		mask(o->bytes, o->n, o->prefix);
		o->lo = check_random(2) ? 0 : check_random(4);
		o->hi = o->lo ? o->lo + check_random(3) : UINT16_MAX;
	} else if (o->kind == SV_NET_PATH) {
		gen_pattern(o->text);
	} else {
		snprintf(o->text, sizeof(o->text), "%c%s", 'a' + (int)check_random(2),
			 check_random(2) ? "*" : "");
	}
}

static void put(struct make *m, const struct set *s, char letter)
{
	char id[16];

	for (int i = 0; i < s->n; i++) {
		const struct one *o = &s->rule[i];
		struct sv_str what = { o->bytes, o->n };
		int r;

		snprintf(id, sizeof(id), "%c%d", letter, i);
		r = make_rule(m, id, SV_RULE_NETWORK, o->action, o->ops, 0, SV_DEST_NONE, NULL);
		make_target(m, r, o->kind, o->kind == SV_NET_ADDRESS ? what : check_str(o->text),
			    o->prefix, o->lo, o->hi);
	}
}

static struct sv_policy *load(const struct set *sets)
{
	struct make m = { 0 };
	struct sv_err err = { 0 };
	struct sv_policy *p;
	uint8_t *blob;
	size_t len;

	put(&m, &sets[0], 'p');
	for (int k = 1; k < SETS; k++) {
		make_block(&m);
		make_start(&m, "prog");
		if (!sets[k].open)
			make_fallback(&m, "none");
		put(&m, &sets[k], (char)('a' + k));
	}
	blob = make_done(&m, &len);
	p = sv_policy_load(blob, len, "", &err);
	free(blob);
	if (!p)
		fprintf(stderr, "%s\n", err.msg);
	CHECK(p);
	return p;
}

static bool holds(const struct one *o, const struct sv_peer *peer, const uint8_t *bytes, size_t n,
		  const char *text)
{
	uint8_t cut[16];

	if (o->kind != peer->kind)
		return false;
	if (o->kind == SV_NET_PATH)
		return naive_match(o->text, text);
	if (o->kind == SV_NET_ABSTRACT)
		return sv_glob_match(check_str(o->text), check_str(text));
	if (n != o->n || peer->port < o->lo || peer->port > o->hi)
		return false;
	memcpy(cut, bytes, 16);
	mask(cut, n, o->prefix);
	return !memcmp(cut, o->bytes, n);
}

static int naive(const struct set *s, bool policy, uint32_t op, const struct sv_peer *peer,
		 const uint8_t *bytes, size_t n, const char *text)
{
	int action = -1;

	for (int i = 0; i < s->n; i++)
		if ((s->rule[i].ops & op) && holds(&s->rule[i], peer, bytes, n, text) &&
		    s->rule[i].action > action)
			action = s->rule[i].action;
	if (action < 0)
		return !policy && s->open ? SV_ALLOW : SV_DENY;
	return action;
}

static void ask(const struct sv_policy *p, const struct set *sets)
{
	struct sv_peer peer = { .kind = (enum sv_net_kind)check_random(3) };
	const uint32_t op = check_random(2) ? SV_OP_CONNECT : SV_OP_BIND;
	const uint32_t blocks = check_random(1 << MAKE_BLOCKS);
	const size_t n = check_random(2) ? 4 : 16;
	uint8_t bytes[16];
	char text[GEN_TEXT] = "";
	struct sv_match m, told;
	int want;

	random_bytes(bytes, n);
	if (peer.kind == SV_NET_ADDRESS) {
		peer.ip = n == 4 ? sv_ip4(bytes) : sv_ip6(bytes);
		peer.port = (uint16_t)check_random(6);
	} else {
		if (peer.kind == SV_NET_PATH)
			gen_path(text, 4);
		else
			snprintf(text, sizeof(text), "%s", check_random(2) ? "a" : "ba");
		peer.name = check_str(text);
	}
	want = naive(&sets[0], true, op, &peer, bytes, n, text);
	for (int k = 1; k < SETS; k++)
		if (blocks >> (k - 1) & 1) {
			int more = naive(&sets[k], false, op, &peer, bytes, n, text);

			want = more > want ? more : want;
		}
	sv_match_peer(p, blocks, op, &peer, &m);
	sv_match_peer_told(p, blocks, op, &peer, &told);
	CHECK((int)m.action == want && m.action == told.action && m.rule == told.rule);
	CHECK(m.action == SV_ALLOW || m.err == EACCES);
	CHECK(m.rule < 0 || (int)p->rules[m.rule].action == want);
	CHECK(blocks || !told.matched || (int)p->rules[told.rules[0]].action == want);
}

static void random_policies(void)
{
	struct set sets[SETS];

	for (int round = 0; round < 1500; round++) {
		struct sv_policy *p;

		for (int k = 0; k < SETS; k++) {
			sets[k].n = (int)check_random(RULES + 1);
			sets[k].open = k && check_random(2);
			for (int i = 0; i < sets[k].n; i++)
				random_one(&sets[k].rule[i]);
		}
		p = load(sets);
		for (int i = 0; p && i < 40; i++)
			ask(p, sets);
		sv_policy_free(p);
	}
}

/* Mapped addresses are IPv4; an operation that is none of the network's is denied. */
static void edges(void)
{
	static const uint8_t v4[4] = { 10, 1, 2, 3 };
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 10, 1, 2, 3 };
	struct make m = { 0 };
	struct sv_err err = { 0 };
	struct sv_str ten = { v4, 4 };
	struct sv_peer peer = { .kind = SV_NET_ADDRESS, .ip = sv_ip6(mapped), .port = 80 };
	struct sv_policy *p;
	struct sv_match out;
	uint8_t *blob;
	size_t len;

	make_target(&m, make_rule(&m, "r", SV_RULE_NETWORK, SV_ALLOW, SV_OP_CONNECT, 0, SV_DEST_NONE,
				  NULL), SV_NET_ADDRESS, ten, 32, 80, 80);
	blob = make_done(&m, &len);
	p = sv_policy_load(blob, len, "", &err);
	free(blob);
	CHECK(p);
	sv_match_peer(p, 0, SV_OP_CONNECT, &peer, &out);
	CHECK(out.action == SV_ALLOW);
	sv_match_peer(p, 0, SV_OP_BIND, &peer, &out);
	CHECK(out.action == SV_DENY && out.rule == -1);
	sv_match_peer(p, 0, SV_OP_READ, &peer, &out);
	CHECK(out.action == SV_DENY);
	peer.port = 81;
	sv_match_peer(p, 0, SV_OP_CONNECT, &peer, &out);
	CHECK(out.action == SV_DENY);
	sv_policy_free(p);
}

/* What is no network rule, or speaks of nothing, is no policy. */
static void refused(void)
{
	static const struct {
		int kind;
		uint32_t ops;
		enum sv_net_kind of;
		size_t n;
		unsigned prefix, lo, hi;
	} bad[] = {
		{ SV_RULE_FILES, SV_OP_READ, SV_NET_ADDRESS, 4, 32, 0, 0 },
		{ SV_RULE_NETWORK, SV_OP_READ, SV_NET_ADDRESS, 4, 32, 0, 0 },
		{ SV_RULE_NETWORK, SV_OP_CONNECT | SV_OP_READ, SV_NET_ADDRESS, 4, 32, 0, 0 },
		{ SV_RULE_FILES, SV_OP_CONNECT, SV_NET_ADDRESS, 4, 32, 0, 0 },
		{ SV_RULE_NETWORK, SV_OP_CONNECT, SV_NET_ADDRESS, 5, 32, 0, 0 },
		{ SV_RULE_NETWORK, SV_OP_CONNECT, SV_NET_ADDRESS, 4, 33, 0, 0 },
		{ SV_RULE_NETWORK, SV_OP_CONNECT, SV_NET_ADDRESS, 4, 8, 0, 0 },	/* bits behind it */
		{ SV_RULE_NETWORK, SV_OP_CONNECT, SV_NET_ADDRESS, 4, 32, 2, 1 },
		{ SV_RULE_NETWORK, SV_OP_CONNECT, SV_NET_ADDRESS, 4, 32, 0, 65536 },
		{ SV_RULE_NETWORK, SV_OP_CONNECT, SV_NET_PATH, 4, 0, 0, 1 },
		{ SV_RULE_NETWORK, SV_OP_CONNECT, SV_NET_ABSTRACT, 0, 0, 0, 0 },
		{ SV_RULE_NETWORK, SV_OP_CONNECT, (enum sv_net_kind)3, 4, 0, 0, 0 },
	};
	static const uint8_t bytes[] = "/aaa/";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sv_str what = { bytes, bad[i].n };
		struct sv_err err = { 0 };
		struct make m = { 0 };
		size_t len;
		uint8_t *blob;

		make_target(&m, make_rule(&m, "r", bad[i].kind, SV_ALLOW, bad[i].ops, 0, SV_DEST_NONE,
					  NULL), bad[i].of, what, bad[i].prefix, bad[i].lo, bad[i].hi);
		blob = make_done(&m, &len);
		CHECK(!sv_policy_load(blob, len, "", &err) && err.code == EINVAL);
		free(blob);
	}
}

int main(void)
{
	random_policies();
	edges();
	refused();
	return check_end();
}
