/* naive.h - path patterns matched one at a time, slowly and obviously: the model
 * that the trie is compared with. A table of (components of the pattern) by
 * (components of the path); no trie, no index, no backtracking. */
#ifndef SV_TESTS_NAIVE_H
#define SV_TESTS_NAIVE_H

#include "match/glob.h"

#include <string.h>

enum { NAIVE_PARTS = 64 };

static inline int naive_split(const char *path, struct sv_str *out)
{
	int n = 0;

	path += *path == '/';
	while (*path && n < NAIVE_PARTS) {
		out[n].p = (const uint8_t *)path;
		out[n].n = strcspn(path, "/");
		path += out[n++].n;
		path += *path == '/';
	}
	return n;
}

static inline bool naive_match(const char *pattern, const char *path)
{
	struct sv_str pat[NAIVE_PARTS], name[NAIVE_PARTS];
	int np = naive_split(pattern, pat), nn = naive_split(path, name);
	bool row[NAIVE_PARTS + 1] = { true };

	for (int i = 0; i < np; i++) {
		bool next[NAIVE_PARTS + 1] = { false };
		bool deep = pat[i].n == 2 && !memcmp(pat[i].p, "**", 2);

		for (int j = 0; j <= nn; j++) {
			if (deep)
				next[j] = row[j] || (j && next[j - 1]);
			else
				next[j] = j && row[j - 1] && sv_glob_match(pat[i], name[j - 1]);
		}
		memcpy(row, next, sizeof(row));
	}
	return row[nn];
}

#endif
