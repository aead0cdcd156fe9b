/* blob_net.c - what network rules speak of: addresses, files and names of local sockets. */
#include "policy/load.h"

#include "base/err.h"
#include "match/glob.h"

#include <errno.h>
#include <stdlib.h>

/* One entry as it stands in the blob. */
struct target {
	const struct sv_rule *rule;
	uint64_t kind, len, lo, hi;
	struct sv_str text;
};

static int new_tables(struct sv_load *l, struct sv_net *n, size_t entries)
{
	n->connect = sv_cidr_new();
	n->bind = sv_cidr_new();
	n->paths = sv_trie_new((uint64_t)(uintptr_t)n ^ (uint64_t)(uintptr_t)n->bind << 20);
	n->names = sv_load_array(entries < SV_BLOB_ABSTRACT ? entries : SV_BLOB_ABSTRACT,
				 sizeof(*n->names));
	return n->connect && n->bind && n->paths && n->names ? 0 : sv_load_memory(l);
}

static int add_to(struct sv_load *l, struct sv_cidr *to, const struct target *t)
{
	int rc = sv_cidr_add(to, t->text.p, t->text.n == 4, (unsigned)t->len, (uint16_t)t->lo,
			     (uint16_t)t->hi, (int32_t)t->rule->rank, (uint32_t)t->rule->action);

	if (rc == -ENOMEM)
		return sv_load_memory(l);
	return rc < 0 ? sv_load_damaged(l, "an address of the network") : 0;
}

static int add_address(struct sv_load *l, struct sv_net *n, const struct target *t)
{
	int rc = 0;

	if (t->text.n != 4 && t->text.n != 16)
		return sv_load_damaged(l, "an address of the network");
	if (t->rule->ops & SV_OP_CONNECT)
		rc = add_to(l, n->connect, t);
	if (!rc && t->rule->ops & SV_OP_BIND)
		rc = add_to(l, n->bind, t);
	return rc;
}

static int add_path(struct sv_load *l, struct sv_net *n, const struct target *t)
{
	struct sv_str text = t->text;
	struct sv_pattern shape;
	struct sv_entry e;
	uint8_t buf[SV_PATTERN_MAX];
	int rc;

	if (sv_load_is_tmp(text)) {
		text.n = sv_load_tmp(l, text, true, buf, sizeof(buf));
		text.p = buf;
		if (!text.n)
			return -EINVAL;
	}
	rc = sv_pattern_scan(text, &shape, l->err);
	if (rc < 0)
		return rc;
	e = sv_load_entry(l, t->rule, shape.literal);
	return sv_trie_add(n->paths, text, &e, l->err);
}

static int add_name(struct sv_load *l, struct sv_net *n, const struct target *t)
{
	if (n->nnames == SV_BLOB_ABSTRACT)
		return sv_fail(l->err, E2BIG, "policy blob", "more than %d patterns of abstract names",
			       SV_BLOB_ABSTRACT);
	if (!t->text.n || sv_glob_check(t->text) == SV_GLOB_BAD)
		return sv_load_damaged(l, "a pattern of abstract names");
	n->names[n->nnames++] = (struct sv_name){
		t->text, sv_load_entry(l, t->rule, sv_glob_literal(t->text, NULL))
	};
	return 0;
}

static int read_target(struct sv_load *l, struct sv_net *n)
{
	struct target t = { .rule = sv_load_of_rule(l, 6) };

	if (!t.rule || t.rule->kind != SV_RULE_NETWORK ||
	    !sv_mp_uint(&l->r, SV_NET_ABSTRACT, &t.kind) ||
	    !sv_mp_bin(&l->r, SV_BLOB_PATTERN, &t.text) || !sv_mp_uint(&l->r, 128, &t.len) ||
	    !sv_mp_uint(&l->r, UINT16_MAX, &t.lo) || !sv_mp_uint(&l->r, UINT16_MAX, &t.hi))
		return sv_load_damaged(l, "a target of the network");
	if (t.kind == SV_NET_ADDRESS)
		return add_address(l, n, &t);
	if (t.len || t.lo || t.hi)
		return sv_load_damaged(l, "a port of a local socket");
	return t.kind == SV_NET_PATH ? add_path(l, n, &t) : add_name(l, n, &t);
}

int sv_load_network(struct sv_load *l)
{
	struct sv_net *net = &l->p->net;
	size_t n;
	int rc;

	if (!sv_mp_array(&l->r, SV_BLOB_PATHS, &n))
		return sv_load_damaged(l, "the network");
	rc = new_tables(l, net, n);
	for (size_t i = 0; !rc && i < n; i++)
		rc = read_target(l, net);
	if (!rc && (sv_cidr_build(net->connect) < 0 || sv_cidr_build(net->bind) < 0))
		rc = sv_load_memory(l);
	return rc ? rc : sv_trie_seal(net->paths, l->err);
}

void sv_load_free_network(struct sv_net *n)
{
	sv_cidr_free(n->connect);
	sv_cidr_free(n->bind);
	sv_trie_free(n->paths);
	free(n->names);
}
