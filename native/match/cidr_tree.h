/* cidr_tree.h - the insides of the prefix tree, for cidr.c and cidr_build.c.
 *
 * A trie whose nodes are as wide as their contents are dense (an LC-trie), over
 * the distinct prefixes. Long stretches without a branch are skipped, not
 * looked at, so the prefix that a path with skips leads to is only a candidate:
 * its own bits are compared, and where they differ the answer is the next
 * shorter prefix around it that fits. That is right because whatever covers an
 * address that strays inside a skipped stretch covers everything below that
 * stretch as well. Slots repeat the answer, which saves the common case the
 * cache miss of reading the prefix. */
#ifndef SV_MATCH_CIDR_TREE_H
#define SV_MATCH_CIDR_TREE_H

#include "match/cidr.h"

enum { WIDEST = 22 };			/* bits of one node */
enum { GAP = 3, ROOT_GAP = 6 };		/* stretches not worth skipping */

#define NONE UINT32_MAX		/* no prefix, no entry */
#define BY_PORT (-2)		/* best is not one value for all ports */

struct key {
	uint64_t hi;
	uint64_t lo;
};

struct entry {
	struct key key;
	uint32_t len;
	uint16_t lo;
	uint16_t hi;
	int32_t value;
	uint32_t rank;
	bool v4;
};

/* One distinct prefix; 32 bytes, so that a lookup touches one cache line. */
struct prefix {
	struct key key;
	uint32_t len;
	uint32_t parent;	/* the next shorter one around it, or NONE */
	int32_t best;		/* the answer when ports do not matter, or BY_PORT */
	uint32_t top;		/* the highest rank here and further out */
};

/* Where a prefix's parts begin; they end where the next prefix's begin. */
struct parts {
	uint32_t entry;
	uint32_t run;
};

/* From port start on (to the next run) this entry is the strictest. */
struct run {
	uint32_t start;
	uint32_t entry;
};

/* A leaf (bits 0), or a node: the address' bits at .. at + bits - 1 choose one
 * of the slots that begin at index `to`. A leaf that covers its slot has that
 * prefix (or NONE) in `to`; a single leaf has the only longer prefix below. */
struct slot {
	uint32_t to;
	int32_t best;		/* of the prefix that covers the whole slot */
	uint16_t at;
	uint8_t bits;
	uint8_t single;
};

struct sv_cidr {
	struct slot root[2];	/* IPv6, IPv4 */
	struct entry *entries;
	struct prefix *prefixes;
	struct parts *parts;
	struct run *runs;
	struct slot *slots;
	size_t n, cap, n_prefixes, n_runs, cap_runs, n_slots, cap_slots;
	bool built;
};

/* Makes room for `more` elements behind n: 0, -E2BIG or -ENOMEM. */
int sv_cidr_room(void **array, size_t n, size_t more, size_t *cap, size_t size);

#define ROOM(array, n, more, cap) \
	sv_cidr_room((void **)&(array), (n), (more), &(cap), sizeof(*(array)))

/* The n bits (1..WIDEST) that begin at bit `at`; at + n <= 128. */
static inline size_t bits_at(struct key k, unsigned at, unsigned n)
{
	uint64_t word;

	if (at >= 64)
		word = k.lo << (at - 64);
	else
		word = at ? (k.hi << at) | (k.lo >> (64 - at)) : k.hi;
	return word >> (64 - n);
}

static inline struct key mask_of(unsigned len)
{
	struct key m = {
		.hi = len >= 64 ? UINT64_MAX : ~(UINT64_MAX >> len),
		.lo = len >= 128 ? UINT64_MAX : len > 64 ? ~(UINT64_MAX >> (len - 64)) : 0,
	};

	return m;
}

static inline bool covers(struct key k, unsigned len, struct key other)
{
	struct key m = mask_of(len);

	return ((k.hi ^ other.hi) & m.hi) == 0 && ((k.lo ^ other.lo) & m.lo) == 0;
}

#endif
