/* trie_seal.c - what is made once all patterns are in: entries in order of
 * strictness, the index of component globs, and the bound of a walk. */
#include "base/err.h"
#include "match/glob.h"
#include "match/trie_node.h"

#include <errno.h>
#include <stdlib.h>

static int by_node(const void *va, const void *vb)
{
	const struct sv_pending *a = va, *b = vb;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->entry.except != b->entry.except)
		return a->entry.except < b->entry.except ? -1 : 1;
	if (!a->entry.except && a->entry.key != b->entry.key)
		return a->entry.key > b->entry.key ? -1 : 1;
	return a->entry.rule < b->entry.rule ? -1 : a->entry.rule > b->entry.rule;
}

static bool seal_entries(struct sv_trie *t)
{
	t->entries = calloc(t->npending + 1, sizeof(*t->entries));
	if (!t->entries)
		return false;
	if (t->npending)
		qsort(t->pending, t->npending, sizeof(*t->pending), by_node);
	for (size_t i = 0; i < t->npending; i++) {
		struct sv_node *n = &t->nodes[t->pending[i].node];

		if (!(n->nmatch + n->nexcept))
			n->entries = (uint32_t)i;
		if (t->pending[i].entry.except)
			n->nexcept++;
		else
			n->nmatch++;
		t->entries[i] = t->pending[i].entry;
	}
	t->nentries = t->npending;
	free(t->pending);
	t->pending = NULL;
	return true;
}

/* Lay the glob children out by node, each set together. */
static bool collect_globs(struct sv_trie *t)
{
	size_t nsets = 0, nedges = 0;

	for (size_t i = SV_ROOT; i < t->nnodes; i++) {
		nsets += (t->nodes[i].flags & SV_NODE_GLOBS) != 0;
		nedges += (t->nodes[i].flags & SV_NODE_GLOB) != 0;
	}
	t->sets = calloc(nsets + 1, sizeof(*t->sets));
	t->edges = calloc(nedges + 1, sizeof(*t->edges));
	if (!t->sets || !t->edges)
		return false;
	for (size_t i = SV_ROOT; i < t->nnodes; i++)
		if (t->nodes[i].flags & SV_NODE_GLOBS)
			t->nodes[i].globs = (uint32_t)t->nsets++;
	for (size_t i = SV_ROOT; i < t->nnodes; i++)
		if (t->nodes[i].flags & SV_NODE_GLOB)
			t->sets[t->nodes[t->nodes[i].parent].globs].count++;
	for (size_t i = 1; i < t->nsets; i++)
		t->sets[i].first = t->sets[i - 1].first + t->sets[i - 1].count;
	for (size_t i = SV_ROOT; i < t->nnodes; i++) {
		struct sv_glob_set *g;

		if (!(t->nodes[i].flags & SV_NODE_GLOB))
			continue;
		g = &t->sets[t->nodes[t->nodes[i].parent].globs];
		t->edges[g->first + g->always++].node = (uint32_t)i;
		t->nedges++;
	}
	return true;
}

