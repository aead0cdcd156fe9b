/* cidr_build.c - freezes the entries into prefixes, port runs and the trie. */
#include "match/cidr_tree.h"

#include <errno.h>
#include <stdlib.h>

static int cmp(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_prefix(const struct entry *a, const struct entry *b)
{
	int d = cmp(a->v4, b->v4);

	if (!d)
		d = cmp(a->key.hi, b->key.hi);
	if (!d)
		d = cmp(a->key.lo, b->key.lo);
	return d ? d : cmp(a->len, b->len);
}

/* A prefix before the longer ones below it, the strictest entry first. */
static int by_order(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	int d = by_prefix(a, b);

	if (!d)
		d = cmp(b->rank, a->rank);
	if (!d)
		d = cmp((uint64_t)a->value, (uint64_t)b->value);
	return d ? d : cmp(a->lo, b->lo);
}

/* ---- ports of one prefix ---- */

static int by_number(const void *x, const void *y)
{
	return cmp(*(const uint32_t *)x, *(const uint32_t *)y);
}

static size_t place(const uint32_t *edges, size_t n, uint32_t edge)
{
	size_t at = 0;

	while (n > 1) {
		size_t half = n / 2;

		if (edges[at + half] <= edge)
			at += half;
		n -= half;
	}
	return at;
}

/* Paints the elementary ranges between edges with entries first..end, the
 * strictest first. next[i] leads past what is painted, so each is met once. */
static void paint(const struct sv_cidr *c, size_t first, size_t end, const uint32_t *edges,
		  size_t n, uint32_t *owner, uint32_t *next)
{
	for (size_t i = 0; i < n; i++) {
		owner[i] = NONE;
		next[i] = (uint32_t)i;
	}
	for (size_t e = first; e < end; e++) {
		size_t i = place(edges, n, c->entries[e].lo);

		while (i < n && edges[i] <= c->entries[e].hi) {
			size_t to = next[i];

			if (to == i) {
				owner[i] = (uint32_t)e;
				to = i + 1;
			}
			next[i] = to < n ? next[to] : (uint32_t)n;
			i = to;
		}
	}
}

static int add_run(struct sv_cidr *c, uint32_t start, uint32_t entry)
{
	int rc = ROOM(c->runs, c->n_runs, 1, c->cap_runs);

	if (!rc)
		c->runs[c->n_runs++] = (struct run){ start, entry };
	return rc;
}

/* Turns overlapping port ranges of one prefix into runs without overlap. */
static int add_runs(struct sv_cidr *c, size_t first, size_t end)
{
	size_t n = 0, count = 2 * (end - first) + 1;
	uint32_t *edges, *owner, *next;
	int rc = 0;

	if (c->entries[first].lo == 0 && c->entries[first].hi == UINT16_MAX)
		return add_run(c, 0, (uint32_t)first);
	edges = calloc(3 * count, sizeof(*edges));
	if (!edges)
		return -ENOMEM;
	owner = edges + count;
	next = owner + count;
	for (size_t e = first; e < end; e++) {
		edges[n++] = c->entries[e].lo;
		edges[n++] = c->entries[e].hi + 1U;
	}
	edges[n++] = 0;
	qsort(edges, n, sizeof(*edges), by_number);
	count = 1;
	for (size_t i = 1; i < n; i++)
		if (edges[i] != edges[count - 1])
			edges[count++] = edges[i];
	paint(c, first, end, edges, count, owner, next);
	for (size_t i = 0; i < count && !rc; i++)
		rc = add_run(c, edges[i], owner[i]);
	free(edges);
	return rc;
}

/* ---- prefixes ---- */

/* What a lookup answers for every port, where that is one value. */
static void set_best(const struct sv_cidr *c, struct prefix *p, const struct entry *own)
{
	const struct prefix *up = p->parent == NONE ? NULL : &c->prefixes[p->parent];

	p->best = BY_PORT;
	p->top = up && up->top > own->rank ? up->top : own->rank;
	if (p->top > own->rank)
		p->best = up->best;
	else if (own->lo == 0 && own->hi == UINT16_MAX)
		p->best = own->value;
}

/* The nearest earlier prefix that covers entry e. Earlier ones that do not are
 * never needed again, because the order is by address. */
static uint32_t around(const struct sv_cidr *c, const struct entry *e)
{
	uint32_t up = c->n_prefixes ? (uint32_t)c->n_prefixes - 1 : NONE;

	while (up != NONE && (c->entries[c->parts[up].entry].v4 != e->v4 ||
			      c->prefixes[up].len > e->len ||
			      !covers(c->prefixes[up].key, c->prefixes[up].len, e->key)))
		up = c->prefixes[up].parent;
	return up;
}

static int make_prefixes(struct sv_cidr *c)
{
	size_t end;
	int rc;

	c->prefixes = calloc(c->n + 1, sizeof(*c->prefixes));
	c->parts = calloc(c->n + 1, sizeof(*c->parts));
	if (!c->prefixes || !c->parts)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i = end) {
		const struct entry *e = &c->entries[i];
		struct prefix *p = &c->prefixes[c->n_prefixes];

		for (end = i + 1; end < c->n; end++)
			if (by_prefix(e, &c->entries[end]))
				break;
		c->parts[c->n_prefixes] = (struct parts){ (uint32_t)i, (uint32_t)c->n_runs };
		rc = add_runs(c, i, end);
		if (rc)
			return rc;
		p->key = e->key;
		p->len = e->len;
		p->parent = around(c, e);
		set_best(c, p, e);
		c->n_prefixes++;
	}
	c->parts[c->n_prefixes] = (struct parts){ (uint32_t)c->n, (uint32_t)c->n_runs };
	return 0;
}

