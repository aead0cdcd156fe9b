/* gen.h - random patterns and paths over few names, so that they often meet. */
#ifndef SV_TESTS_GEN_H
#define SV_TESTS_GEN_H

#include "check.h"

enum { GEN_TEXT = 256 };

static inline void gen_name(char *out)
{
	uint32_t n = 1 + check_random(3);

	for (uint32_t i = 0; i < n; i++)
		out[i] = "abc"[check_random(3)];
	out[n] = 0;
	/* Some names longer than what a node keeps, and some with keys of 8 bytes. */
	if (!check_random(16))
		strcat(out, "-a-long-name-of-more-than-32-bytes-indeed");
	else if (!check_random(16))
		strcat(out, ".service");
}

static inline void gen_part(char *out)
{
	static const char *const globs[] = {
		"*", "a*", "*b", "?", "[ab]", "[!a]?", "\\a", "*c*", "ab*", "*bc", "a*c", "b*", "*a",
		"c*", "*c", "[a-c]*", "??", "b?", "*.service", "a*.service", "b*.service", "c*.service",
		"ab*.service", "ba*.service", "*-indeed", "a-long*",
	};
	uint32_t kind = check_random(10);

	if (kind < 2)
		strcpy(out, "**");
	else if (kind < 5)
		strcpy(out, globs[check_random(sizeof(globs) / sizeof(globs[0]))]);
	else
		gen_name(out);
}

static inline void gen_pattern(char *out)
{
	uint32_t n = check_random(6);
	char part[64];

	*out = 0;
	if (!n) {
		strcpy(out, check_random(2) ? "/" : "**");
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		gen_part(part);
		if (i || strcmp(part, "**") != 0 || check_random(2))
			strcat(out, "/");
		strcat(out, part);
	}
}

static inline void gen_path(char *out, uint32_t depth)
{
	uint32_t n = check_random(depth + 1);
	char name[64];

	strcpy(out, n ? "" : "/");
	for (uint32_t i = 0; i < n; i++) {
		gen_name(name);
		if (strlen(name) > 3 && check_random(3))
			name[1] = 0;
		strcat(out, "/");
		strcat(out, name);
	}
}

#endif
