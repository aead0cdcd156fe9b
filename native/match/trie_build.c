/* trie_build.c - patterns into nodes; trie_seal.c makes the rest when all are in. */
#include "match/trie_node.h"

#include "base/err.h"
#include "match/glob.h"

#include <errno.h>
#include <stdlib.h>

static const char where[] = "pattern";

/* The next component of a pattern from *at; false at its end. */
static bool next_part(struct sv_str text, size_t *at, struct sv_str *part)
{
	const uint8_t *slash;

	if (*at > text.n)
		return false;
	part->p = text.p + *at;
	slash = memchr(part->p, '/', text.n - *at);
	part->n = slash ? (size_t)(slash - part->p) : text.n - *at;
	*at += part->n + 1;
	return true;
}

static bool is_deep(struct sv_str part)
{
	return part.n == 2 && part.p[0] == '*' && part.p[1] == '*';
}

/* Where the first component starts; past the end for "/", which has none. */
static size_t first_part(struct sv_str text)
{
	if (text.n == 1 && text.p[0] == '/')
		return text.n + 1;
	return text.p[0] == '/';
}

static bool is_dots(struct sv_str part)
{
	uint8_t out[4];
	size_t n;

	if (part.n > sizeof(out))
		return false;
	n = sv_glob_literal(part, out);
	return (n == 1 || n == 2) && out[0] == '.' && out[n - 1] == '.';
}

static enum sv_glob_kind check_part(struct sv_str part, struct sv_err *err)
{
	enum sv_glob_kind kind = sv_glob_check(part);

	if (!part.n)
		kind = SV_GLOB_BAD;
	if (kind == SV_GLOB_LITERAL && is_dots(part))
		kind = SV_GLOB_BAD;
	if (kind == SV_GLOB_BAD)
		sv_fail(err, EINVAL, where, "'%.*s' is no path component or glob",
			part.n > 100 ? 100 : (int)part.n, (const char *)part.p);
	return kind;
}

/* With '/', or with `**` as a whole component. */
static bool starts_well(struct sv_str text)
{
	struct sv_str front = { text.p, text.n < 2 ? text.n : 2 };

	if (!text.n || text.p[0] == '/')
		return text.n;
	return is_deep(front) && (text.n == 2 || text.p[2] == '/');
}

int sv_pattern_scan(struct sv_str text, struct sv_pattern *out, struct sv_err *err)
{
	struct sv_str part;
	size_t at, literal = 0;
	bool wild = false, wild_before = false, deep = false;

	out->literal = 0;
	out->folder = 0;
	if (!starts_well(text))
		return sv_fail(err, EINVAL, where, "a path pattern starts with '/' or '**/'");
	if (text.n > SV_PATTERN_MAX)
		return sv_fail(err, EINVAL, where, "a path pattern is too long");
	for (at = first_part(text); next_part(text, &at, &part);) {
		enum sv_glob_kind kind = check_part(part, err);

		if (kind == SV_GLOB_BAD)
			return -EINVAL;
		wild_before = wild;
		deep = is_deep(part);
		wild |= kind != SV_GLOB_LITERAL;
		if (!wild)
			literal += 1 + sv_glob_literal(part, NULL);
	}
	out->literal = literal;
	out->folder = deep && !wild_before ? literal : 0;
	return 0;
}

struct sv_trie *sv_trie_new(uint64_t seed)
{
	struct sv_trie *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->seed = seed;
	t->nslots = 64;
	t->shift = 58;
	t->cap_nodes = 64;
	t->nnodes = SV_ROOT + 1;
	t->nodes = calloc(t->cap_nodes, sizeof(*t->nodes));
	t->slots = calloc(t->nslots, sizeof(*t->slots));
	if (!t->nodes || !t->slots) {
		sv_trie_free(t);
		return NULL;
	}
	return t;
}

void sv_trie_free(struct sv_trie *t)
{
	if (!t)
		return;
	free(t->nodes);
	free(t->slots);
	free(t->arena);
	free(t->entries);
	free(t->sets);
	free(t->edges);
	free(t->keys);
	free(t->pending);
	free(t);
}

size_t sv_trie_bytes(const struct sv_trie *t)
{
	return sizeof(*t) + t->cap_nodes * sizeof(*t->nodes) + t->nslots * sizeof(*t->slots) +
	       t->cap_arena + t->nentries * sizeof(*t->entries) + t->nsets * sizeof(*t->sets) +
	       t->nedges * sizeof(*t->edges) + (t->keys ? (t->key_mask + 1) * sizeof(*t->keys) : 0);
}

/* Room for `more` elements behind n; doubles. */
static bool reserve(void **p, size_t *cap, size_t n, size_t more, size_t size)
{
	size_t want = *cap ? *cap : 64;
	void *q;

	if (n + more <= *cap)
		return true;
	while (want < n + more)
		want *= 2;
	q = realloc(*p, want * size);
	if (!q)
		return false;
	*p = q;
	*cap = want;
	return true;
}

