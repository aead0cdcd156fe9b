/* test_trie.c - the trie against one pattern at a time, and its bounds. */
#include "gen.h"
#include "naive.h"

#include "match/trie.h"

#include <errno.h>

static struct sv_trie *build(const char *const *patterns, int n)
{
	struct sv_trie *t = sv_trie_new(7);
	struct sv_err err = { 0 };

	for (int i = 0; t && i < n; i++) {
		struct sv_entry e = { (uint64_t)i, (uint32_t)i, 0, i % 3 == 2 };

		if (sv_trie_add(t, check_str(patterns[i]), &e, &err) < 0) {
			fprintf(stderr, "%s: %s\n", patterns[i], err.msg);
			CHECK(false);
		}
	}
	CHECK(t && sv_trie_seal(t, &err) == 0);
	return t;
}

/* Marks the patterns that a path hits; a pattern hit twice is a failure. */
static void hits_of(const struct sv_trie *t, const char *path, bool *out, int n)
{
	struct sv_walk w;

	memset(out, 0, (size_t)n);
	CHECK(sv_trie_walk(t, check_str(path), &w));
	for (int i = 0; i < w.nhits; i++) {
		struct sv_entries e = sv_trie_entries(t, w.hits[i]);

		for (uint32_t k = 0; k < e.nmatch + e.nexcept; k++) {
			CHECK(!out[e.p[k].rule]);
			CHECK(e.p[k].except == (k >= e.nmatch));
			CHECK(!k || k == e.nmatch || k > e.nmatch || e.p[k - 1].key >= e.p[k].key);
			out[e.p[k].rule] = true;
		}
	}
}

static bool one(const char *pattern, const char *path)
{
	struct sv_trie *t = build(&pattern, 1);
	bool hit;

	hits_of(t, path, &hit, 1);
	sv_trie_free(t);
	return hit;
}

static void test_meaning(void)
{
	CHECK(one("/a/**", "/a") && one("/a/**", "/a/b/c") && !one("/a/**", "/ab"));
	CHECK(one("/a/b", "/a/b") && !one("/a/b", "/a") && !one("/a/b", "/a/b/c"));
	CHECK(one("/", "/") && !one("/", "/a") && one("/**", "/") && one("/**", "/x/y"));
	CHECK(one("**/.env", "/.env") && one("**/.env", "/a/b/.env") && !one("**/.env", "/.env/x"));
	CHECK(one("**/.git/**", "/w/.git") && one("**/.git/**", "/w/.git/x/y"));
	CHECK(one("/a/**/b", "/a/b") && one("/a/**/b", "/a/x/b/b") && !one("/a/**/b", "/b"));
	CHECK(one("/a/**/**/b/**", "/a/b") && one("/a/**/b/**/c", "/a/b/x/b/c"));
	CHECK(!one("/*", "/") && one("/*", "/.hidden") && !one("/*", "/a/b"));
	CHECK(one("/\\*", "/*") && !one("/\\*", "/x") && one("/\\a", "/a"));
	CHECK(one("/\xff\xfe*", "/\xff\xfe\x80"));
}

static void test_bad_patterns(void)
{
	const char *const bad[] = { "", "a", "a/b", "*", "*/a", "**a", "//", "/a//b", "/a/", "/.", "/..",
				    "/a/../b", "/\\./x", "/\\.\\.", "/[", "/a\\", "\x01/a", "**/", "/[a/b]" };
	struct sv_pattern shape;
	struct sv_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&err, 0, sizeof(err));
		CHECK(sv_pattern_scan(check_str(bad[i]), &shape, &err) == -EINVAL);
		CHECK(err.code == EINVAL && err.msg[0]);
	}
	CHECK(!sv_pattern_scan(check_str("/a/b\\*/**"), &shape, NULL));
	CHECK(shape.literal == 5 && shape.folder == 5);
	CHECK(!sv_pattern_scan(check_str("/a/b*/**"), &shape, NULL));
	CHECK(shape.literal == 2 && shape.folder == 0);
	CHECK(!sv_pattern_scan(check_str("**/a/**"), &shape, NULL));
	CHECK(shape.literal == 0 && shape.folder == 0);
	CHECK(!sv_pattern_scan(check_str("/a/b"), &shape, NULL));
	CHECK(shape.literal == 4 && shape.folder == 0);
}

