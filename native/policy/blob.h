/* blob.h - a compiled policy in memory: read once, checked whole, then only read.
 *
 * The blob is msgpack, version SV_BLOB_VERSION; its layout stands in
 * supervisor/policy/blob.py, which writes it. Everything is checked here again:
 * types, limits, indexes, patterns. After a load nothing changes, so any number of
 * threads may use a policy. No system call, no lock. */
#ifndef SV_POLICY_BLOB_H
#define SV_POLICY_BLOB_H

#include "match/cidr.h"
#include "match/trie.h"
#include "model.h"

enum {
	SV_BLOB_MAX = 64 << 20,
	SV_BLOB_RULES = 200000,
	SV_BLOB_PATHS = 1000000,
	SV_BLOB_PATTERN = 4095,
	SV_BLOB_ID = 128,
	SV_BLOB_SAY = 1024,
	SV_BLOB_SRC = 512,
	SV_BLOB_DIGEST = 32,
	SV_BLOB_FILTER = 4096,	/* instructions of 8 bytes */
	SV_BLOB_TMP = 0x01,	/* first byte of what lies in the private folder */
	SV_BLOB_HIDE = 0x100,	/* with a rule's operations: it hides names */
	SV_BLOB_ABSTRACT = 1024,	/* patterns of abstract names, which are looked at one by one */
	SV_BLOB_SIGNALS = 1024	/* signal rules: the same */
};

enum sv_policy_flags { SV_POLICY_OBSERVE = 1, SV_POLICY_TMP = 2, SV_POLICY_TRASH = 4,
		       SV_POLICY_DEBUG = 8, SV_POLICY_NET = 16, SV_POLICY_ALL = 31 };

/* What a lookup reads stands first, in one cache line. */
struct sv_rule {
	enum sv_rule_kind kind;
	enum sv_action action;
	uint32_t ops;
	int err;			/* errno of a refusal, never 0 */
	uint32_t rank;			/* place in the order of ids: decides what is left equal */
	bool has_except;
	bool has_argv;			/* matches by argv[1:] too */
	bool append;			/* ARGV: the caller's argv[1:] follow */
	bool hides;			/* what it denies is not there, for looking too */
	uint8_t block;			/* 0 = the policy itself, k = its block k - 1 */
	bool argv_read;			/* while loading: its argument entry was met */
	enum sv_dest_kind dest_kind;
	int dest_argc;
	const struct sv_str *dest_argv;	/* ARGV: program and first arguments */
	struct sv_str dest;		/* FILE, TREE: absolute path */
	const struct sv_str *argv;	/* with has_argv: the patterns */
	int argc;
	const uint8_t *digest;		/* EXEC, allow: SHA-256 that the program must have; NULL = any */
	struct sv_str id;
	struct sv_str say;		/* a sentence for whoever was refused, or empty */
	struct sv_str src;		/* "file.yaml:31" */
};

/* An exec rule by bare program name, a network rule by abstract socket name (a glob). */
struct sv_name {
	struct sv_str name;
	struct sv_entry entry;
};

struct sv_floor {
	struct sv_str path;
	uint32_t rights;	/* 1 = execute + read */
};

struct sv_words {
	const struct sv_str *v;
	int n;
};

struct sv_env {
	bool rules;		/* else programs get what their callers say */
	struct sv_words keep;	/* none: all */
	struct sv_words drop;
	struct sv_words set;	/* name, value, name, value */
};

/* What network rules speak of. */
struct sv_net {
	struct sv_cidr *connect;	/* a value is a rule's rank */
	struct sv_cidr *bind;
	struct sv_trie *paths;		/* local sockets by their files */
	struct sv_name *names;		/* and by abstract names */
	uint32_t nnames;
};

/* One of `limits:`. UINT64_MAX stands for none. */
struct sv_limit {
	uint64_t hard;
	uint64_t soft;
	bool halt;		/* what is above hard ends the run; else it is refused */
	int rule;		/* by whose id it is told */
};

struct sv_signal_rule {
	uint64_t signals;	/* bit n - 1 for signal n */
	uint32_t who;		/* mask of enum sv_who */
	uint32_t rule;
	int to;			/* steer: what is sent, 0 = nothing */
};

struct sv_policy {
	uint32_t flags;		/* enum sv_policy_flags */
	enum sv_record record;
	struct sv_str filter;	/* struct sock_filter[], maybe unaligned */
	struct sv_rule *rules;
	uint32_t nrules;
	struct sv_floor *floor;
	uint32_t nfloor;
	struct sv_name *names;	/* by name, then strictest first */
	uint32_t nnames;
	struct sv_env env;
	struct sv_net net;
	struct sv_limit limits[SV_LIMITS];
	struct sv_signal_rule *signals;
	uint32_t nsignals;
	uint32_t *by_rank;	/* rules in the order of ids */
	struct sv_trie *trie;
	bool open;		/* a block: what no rule speaks of is allowed, else */
	int fallback;		/*   denied, by this rule (-1 = none) */
	struct sv_policy *blocks;	/* their own tries and names; rules are shared with this */
	uint32_t nblocks;
	struct sv_trie *starts;	/* programs that blocks are for; an entry's rule is a block */
	struct sv_name *start_names;
	uint32_t nstart_names;
	uint8_t *blob;		/* our copy; most strings point into it */
	void *owned;		/* strings with the private folder written out */
};

/* Copies the blob. tmp ("" or NULL = none) is the private folder, an absolute
 * normalised path. NULL with err filled: EINVAL (damaged, or not ours), E2BIG
 * (a limit), ENOMEM. */
struct sv_policy *sv_policy_load(const uint8_t *blob, size_t len, const char *tmp,
				 struct sv_err *err);
void sv_policy_free(struct sv_policy *p);
/* Does the kernel hold each process to some limit? blob_limits.c */
bool sv_policy_limits_kernel(const struct sv_policy *p);

#endif