static void put_slot(struct sv_trie *t, uint64_t h, uint32_t node)
{
	size_t i = (size_t)(h >> t->shift);

	while (t->slots[i].node)
		i = (i + 1) & (t->nslots - 1);
	t->slots[i].tag = (uint32_t)h;
	t->slots[i].node = node;
}

static uint64_t node_hash(const struct sv_trie *t, const struct sv_node *n)
{
	return sv_edge_hash(sv_hash(t->seed, sv_node_text(t, n), n->len), n->parent);
}

static bool grow_slots(struct sv_trie *t)
{
	struct sv_slot *slots;

	if (t->used_slots * 2 < t->nslots)
		return true;
	slots = calloc(t->nslots * 2, sizeof(*slots));
	if (!slots)
		return false;
	free(t->slots);
	t->slots = slots;
	t->nslots *= 2;
	t->shift--;
	for (size_t i = SV_ROOT + 1; i < t->nnodes; i++)
		if (!(t->nodes[i].flags & SV_NODE_STAR))
			put_slot(t, node_hash(t, &t->nodes[i]), (uint32_t)i);
	return true;
}

/* A new node below parent; 0 = out of memory or too many. */
static uint32_t new_node(struct sv_trie *t, uint32_t parent, struct sv_str text, unsigned int flags)
{
	struct sv_node *n;

	if (t->nnodes >= SV_TRIE_NODES ||
	    !reserve((void **)&t->nodes, &t->cap_nodes, t->nnodes, 1, sizeof(*n)))
		return 0;
	n = &t->nodes[t->nnodes];
	memset(n, 0, sizeof(*n));
	n->parent = parent;
	n->len = (uint16_t)text.n;
	if (t->nodes[parent].flags & (SV_NODE_STAR | SV_NODE_FLOAT))
		flags |= SV_NODE_FLOAT;
	n->flags = (uint16_t)flags;
	if (text.n <= SV_TRIE_INLINE) {
		memcpy(n->text, text.p, text.n);
	} else {
		if (!reserve((void **)&t->arena, &t->cap_arena, t->narena, text.n, 1))
			return 0;
		n->at = (uint32_t)t->narena;
		memcpy(t->arena + t->narena, text.p, text.n);
		t->narena += text.n;
	}
	return (uint32_t)t->nnodes++;
}

static uint32_t star_of(struct sv_trie *t, uint32_t node)
{
	const struct sv_str none = { (const uint8_t *)"", 0 };
	uint32_t star;

	if (t->nodes[node].flags & SV_NODE_STAR)
		return node;
	if (t->nodes[node].star)
		return t->nodes[node].star;
	star = new_node(t, node, none, SV_NODE_STAR);
	if (star)
		t->nodes[node].star = star;
	return star;
}

static uint32_t child_of(struct sv_trie *t, uint32_t node, struct sv_str part)
{
	uint8_t plain[SV_PATTERN_MAX];
	unsigned int kind = SV_NODE_GLOB;
	uint64_t hash;
	uint32_t child;

	if (sv_glob_check(part) == SV_GLOB_LITERAL) {
		part.n = sv_glob_literal(part, plain);
		part.p = plain;
		kind = 0;
	}
	hash = sv_hash(t->seed, part.p, part.n);
	child = sv_child(t, node, hash, part.p, part.n, kind);
	if (child)
		return child;
	if (!grow_slots(t))
		return 0;
	child = new_node(t, node, part, kind);
	if (!child)
		return 0;
	put_slot(t, sv_edge_hash(hash, node), child);
	t->used_slots++;
	t->nodes[node].flags |= kind ? SV_NODE_GLOBS : SV_NODE_NAMES;
	return child;
}

int sv_trie_add(struct sv_trie *t, struct sv_str pattern, const struct sv_entry *entry,
		struct sv_err *err)
{
	struct sv_pattern shape;
	struct sv_str part;
	uint32_t node = SV_ROOT;
	size_t at;
	int rc = sv_pattern_scan(pattern, &shape, err);

	if (rc < 0)
		return rc;
	for (at = first_part(pattern); next_part(pattern, &at, &part);) {
		node = is_deep(part) ? star_of(t, node) : child_of(t, node, part);
		if (!node)
			break;
	}
	if (t->nnodes >= SV_TRIE_NODES)
		return sv_fail(err, E2BIG, where, "the patterns have more than %d components",
			       SV_TRIE_NODES);
	if (!node || !reserve((void **)&t->pending, &t->cap_pending, t->npending, 1,
			      sizeof(*t->pending)))
		return sv_fail(err, ENOMEM, where, "out of memory");
	t->pending[t->npending].entry = *entry;
	t->pending[t->npending++].node = node;
	return 0;
}