static void test_bad_paths(void)
{
	const char *const pattern = "/**";
	struct sv_trie *t = build(&pattern, 1);
	const char *const bad[] = { "", "a", "a/b", "//", "/a/", "/a//b", "/.", "/a/./b", "/a/..", "/../a" };
	static char text[5000];
	struct sv_walk w;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!sv_trie_walk(t, check_str(bad[i]), &w));
	memset(text, 'a', 4096);
	text[0] = '/';
	CHECK(!sv_trie_walk(t, check_str(text), &w));
	text[4095] = 0;
	CHECK(sv_trie_walk(t, check_str(text), &w) && w.nhits == 1);
	CHECK(sv_trie_walk(t, check_str("/..."), &w) && sv_trie_walk(t, check_str("/.a/..b"), &w));
	sv_trie_free(t);
}

/* A node whose globs all lack a literal end, and one with keys of every length. */
static void test_glob_index(void)
{
	const char *const keyless[] = { "/*x*", "/?[ab]", "/[a-c]?", "/???", "/*", "/*y*" };
	static char text[80][80];
	const char *keyed[80];
	struct sv_trie *t = build(keyless, 6);
	bool hit[80];

	hits_of(t, "/aya", hit, 6);
	CHECK(!hit[0] && !hit[1] && !hit[2] && hit[3] && hit[4] && hit[5]);
	sv_trie_free(t);
	for (int i = 0; i < 80; i++) {
		snprintf(text[i], sizeof(text[i]), i % 2 ? "/%.*s*" : "/*%.*s", i / 2 + 1,
			 "0123456789012345678901234567890123456789");
		keyed[i] = text[i];
	}
	t = build(keyed, 80);
	hits_of(t, "/0123456789012345678901234567890123456789", hit, 80);
	for (int i = 0; i < 80; i++)
		CHECK(hit[i] == naive_match(keyed[i], "/0123456789012345678901234567890123456789"));
	sv_trie_free(t);
}

/* More places at once than a walk may be in: refused when sealed. */
static void test_bound(void)
{
	struct sv_trie *t = sv_trie_new(1);
	struct sv_entry e = { 0, 0, 0, 0 };
	struct sv_err err = { 0 };
	char text[64];

	for (int i = 0; i < 2000; i++) {
		snprintf(text, sizeof(text), "**/n%d/**/x", i);
		CHECK(!sv_trie_add(t, check_str(text), &e, &err));
	}
	CHECK(sv_trie_seal(t, &err) == -E2BIG && err.code == E2BIG);
	sv_trie_free(t);
	t = sv_trie_new(1);
	for (int i = 0; i < 20000; i++) {
		snprintf(text, sizeof(text), "/r%d/**/x/*/y", i);
		CHECK(!sv_trie_add(t, check_str(text), &e, &err));
		snprintf(text, sizeof(text), "**/n%d/**", i);
		CHECK(!sv_trie_add(t, check_str(text), &e, &err));
		snprintf(text, sizeof(text), "**/*.e%d", i);
		CHECK(!sv_trie_add(t, check_str(text), &e, &err));
	}
	CHECK(sv_trie_seal(t, &err) == 0);
	sv_trie_free(t);
}

/* The longest path with a `**` hit in every component, and the same one again and again. */
static void test_deep(void)
{
	const char *const patterns[] = { "**/a/**", "**/a/**/b", "**/a/*/a/**/b/**", "**/*a*/?/**" };
	struct sv_trie *t = build(patterns, 4);
	static char text[4096];
	struct sv_walk w;

	for (int i = 0; i < 4094; i += 2)
		memcpy(text + i, i % 8 == 6 ? "/b" : "/a", 3);
	CHECK(sv_trie_walk(t, check_str(text), &w));
	CHECK(w.nhits >= 3 && w.nhits <= 8 && w.nstars < 8 && w.nset < 32);
	sv_trie_free(t);
}

static long test_random(int policies, int paths)
{
	static char text[48][GEN_TEXT];
	const char *list[48];
	char path[GEN_TEXT * 4];
	bool hit[48];
	long pairs = 0;

	for (int p = 0; p < policies; p++) {
		int n = 1 + (int)check_random(48);
		struct sv_trie *t;

		for (int i = 0; i < n; i++) {
			gen_pattern(text[i]);
			list[i] = text[i];
		}
		t = build(list, n);
		for (int k = 0; k < paths; k++, pairs++) {
			gen_path(path, 8);
			hits_of(t, path, hit, n);
			for (int i = 0; i < n; i++)
				if (hit[i] != naive_match(text[i], path)) {
					fprintf(stderr, "%s on %s: %d\n", text[i], path, hit[i]);
					CHECK(false);
				}
		}
		sv_trie_free(t);
	}
	return pairs;
}

int main(void)
{
	printf("seed %#llx\n", (unsigned long long)check_state);
	test_meaning();
	test_bad_patterns();
	test_bad_paths();
	test_glob_index();
	test_bound();
	test_deep();
	printf("%ld random (policy, path) pairs\n", test_random(4000, 60));
	return check_end();
}
