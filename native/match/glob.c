/* glob.c - a token at a time, and only the last `*` is ever taken back. */
#include "match/glob.h"

#include <string.h>

enum token { TOKEN_BAD, TOKEN_BYTE, TOKEN_ANY, TOKEN_STAR, TOKEN_CLASS };

/* One member byte of a class at *at; moves past it. */
static bool member(struct sv_str pat, size_t *at, uint8_t *out)
{
	if (pat.p[*at] == '\\' && ++*at >= pat.n)
		return false;
	*out = pat.p[(*at)++];
	return true;
}

/* A member or a range of them. */
static bool range(struct sv_str pat, size_t *at, uint8_t *lo, uint8_t *hi)
{
	if (!member(pat, at, lo))
		return false;
	*hi = *lo;
	if (*at + 1 >= pat.n || pat.p[*at] != '-' || pat.p[*at + 1] == ']')
		return true;
	++*at;
	return member(pat, at, hi) && *hi >= *lo;
}

/* The class at `at` ('['): sets *next past it and *hit if c is in it. */
static bool class_at(struct sv_str pat, size_t at, uint8_t c, size_t *next, bool *hit)
{
	bool negate = false;
	bool in = false;
	size_t first;

	at++;
	if (at < pat.n && (pat.p[at] == '!' || pat.p[at] == '^')) {
		negate = true;
		at++;
	}
	first = at;
	while (at < pat.n && (pat.p[at] != ']' || at == first)) {
		uint8_t lo, hi;

		if (!range(pat, &at, &lo, &hi))
			return false;
		in |= lo <= c && c <= hi;
	}
	if (at >= pat.n)
		return false;
	*next = at + 1;
	*hit = in != negate;
	return true;
}

/* What stands at `at`, whether it takes the byte c, and where the next one is. */
static enum token token_at(struct sv_str pat, size_t at, uint8_t c, size_t *next, bool *hit)
{
	uint8_t b = pat.p[at];

	*next = at + 1;
	*hit = true;
	if (b == '*')
		return TOKEN_STAR;
	if (b == '?')
		return TOKEN_ANY;
	if (b == '[')
		return class_at(pat, at, c, next, hit) ? TOKEN_CLASS : TOKEN_BAD;
	if (b == '\\') {
		if (at + 1 >= pat.n)
			return TOKEN_BAD;
		b = pat.p[at + 1];
		*next = at + 2;
	}
	*hit = b == c;
	return TOKEN_BYTE;
}

enum sv_glob_kind sv_glob_check(struct sv_str pat)
{
	enum sv_glob_kind kind = SV_GLOB_LITERAL;
	size_t at = 0, next;
	bool hit;

	if (pat.n && memchr(pat.p, 0, pat.n))
		return SV_GLOB_BAD;
	for (; at < pat.n; at = next) {
		enum token t = token_at(pat, at, 0, &next, &hit);

		if (t == TOKEN_BAD)
			return SV_GLOB_BAD;
		if (t != TOKEN_BYTE)
			kind = SV_GLOB_PATTERN;
	}
	return kind;
}

bool sv_glob_match(struct sv_str pat, struct sv_str s)
{
	size_t p = 0, i = 0, next = 0;
	size_t back_p = SIZE_MAX, back_i = 0;
	bool hit = false;

	while (i < s.n) {
		if (p < pat.n && pat.p[p] == '*') {
			back_p = ++p;
			back_i = i;
			if (p == pat.n)
				return true;
			continue;
		}
		if (p < pat.n && token_at(pat, p, s.p[i], &next, &hit) != TOKEN_BAD && hit) {
			p = next;
			i++;
			continue;
		}
		if (back_p == SIZE_MAX)
			return false;
		p = back_p;
		i = ++back_i;
	}
	while (p < pat.n && pat.p[p] == '*')
		p++;
	return p == pat.n;
}

size_t sv_glob_literal(struct sv_str pat, uint8_t *out)
{
	size_t at = 0, next, n = 0;
	bool hit;

	for (; at < pat.n; at = next) {
		if (token_at(pat, at, 0, &next, &hit) != TOKEN_BYTE)
			break;
		if (out)
			out[n] = pat.p[next - 1];
		n++;
	}
	return n;
}

void sv_glob_ends(struct sv_str pat, struct sv_glob_ends *out)
{
	size_t at = 0, next;
	bool hit, literal = true;

	out->npre = 0;
	out->nsuf = 0;
	for (; at < pat.n; at = next) {
		if (token_at(pat, at, 0, &next, &hit) != TOKEN_BYTE) {
			literal = false;
			out->nsuf = 0;
			continue;
		}
		if (literal && out->npre < SV_GLOB_KEY)
			out->pre[out->npre++] = pat.p[next - 1];
		if (out->nsuf == SV_GLOB_KEY)
			memmove(out->suf, out->suf + 1, --out->nsuf);
		out->suf[out->nsuf++] = pat.p[next - 1];
	}
}

size_t sv_glob_escape(struct sv_str text, uint8_t *out, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] && strchr("*?[]\\", text.p[i])) {
			if (n < cap)
				out[n] = '\\';
			n++;
		}
		if (n < cap)
			out[n] = text.p[i];
		n++;
	}
	return n;
}
