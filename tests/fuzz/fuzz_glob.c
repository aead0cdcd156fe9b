/* fuzz_glob.c - the first line is a pattern, the rest a text: as glob, as argument
 * pattern and as path pattern. Build as fuzz_blob.c. */
#include "match/argv.h"
#include "match/glob.h"
#include "match/trie.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_glob(struct sv_str pat, struct sv_str text)
{
	uint8_t plain[4096], escaped[8192];
	struct sv_str again = { escaped, 0 };
	struct sv_glob_ends ends;

	again.n = sv_glob_escape(text, escaped, sizeof(escaped));
	if (!memchr(text.p, 0, text.n) &&
	    (sv_glob_check(again) != SV_GLOB_LITERAL || !sv_glob_match(again, text)))
		abort();
	if (sv_glob_check(pat) == SV_GLOB_BAD)
		return;
	sv_glob_literal(pat, plain);
	sv_glob_ends(pat, &ends);
	if (sv_glob_match(pat, text) &&
	    (text.n < ends.nsuf || memcmp(text.p + text.n - ends.nsuf, ends.suf, ends.nsuf) != 0 ||
	     memcmp(text.p, ends.pre, ends.npre) != 0))
		abort();
	if (sv_argv_match(&pat, 1, &text, 1) != sv_glob_match(pat, text))
		abort();
}

static void as_path(struct sv_str pat, struct sv_str text)
{
	struct sv_trie *t = sv_trie_new(pat.n);
	struct sv_entry e = { 1, 0, 0, 0 };
	struct sv_err err;
	struct sv_walk w;

	if (!t)
		return;
	if (!sv_trie_add(t, pat, &e, &err) && !sv_trie_seal(t, &err) && sv_trie_walk(t, text, &w) &&
	    w.nhits > 1)
		abort();
	sv_trie_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sv_str pat, text;
	const uint8_t *line = size ? memchr(data, '\n', size) : NULL;

	if (!line || size > 4096)
		return 0;
	pat.p = data;
	pat.n = (size_t)(line - data);
	text.p = line + 1;
	text.n = size - pat.n - 1;
	as_glob(pat, text);
	as_path(pat, text);
	return 0;
}
