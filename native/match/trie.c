/* trie.c - the walk: a set of nodes goes down the path, one component at a time. */
#include "match/trie.h"

#include "match/glob.h"
#include "match/trie_node.h"

static bool holds(const uint32_t *list, int n, uint32_t node)
{
	for (int i = 0; i < n; i++)
		if (list[i] == node)
			return true;
	return false;
}

/* A `**` child is reached together with its parent, and for good. */
static void enter_star(const struct sv_trie *t, struct sv_walk *w, uint32_t star)
{
	const struct sv_node *n = &t->nodes[star];
	bool again = n->flags & SV_NODE_FLOAT;

	if (n->nmatch + n->nexcept && !(again && holds(w->hits, w->nhits, star))) {
		if (w->nhits == SV_WALK_HITS)
			w->over = true;
		else
			w->hits[w->nhits++] = star;
	}
	if ((n->flags & SV_NODE_INNER) && !(again && holds(w->stars, w->nstars, star))) {
		if (w->nstars == SV_WALK_SET)
			w->over = true;
		else
			w->stars[w->nstars++] = star;
	}
}

static void enter(const struct sv_trie *t, struct sv_walk *w, uint32_t node, bool last, int *nnext)
{
	const struct sv_node *n = &t->nodes[node];

	if (n->star)
		enter_star(t, w, n->star);
	if (last && n->nmatch + n->nexcept) {
		if (w->nhits == SV_WALK_HITS)
			w->over = true;
		else
			w->hits[w->nhits++] = node;
	}
	if (n->flags & SV_NODE_INNER) {
		if (*nnext == SV_WALK_SET)
			w->over = true;
		else
			w->set[!w->now][(*nnext)++] = node;
	}
}

static void try_edges(const struct sv_trie *t, struct sv_walk *w, uint32_t first, uint32_t count,
		      struct sv_str name, bool last, int *nnext)
{
	for (uint32_t i = first; i < first + count; i++) {
		const struct sv_node *n = &t->nodes[t->edges[i].node];
		struct sv_str glob = { sv_node_text(t, n), n->len };

		if (sv_glob_match(glob, name))
			enter(t, w, t->edges[i].node, last, nnext);
	}
}

/* The edges of one set with one key. */
static void try_key(const struct sv_trie *t, struct sv_walk *w, uint32_t set, unsigned int klen,
		    bool suffix, uint64_t key, struct sv_str name, bool last, int *nnext)
{
	size_t i = sv_key_hash(key, set, klen, suffix) & t->key_mask;

	for (; t->keys[i].count; i = (i + 1) & t->key_mask) {
		const struct sv_key_slot *k = &t->keys[i];

		if (k->key == key && k->set == set && k->klen == klen && k->suffix == suffix) {
			try_edges(t, w, k->first, k->count, name, last, nnext);
			return;
		}
	}
}

static void try_globs(const struct sv_trie *t, struct sv_walk *w, uint32_t set, struct sv_str name,
		      bool last, int *nnext)
{
	const struct sv_glob_set *g = &t->sets[set];
	uint32_t lengths = g->pre | g->suf;
	uint64_t front = 0, back = 0;

	try_edges(t, w, g->first, g->always, name, last, nnext);
	for (unsigned int i = 0; lengths >> i && i < name.n; i++) {
		front = sv_key_add(front, name.p[i]);
		back = sv_key_add(back, name.p[name.n - 1 - i]);
		if (g->pre >> i & 1)
			try_key(t, w, set, i + 1, false, front, name, last, nnext);
		if (g->suf >> i & 1)
			try_key(t, w, set, i + 1, true, back, name, last, nnext);
		if (i == SV_GLOB_KEY - 1)
			break;
	}
}

static void leave(const struct sv_trie *t, struct sv_walk *w, uint32_t node, uint64_t hash,
		  struct sv_str name, bool last, int *nnext)
{
	const struct sv_node *n = &t->nodes[node];

	if (n->flags & SV_NODE_NAMES) {
		uint32_t child = sv_child(t, node, hash, name.p, name.n, 0);

		if (child)
			enter(t, w, child, last, nnext);
	}
	if (n->flags & SV_NODE_GLOBS)
		try_globs(t, w, n->globs, name, last, nnext);
}

static void step(const struct sv_trie *t, struct sv_walk *w, struct sv_str name, bool last)
{
	int stars = w->nstars;	/* those met in this step begin with the next one */
	int nnext = 0;
	uint64_t hash;

	if (!stars && !w->nset)
		return;
	hash = sv_hash(t->seed, name.p, name.n);
	for (int i = 0; i < stars; i++)
		leave(t, w, w->stars[i], hash, name, last, &nnext);
	for (int i = 0; i < w->nset; i++)
		leave(t, w, w->set[w->now][i], hash, name, last, &nnext);
	w->now = !w->now;
	w->nset = nnext;
}

bool sv_is_name(struct sv_str name)
{
	if (name.n > 2)
		return true;
	return name.n && (name.p[0] != '.' || (name.n == 2 && name.p[1] != '.'));
}

bool sv_trie_walk(const struct sv_trie *t, struct sv_str path, struct sv_walk *w)
{
	const uint8_t *at = path.p, *end;
	int nnext = 0;

	w->now = 0;
	w->nset = 0;
	w->nstars = 0;
	w->nhits = 0;
	w->over = false;
	if (!path.n || path.n >= SV_PATH_MAX || path.p[0] != '/')
		return false;
	end = path.p + path.n;
	enter(t, w, SV_ROOT, path.n == 1, &nnext);
	w->now = 1;
	w->nset = nnext;
	if (path.n == 1)
		return !w->over;
	while (at < end) {
		struct sv_str name = { ++at, 0 };

		while (at < end && *at != '/')
			at++;
		name.n = (size_t)(at - name.p);
		if (!sv_is_name(name))
			return false;
		step(t, w, name, at == end);
	}
	return !w->over;
}

struct sv_entries sv_trie_entries(const struct sv_trie *t, uint32_t node)
{
	const struct sv_node *n = &t->nodes[node];
	struct sv_entries out = { t->entries + n->entries, n->nmatch, n->nexcept };

	return out;
}

bool sv_trie_stays(const struct sv_trie *t, uint32_t node)
{
	return t->nodes[node].flags & SV_NODE_STAR;
}
