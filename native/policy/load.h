/* load.h - what the files that read a blob share while they read it. */
#ifndef SV_POLICY_LOAD_H
#define SV_POLICY_LOAD_H

#include "base/mpack.h"
#include "policy/blob.h"

struct sv_load {
	struct sv_mp r;
	struct sv_policy *p;
	struct sv_str tmp;	/* the private folder, empty = none */
	struct sv_err *err;
	const uint8_t *start;
	uint8_t block;		/* whose rules are being read: as sv_rule.block */
};

/* All return 0 or a negative errno with l->err filled. */
int sv_load_damaged(const struct sv_load *l, const char *part);
int sv_load_memory(const struct sv_load *l);
/* Writes out a leading 0x01 and keeps the result; refuses NUL bytes. */
int sv_load_keep(struct sv_load *l, struct sv_str *s);
/* The same, and it must be an absolute path without ".", ".." or "//". */
int sv_load_keep_path(struct sv_load *l, struct sv_str *s);
/* Writes s with the private folder for its leading 0x01 to out; as_glob: escaped.
 * Returns the length, 0 after a failure. */
size_t sv_load_tmp(const struct sv_load *l, struct sv_str s, bool as_glob, uint8_t *out, size_t cap);
/* Frees what sv_load_keep() kept. */
void sv_load_free_kept(void *owned);
/* An array of byte strings. *out is the caller's to free, also after a failure. */
int sv_load_words(struct sv_load *l, struct sv_str **out, int *count);
/* A zeroed array that is never empty, so that NULL means failure only. */
void *sv_load_array(size_t n, size_t size);
/* Order of two byte strings. */
int sv_load_order(struct sv_str a, struct sv_str b);
bool sv_load_is_tmp(struct sv_str s);
bool sv_load_no_nul(struct sv_str s);

/* The parts that say what matches: blob_match.c. */
int sv_load_paths(struct sv_load *l);
int sv_load_names(struct sv_load *l);
int sv_load_argvs(struct sv_load *l);
int sv_load_floor(struct sv_load *l);
/* Reads "[rule or block, pattern]"-like text into buf where it must be written out;
 * blob_match.c. */
int sv_load_pattern(struct sv_load *l, struct sv_str *text, uint8_t *buf, size_t cap);
/* By name, then the larger key first. */
void sv_load_sort_names(struct sv_name *names, uint32_t n);
bool sv_load_is_program(struct sv_str s);
/* The array of an entry and the rule it begins with; NULL when that is wrong. */
struct sv_rule *sv_load_of_rule(struct sv_load *l, size_t fields);
/* What stands for the rule at the end of a pattern with so many literal bytes. */
struct sv_entry sv_load_entry(const struct sv_load *l, const struct sv_rule *r, size_t literal);
/* blob_net.c */
int sv_load_network(struct sv_load *l);
void sv_load_free_network(struct sv_net *n);
/* blob_signal.c */
int sv_load_signals(struct sv_load *l);
/* blob_blocks.c */
int sv_load_blocks(struct sv_load *l);
void sv_load_free_blocks(struct sv_policy *p);
/* blob_env.c */
int sv_load_env(struct sv_load *l);
/* blob_limits.c */
int sv_load_limits(struct sv_load *l);

#endif
