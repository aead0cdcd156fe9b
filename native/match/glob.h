/* glob.h - one glob against one string of bytes: a path component or an argument.
 *
 * `*` any bytes, `?` one byte, `[abc]` `[a-z]` `[!a]` `[^a]` a class (a `]` that
 * comes first is a member), `\` takes the next byte as it is. The matcher knows
 * no '/': callers split paths first. No allocation, no recursion; cost is at most
 * pattern length times string length. Patterns given to any function but
 * sv_glob_check have passed it. */
#ifndef SV_MATCH_GLOB_H
#define SV_MATCH_GLOB_H

#include "model.h"

enum sv_glob_kind { SV_GLOB_BAD, SV_GLOB_LITERAL, SV_GLOB_PATTERN };

enum { SV_GLOB_KEY = 32 };

/* The literal bytes a match must begin and end with, at most SV_GLOB_KEY of each. */
struct sv_glob_ends {
	uint8_t pre[SV_GLOB_KEY];
	uint8_t suf[SV_GLOB_KEY];
	uint8_t npre;
	uint8_t nsuf;
};

/* BAD: open class, range that goes backwards, lone `\` at the end, NUL byte. */
enum sv_glob_kind sv_glob_check(struct sv_str pat);
bool sv_glob_match(struct sv_str pat, struct sv_str s);
/* The bytes of a pattern before its first wildcard, with `\` taken away; out has
 * room for pat.n bytes (or is NULL: only count). For LITERAL: all of it. */
size_t sv_glob_literal(struct sv_str pat, uint8_t *out);
void sv_glob_ends(struct sv_str pat, struct sv_glob_ends *out);
/* text with every special byte escaped; returns the length, which may be more than
 * cap (then out is cut). 2 * text.n is always enough. */
size_t sv_glob_escape(struct sv_str text, uint8_t *out, size_t cap);

#endif