/* ---- the trie ---- */

/* A slot that still has to become a node for the prefixes from..to-1. */
struct work {
	uint32_t from;
	uint32_t to;
	unsigned depth;		/* bits that the way to the slot has used */
	size_t slot;
};

struct todo {
	struct work *work;
	size_t n, cap;
};

static unsigned first_difference(struct key a, struct key b)
{
	return a.hi != b.hi ? (unsigned)__builtin_clzll(a.hi ^ b.hi)
			    : 64 + (unsigned)__builtin_clzll(a.lo ^ b.lo);
}

/* As many slots as there are prefixes, or up to twice as many. */
static unsigned width_for(uint32_t n, unsigned most)
{
	unsigned bits = 1;

	while (bits < most && bits < WIDEST && (uint32_t)1 << bits < n)
		bits++;
	return bits;
}

static struct slot leaf_of(const struct sv_cidr *c, uint32_t p)
{
	return (struct slot){ .to = p, .best = c->prefixes[p].best };
}

/* Fills the slots of one node. The order of prefixes puts each before the
 * longer ones below it, so later paint is longer paint. */
static int spread(struct sv_cidr *c, struct todo *todo, struct work w, struct slot node)
{
	const struct prefix *all = c->prefixes;

	while (w.from < w.to) {
		const struct prefix *p = &all[w.from];
		size_t v = node.to + bits_at(p->key, node.at, node.bits);
		unsigned depth = (unsigned)node.at + node.bits;
		uint32_t end = w.from + 1;

		if (p->len <= depth) {
			size_t n = (size_t)1 << (depth - p->len);

			for (size_t i = 0; i < n; i++)
				c->slots[v + i] = leaf_of(c, w.from);
			w.from++;
			continue;
		}
		while (end < w.to && covers(p->key, depth, all[end].key))
			end++;
		if (end - w.from == 1) {
			c->slots[v].to = w.from;
			c->slots[v].single = 1;
		} else {
			int rc = ROOM(todo->work, todo->n, 1, todo->cap);

			if (rc)
				return rc;
			todo->work[todo->n++] = (struct work){ w.from, end, depth, v };
		}
		w.from = end;
	}
	return 0;
}

/* The node for a group whose first branch is at bit `at`. A short way there is
 * looked at (and costs slots), a long one is skipped. */
static struct slot shape(struct work w, unsigned at, unsigned width)
{
	unsigned bits = width_for(w.to - w.from, width - at);
	unsigned gap = at - w.depth;

	if (gap <= (w.depth ? GAP : ROOT_GAP)) {
		bits = bits + gap > WIDEST ? WIDEST : bits + gap;
		at = w.depth;
	}
	return (struct slot){ .at = (uint16_t)at, .bits = (uint8_t)bits };
}

/* Turns the leaf w.slot (whose prefix is the one around) into a node. */
static int make_node(struct sv_cidr *c, struct todo *todo, struct work w, struct slot *slot,
		     unsigned width)
{
	const struct prefix *all = c->prefixes;
	const struct key last = all[w.to - 1].key;
	struct slot node, leaf = *slot;
	uint32_t inner = w.from;	/* the first that does not cover the rest */
	int rc;

	while (inner < w.to && covers(all[inner].key, all[inner].len, last))
		inner++;
	if (inner == w.to) {	/* one inside the other: fitting() finds the way out */
		*slot = (struct slot){ .to = inner - 1, .best = BY_PORT };
		return 0;
	}
	node = shape(w, first_difference(all[inner].key, last), width);
	if (node.at != w.depth && inner > w.from) {
		leaf = leaf_of(c, inner - 1);
		w.from = inner;
	}
	rc = ROOM(c->slots, c->n_slots, (size_t)1 << node.bits, c->cap_slots);
	if (rc)
		return rc;
	node.to = (uint32_t)c->n_slots;
	for (size_t i = 0; i < (size_t)1 << node.bits; i++)
		c->slots[c->n_slots++] = leaf;
	if (slot == &c->root[0] || slot == &c->root[1])
		*slot = node;
	else
		c->slots[w.slot] = node;
	return spread(c, todo, w, node);
}

static int grow(struct sv_cidr *c, bool v4, uint32_t from, uint32_t to)
{
	struct todo todo = { 0 };
	struct work all = { from, to, 0, 0 };
	unsigned width = v4 ? 32 : 128;
	int rc = 0;

	if (from < to)
		rc = make_node(c, &todo, all, &c->root[v4], width);
	while (!rc && todo.n) {
		struct work w = todo.work[--todo.n];

		rc = make_node(c, &todo, w, &c->slots[w.slot], width);
	}
	free(todo.work);
	return rc;
}

int sv_cidr_build(struct sv_cidr *c)
{
	uint32_t split = 0;
	int rc;

	if (c->built)
		return -EBUSY;
	c->built = true;
	if (c->n)
		qsort(c->entries, c->n, sizeof(*c->entries), by_order);
	rc = make_prefixes(c);
	if (rc)
		return rc;
	while (split < c->n_prefixes && !c->entries[c->parts[split].entry].v4)
		split++;
	rc = grow(c, false, 0, split);
	if (!rc)
		rc = grow(c, true, split, (uint32_t)c->n_prefixes);
	return rc;
}
