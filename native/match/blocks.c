/* blocks.c - the policy first, then every block that the caller is in. */
#include "match/blocks.h"

#include "match/judge.h"

static const struct sv_policy *block_of(const struct sv_policy *p, uint32_t blocks, uint32_t i)
{
	return blocks >> i & 1 ? &p->blocks[i] : NULL;
}

uint32_t sv_blocks_start(const struct sv_policy *p, struct sv_str path, struct sv_str name)
{
	const struct sv_str called[2] = { path, name };
	uint32_t out = 0;
	struct sv_walk w;

	if (!p->nblocks)
		return 0;
	if (!sv_trie_walk(p->starts, path, &w))
		return SV_LABEL_ALL;
	for (int i = 0; i < w.nhits; i++) {
		struct sv_entries e = sv_trie_entries(p->starts, w.hits[i]);

		for (uint32_t k = 0; k < e.nmatch; k++)
			out |= 1u << e.p[k].rule;
	}
	for (int i = 0; i < 2; i++) {
		uint32_t count = 0;
		const struct sv_name *n = sv_starts_of(p, called[i], &count);

		for (uint32_t k = 0; k < count; k++)
			out |= 1u << n[k].entry.rule;
	}
	return out;
}

void sv_match_stricter(struct sv_match *out, const struct sv_match *other)
{
	int n = out->matched < 16 ? out->matched : 16;

	for (int i = 0; i < other->matched && i < 16 && n < 16; i++)
		out->rules[n++] = other->rules[i];
	out->matched += other->matched;
	if (other->action <= out->action)
		return;
	out->action = other->action;
	out->rule = other->rule;
	out->err = other->err;
	out->prefix = other->prefix;
	out->pin = other->pin;
}

void sv_match_path_in(const struct sv_policy *p, uint32_t blocks, struct sv_str path, uint32_t ops,
		      struct sv_match *out)
{
	struct sv_match m;

	sv_match_path(p, path, ops, out);
	for (uint32_t i = 0; i < p->nblocks; i++)
		if (block_of(p, blocks, i)) {
			sv_match_path(&p->blocks[i], path, ops, &m);
			sv_match_stricter(out, &m);
		}
}

void sv_match_exec_in(const struct sv_policy *p, uint32_t blocks, struct sv_str path,
		      struct sv_str name, const struct sv_str *argv, int argc, bool argv_known,
		      struct sv_match *out)
{
	struct sv_match m;

	sv_match_exec(p, path, name, argv, argc, argv_known, out);
	for (uint32_t i = 0; i < p->nblocks; i++)
		if (block_of(p, blocks, i)) {
			sv_match_exec(&p->blocks[i], path, name, argv, argc, argv_known, &m);
			sv_match_stricter(out, &m);
		}
}

bool sv_match_needs_argv_in(const struct sv_policy *p, uint32_t blocks, struct sv_str path,
			    struct sv_str name)
{
	bool needs = sv_match_needs_argv(p, path, name);

	for (uint32_t i = 0; i < p->nblocks && !needs; i++)
		needs = block_of(p, blocks, i) && sv_match_needs_argv(&p->blocks[i], path, name);
	return needs;
}

static bool may_move_in(const struct sv_policy *p, struct sv_str from, struct sv_str to, bool folder)
{
	if (sv_match_looser(p, from, to))
		return false;
	return !folder || sv_match_same_future(p, from, to);
}

/* A program under another name may be one that no block is for, whoever renames it. */
static bool starts_kept(const struct sv_policy *p, struct sv_str from, struct sv_str to, bool folder)
{
	if (!p->nblocks)
		return true;
	if (sv_blocks_start(p, from, from) & ~sv_blocks_start(p, to, to))
		return false;
	return !folder || sv_trie_same_below(p->starts, from, to);
}

bool sv_match_may_move(const struct sv_policy *p, uint32_t blocks, struct sv_str from,
		       struct sv_str to, bool folder)
{
	if (!may_move_in(p, from, to, folder) || !starts_kept(p, from, to, folder))
		return false;
	for (uint32_t i = 0; blocks && i < p->nblocks; i++)
		if (!may_move_in(&p->blocks[i], from, to, folder))
			return false;
	return true;
}
