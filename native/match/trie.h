/* trie.h - all path patterns of a policy in one trie of components.
 *
 * Filled with sv_trie_add(), frozen once with sv_trie_seal() and read-only from
 * then on: any number of threads may walk it, with no lock and no system call.
 *
 * A walk keeps a set of nodes and takes one component at a time: a keyed hash
 * table finds the child by name, component globs are found by the bytes they must
 * begin or end with, and `**` is a node that stays once it was reached. So a walk
 * costs by the path and by how many places the patterns can be in at once, which
 * sv_trie_seal() bounds (SV_WALK_SET), and not by the number of patterns.
 *
 * Memory: 64 bytes a node (a component shared by patterns is one node), 16 bytes
 * an entry, 16 to 32 bytes of hash table an edge. */
#ifndef SV_MATCH_TRIE_H
#define SV_MATCH_TRIE_H

#include "model.h"

enum {
	SV_WALK_SET = 1024,		/* nodes a walk may be in at once */
	SV_WALK_HITS = 2048,		/* nodes with entries that one path may reach */
	SV_TRIE_NODES = 4000000,
	SV_PATTERN_MAX = 3 * SV_PATH_MAX,	/* with the private folder written out and escaped */
	SV_TRIE_INLINE = 32		/* bytes of a component kept in its node */
};

struct sv_trie;

/* What stands at the end of a pattern. Of entries whose rules all match, the one
 * with the largest key wins. */
struct sv_entry {
	uint64_t key;
	uint32_t rule;
	uint16_t prefix;	/* bytes of the literal folder before a last `**`, else 0 */
	uint16_t except;	/* 1 = the pattern is an exception of the rule */
};

/* The shape of a path pattern. */
struct sv_pattern {
	size_t literal;		/* bytes of its leading components without wildcards, unescaped */
	size_t folder;		/* the same for what stands before a last `**`, 0 if that has wildcards */
};

/* -EINVAL with a sentence when the text is no path pattern. `**` in front counts
 * as behind a '/'. */
int sv_pattern_scan(struct sv_str text, struct sv_pattern *out, struct sv_err *err);

/* The entries of one node: matches by key, largest first, then exceptions by rule. */
struct sv_entries {
	const struct sv_entry *p;
	uint32_t nmatch;
	uint32_t nexcept;
};

/* Scratch of one walk, 20 KiB, for the caller's stack; needs no initialisation. */
struct sv_walk {
	uint32_t set[2][SV_WALK_SET];	/* nodes reached by the last component */
	uint32_t stars[SV_WALK_SET];	/* `**` nodes, which stay, with something below them */
	uint32_t hits[SV_WALK_HITS];	/* nodes whose patterns match the path */
	int now;			/* which of the two sets */
	int nset;
	int nstars;
	int nhits;
	bool over;			/* a bound was passed: nothing may be concluded */
};

struct sv_trie *sv_trie_new(uint64_t seed);
/* Checks the pattern. -EINVAL, -E2BIG or -ENOMEM with a sentence. */
int sv_trie_add(struct sv_trie *t, struct sv_str pattern, const struct sv_entry *entry,
		struct sv_err *err);
/* -E2BIG when a walk could be in more than SV_WALK_SET places at once. */
int sv_trie_seal(struct sv_trie *t, struct sv_err *err);
void sv_trie_free(struct sv_trie *t);
size_t sv_trie_bytes(const struct sv_trie *t);

/* Whether it may be a component of a normalised path: not empty, "." or "..". */
bool sv_is_name(struct sv_str name);
/* Walk an absolute, normalised path. False when it is none, or when a bound was
 * passed: the caller then refuses. */
bool sv_trie_walk(const struct sv_trie *t, struct sv_str path, struct sv_walk *w);
struct sv_entries sv_trie_entries(const struct sv_trie *t, uint32_t node);
/* True for a hit that also stands for every path below. */
bool sv_trie_stays(const struct sv_trie *t, uint32_t node);

#endif