static int by_key(const void *va, const void *vb)
{
	const struct sv_glob_edge *a = va, *b = vb;

	if (a->klen != b->klen)
		return a->klen < b->klen ? -1 : 1;
	if (a->suffix != b->suffix)
		return a->suffix < b->suffix ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

static bool same_key(const struct sv_glob_edge *a, const struct sv_glob_edge *b)
{
	return a->klen == b->klen && a->suffix == b->suffix && a->key == b->key;
}

/* Key an edge by one of its ends; without literal bytes there it has none. */
static void key_by(const struct sv_trie *t, struct sv_glob_edge *e, bool suffix)
{
	const struct sv_node *n = &t->nodes[e->node];
	struct sv_str glob = { sv_node_text(t, n), n->len };
	struct sv_glob_ends ends;

	sv_glob_ends(glob, &ends);
	e->klen = suffix ? ends.nsuf : ends.npre;
	e->suffix = suffix;
	e->key = 0;
	for (unsigned int i = 0; i < e->klen; i++)
		e->key = sv_key_add(e->key, suffix ? ends.suf[e->klen - 1 - i] : ends.pre[i]);
}

static uint32_t run_length(const struct sv_glob_edge *e, uint32_t count)
{
	uint32_t n = 1;

	while (n < count && same_key(e, e + n))
		n++;
	return n;
}

/* Key the edges of one set by their ends, then those that share that key with many
 * by their beginnings, so that `a-*.service`, `b-*.service`, ... part. */
static void key_set(struct sv_trie *t, struct sv_glob_set *g)
{
	struct sv_glob_edge *e = t->edges + g->first;
	uint32_t run;

	if (g->count <= SV_FEW_GLOBS)
		return;
	for (uint32_t i = 0; i < g->count; i++)
		key_by(t, &e[i], true);
	qsort(e, g->count, sizeof(*e), by_key);
	for (uint32_t i = 0; i < g->count; i += run) {
		run = run_length(e + i, g->count - i);
		for (uint32_t j = i; j < i + run; j++) {
			if (run > SV_FEW_GLOBS || !e[j].klen)
				key_by(t, &e[j], false);
			if (!e[j].klen)
				key_by(t, &e[j], true);
		}
	}
	qsort(e, g->count, sizeof(*e), by_key);
	g->always = 0;
	while (g->always < g->count && !e[g->always].klen)
		g->always++;
}

static void index_set(struct sv_trie *t, uint32_t set)
{
	struct sv_glob_set *g = &t->sets[set];
	uint32_t run;

	for (uint32_t i = g->always; i < g->count; i += run) {
		const struct sv_glob_edge *e = &t->edges[g->first + i];
		size_t at = sv_key_hash(e->key, set, e->klen, e->suffix) & t->key_mask;

		run = run_length(e, g->count - i);
		while (t->keys[at].count)
			at = (at + 1) & t->key_mask;
		t->keys[at] = (struct sv_key_slot){
			.key = e->key, .set = set, .first = g->first + i, .count = run,
			.klen = e->klen, .suffix = e->suffix,
		};
		if (e->suffix)
			g->suf |= 1u << (e->klen - 1);
		else
			g->pre |= 1u << (e->klen - 1);
	}
}

static bool seal_globs(struct sv_trie *t)
{
	size_t keyed = 0, size = 1;

	if (!collect_globs(t))
		return false;
	for (size_t i = 0; i < t->nsets; i++) {
		key_set(t, &t->sets[i]);
		keyed += t->sets[i].count - t->sets[i].always;
	}
	while (size < keyed * 2)
		size *= 2;
	t->keys = calloc(size, sizeof(*t->keys));
	if (!t->keys)
		return false;
	t->key_mask = size - 1;
	for (size_t i = 0; i < t->nsets; i++)
		index_set(t, (uint32_t)i);
	return true;
}

/* How many nodes below one node a walk can be in at once, gathered from the children. */
struct width {
	uint32_t level;		/* in one level, when the node is reached once */
	uint32_t height;	/* levels with such nodes */
	uint32_t names, globs;	/* of `level`: the widest name, the sum of the globs */
	uint32_t deep;		/* `**` nodes and what is below them, reached once */
	uint32_t deep_names;	/* ... of it: the widest name (two names exclude each other) */
	uint32_t deep_all;	/* `**` nodes and what is below them, reached at any time */
};

static uint32_t add(uint32_t a, uint64_t b)
{
	return b > 1000000 || a + b > 1000000 ? 1000000 : (uint32_t)(a + b);
}

static uint32_t max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Fold a finished node into its parent. */
static void fold(const struct sv_node *n, const struct width *w, struct width *up)
{
	uint32_t level = n->flags & SV_NODE_INNER ? max(1, add(w->names, w->globs)) : 0;
	uint32_t deep = add(w->deep, w->deep_names);

	if (n->flags & SV_NODE_STAR) {
		/* Below `**` every level can be in use at the same time. */
		uint32_t all = level ? add(1 + w->deep_all, (uint64_t)level * (w->height + 1)) : 0;

		up->deep = add(up->deep, all);
		up->deep_all = add(up->deep_all, all);
		return;
	}
	if (level)
		up->height = max(up->height, w->height + 1);
	up->deep_all = add(up->deep_all, w->deep_all);
	if (n->flags & SV_NODE_GLOB) {
		up->globs = add(up->globs, level);
		up->deep = add(up->deep, deep);
	} else {
		up->names = max(up->names, level);
		up->deep_names = max(up->deep_names, deep);
	}
}

static int check_width(const struct sv_trie *t, struct sv_err *err)
{
	struct width *w = calloc(t->nnodes, sizeof(*w));
	uint32_t all;

	if (!w)
		return sv_fail(err, ENOMEM, "pattern", "out of memory");
	for (size_t i = t->nnodes - 1; i > SV_ROOT; i--)
		fold(&t->nodes[i], &w[i], &w[t->nodes[i].parent]);
	all = add(max(1, add(w[SV_ROOT].names, w[SV_ROOT].globs)),
		  add(w[SV_ROOT].deep, w[SV_ROOT].deep_names));
	free(w);
	if (all > SV_WALK_SET)
		return sv_fail(err, E2BIG, "pattern",
			       "one path could be in %u places of the patterns at once (limit %d): "
			       "use fewer patterns with '**' or a glob before the last component",
			       all, SV_WALK_SET);
	return 0;
}

int sv_trie_seal(struct sv_trie *t, struct sv_err *err)
{
	struct sv_node *nodes = aligned_alloc(64, t->nnodes * sizeof(*nodes));

	if (!nodes)
		return sv_fail(err, ENOMEM, "pattern", "out of memory");
	memcpy(nodes, t->nodes, t->nnodes * sizeof(*nodes));
	free(t->nodes);
	t->nodes = nodes;
	t->cap_nodes = t->nnodes;
	if (!seal_entries(t) || !seal_globs(t))
		return sv_fail(err, ENOMEM, "pattern", "out of memory");
	return check_width(t, err);
}
