/* trie_node.h - the trie's memory, shared by trie_build.c (writes) and trie.c (walks).
 * Node 0 is "none", node 1 the root; a child's number is larger than its parent's. */
#ifndef SV_MATCH_TRIE_NODE_H
#define SV_MATCH_TRIE_NODE_H

#include "match/trie.h"

#include <string.h>

enum {
	SV_NODE_STAR = 1,	/* reached by `**` */
	SV_NODE_GLOB = 2,	/* reached by a component glob */
	SV_NODE_FLOAT = 4,	/* below a `**`: can be reached more than once on one path */
	SV_NODE_NAMES = 8,	/* has children by name */
	SV_NODE_GLOBS = 16,	/* has children by glob */
	SV_NODE_INNER = SV_NODE_NAMES | SV_NODE_GLOBS
};

enum { SV_ROOT = 1, SV_FEW_GLOBS = 4 };

/* One cache line. */
struct sv_node {
	uint32_t parent;
	uint32_t star;		/* child by `**` */
	uint32_t entries;	/* first of its entries */
	uint32_t nmatch;
	uint32_t nexcept;
	uint32_t globs;		/* index of its set of glob children */
	uint32_t at;		/* where a long text stands in the arena */
	uint16_t len;
	uint16_t flags;
	uint8_t text[SV_TRIE_INLINE];
};

struct sv_slot {
	uint32_t tag;
	uint32_t node;		/* 0 = empty */
};

struct sv_glob_edge {
	uint64_t key;		/* hash of the literal bytes it must begin or end with */
	uint32_t node;
	uint8_t klen;		/* bytes of the key, 0 = tried always */
	uint8_t suffix;		/* the key is at the end */
};

/* The glob children of one node. Those without a key come first. */
struct sv_glob_set {
	uint32_t first;
	uint32_t count;
	uint32_t always;	/* so many are tried one by one */
	uint32_t pre;		/* bit i: there are keys of i + 1 bytes at the front */
	uint32_t suf;
};

/* Where the edges with one key begin. */
struct sv_key_slot {
	uint64_t key;
	uint32_t set;
	uint32_t first;
	uint32_t count;		/* 0 = empty */
	uint8_t klen;
	uint8_t suffix;
};

struct sv_pending {
	struct sv_entry entry;
	uint32_t node;
};

struct sv_trie {
	struct sv_node *nodes;
	struct sv_slot *slots;		/* power of two, at most half full */
	uint8_t *arena;
	struct sv_entry *entries;
	struct sv_glob_set *sets;
	struct sv_glob_edge *edges;
	struct sv_key_slot *keys;
	struct sv_pending *pending;	/* while it is filled */
	uint64_t seed;
	uint64_t key_mask;
	size_t nnodes, cap_nodes;
	size_t nslots, used_slots;
	size_t narena, cap_arena;
	size_t npending, cap_pending;
	size_t nentries, nsets, nedges;
	int shift;			/* 64 - log2(nslots) */
};

static inline const uint8_t *sv_node_text(const struct sv_trie *t, const struct sv_node *n)
{
	return n->len <= SV_TRIE_INLINE ? n->text : t->arena + n->at;
}

static inline uint64_t sv_fold(uint64_t a, uint64_t b)
{
	__uint128_t r = (__uint128_t)a * b;

	return (uint64_t)r ^ (uint64_t)(r >> 64);
}

static inline uint64_t sv_load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t sv_load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Keyed hash of one component (multiply and fold, as wyhash does). Only the
 * policy puts names into the table, so a path cannot lengthen its chains. */
static inline uint64_t sv_hash(uint64_t seed, const uint8_t *p, size_t n)
{
	const uint64_t k = 0xa0761d6478bd642fULL;
	uint64_t a = 0, b = 0, h = seed ^ (n * 0xe7037ed1a0b428dbULL);

	for (; n > 16; n -= 16, p += 16)
		h = sv_fold(sv_load64(p) ^ k, sv_load64(p + 8) ^ h);
	if (n >= 8) {
		a = sv_load64(p);
		b = sv_load64(p + n - 8);
	} else if (n >= 4) {
		a = sv_load32(p);
		b = sv_load32(p + n - 4);
	} else if (n) {
		a = (uint64_t)p[0] << 16 | (uint64_t)p[n >> 1] << 8 | p[n - 1];
	}
	return sv_fold(a ^ k, b ^ h);
}

static inline uint64_t sv_edge_hash(uint64_t name, uint32_t parent)
{
	return (name ^ (parent * 0x8ebc6af09c88c6e3ULL)) * 0x9e3779b97f4a7c15ULL;
}

/* The child of `parent` by this text; kind is SV_NODE_GLOB or 0. */
static inline uint32_t sv_child(const struct sv_trie *t, uint32_t parent, uint64_t hash,
				const uint8_t *text, size_t len, unsigned int kind)
{
	uint64_t h = sv_edge_hash(hash, parent);
	size_t i = (size_t)(h >> t->shift);

	for (; t->slots[i].node; i = (i + 1) & (t->nslots - 1)) {
		const struct sv_node *n;

		if (t->slots[i].tag != (uint32_t)h)
			continue;
		n = &t->nodes[t->slots[i].node];
		if (n->parent == parent && n->len == len && (n->flags & SV_NODE_GLOB) == kind &&
		    !memcmp(sv_node_text(t, n), text, len))
			return t->slots[i].node;
	}
	return 0;
}

/* The key of one more byte, from the outside in. Two keys that agree by chance cost
 * a comparison and no more: the glob itself decides. */
static inline uint64_t sv_key_add(uint64_t key, uint8_t byte)
{
	return (key ^ (byte + 1u)) * 0x9e3779b97f4a7c15ULL;
}

static inline uint64_t sv_key_hash(uint64_t key, uint32_t set, unsigned int klen, bool suffix)
{
	uint64_t h = sv_fold(key ^ 0x589965cc75374cc3ULL, set * 0x1d8e4e27c47d124fULL + klen * 2 + suffix);

	return h ^ h >> 29;
}

#endif
