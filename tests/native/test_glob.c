/* test_glob.c - globs and argument patterns against tables and a slow matcher. */
#include "check.h"

#include "match/argv.h"
#include "match/glob.h"

static const struct {
	const char *pat;
	const char *text;
	bool match;
} cases[] = {
	{ "abc", "abc", true }, { "abc", "abd", false }, { "abc", "ab", false },
	{ "ab", "abc", false }, { "", "", true }, { "", "a", false }, { "*", "", true },
	{ "*", "anything", true }, { "a*", "a", true }, { "*a", "ba", true }, { "*a", "ab", false },
	{ "a*b*c", "aXbYbZc", true }, { "a*b*c", "aXbYbZ", false }, { "?", "", false },
	{ "?", "x", true }, { "??", "x", false }, { "*?", "x", true }, { "*.pem", "key.pem", true },
	{ "*.pem", ".pem", true }, { "*.pem", "pem", false }, { "[abc]", "b", true },
	{ "[abc]", "d", false }, { "[a-c]x", "bx", true }, { "[!a-c]", "b", false },
	{ "[^a-c]", "d", true }, { "[]]", "]", true }, { "[!]]", "]", false }, { "[!]]", "x", true },
	{ "[a-]", "-", true }, { "[-a]", "-", true }, { "[\\]]", "]", true }, { "[\\-x]", "-", true },
	{ "\\*", "*", true }, { "\\*", "x", false }, { "\\[a]", "[a]", true }, { "a\\b", "ab", true },
	{ "[*]", "*", true }, { "[*]", "x", false }, { "[?-A]", "@", true }, { "*/*", "a/b", true },
	{ "\xff*", "\xff\xfe", true }, { "[\x80-\xff]", "\xc3", true }, { "[!\x80-\xff]", "\xc3", false },
	{ "**", "x", true }, { "a**b", "ab", true }, { "*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaa", false },
};

static void test_table(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK(sv_glob_check(check_str(cases[i].pat)) != SV_GLOB_BAD);
		if (sv_glob_match(check_str(cases[i].pat), check_str(cases[i].text)) != cases[i].match) {
			fprintf(stderr, "%s on %s\n", cases[i].pat, cases[i].text);
			CHECK(false);
		}
	}
}

static void test_check(void)
{
	const char *const bad[] = { "[", "[a", "[]", "[!]", "[z-a]", "a\\", "[\\", "[a\\", "[a-\\", "x[!" };
	const struct sv_str nul = { (const uint8_t *)"a\0b", 3 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(sv_glob_check(check_str(bad[i])) == SV_GLOB_BAD);
	CHECK(sv_glob_check(nul) == SV_GLOB_BAD);
	CHECK(sv_glob_check(check_str("a\\*b")) == SV_GLOB_LITERAL);
	CHECK(sv_glob_check(check_str("a*b")) == SV_GLOB_PATTERN);
}

static void test_parts(void)
{
	struct sv_glob_ends e;
	uint8_t out[64];

	CHECK(sv_glob_literal(check_str("a\\*b*c"), out) == 3 && !memcmp(out, "a*b", 3));
	CHECK(sv_glob_literal(check_str("x[ab]"), NULL) == 1);
	sv_glob_ends(check_str("ab\\?*[x]cd\\]"), &e);
	CHECK(e.npre == 3 && !memcmp(e.pre, "ab?", 3) && e.nsuf == 3 && !memcmp(e.suf, "cd]", 3));
	sv_glob_ends(check_str("abcdefghijklmnopqrstuvwxyz0123456789*abcdefghijklmnopqrstuvwxyz0123456789"), &e);
	CHECK(e.npre == 32 && !memcmp(e.pre, "abcdefghijklmnopqrstuvwxyz012345", 32));
	CHECK(e.nsuf == 32 && !memcmp(e.suf, "efghijklmnopqrstuvwxyz0123456789", 32));
	CHECK(sv_glob_escape(check_str("a*[\\]?"), out, sizeof(out)) == 11);
	CHECK(!memcmp(out, "a\\*\\[\\\\\\]\\?", 11));
	CHECK(sv_glob_escape(check_str("**"), out, 1) == 4);
}

/* Every combination by a table of prefixes: slow, with no backtracking at all. */
static bool slow_match(const char *pat, const char *text)
{
	size_t np = strlen(pat), nt = strlen(text);
	bool row[32] = { true };

	for (size_t i = 0; i < np; i++) {
		bool next[32] = { false };

		for (size_t j = 0; j <= nt; j++) {
			if (pat[i] == '*')
				next[j] = row[j] || (j && next[j - 1]);
			else
				next[j] = j && row[j - 1] && (pat[i] == '?' || pat[i] == text[j - 1]);
		}
		memcpy(row, next, sizeof(row));
	}
	return row[nt];
}

static void random_text(char *out, const char *alphabet, uint32_t max)
{
	uint32_t n = check_random(max + 1);

	for (uint32_t i = 0; i < n; i++)
		out[i] = alphabet[check_random((uint32_t)strlen(alphabet))];
	out[n] = 0;
}

static void test_random(void)
{
	char pat[16], text[24];

	for (int i = 0; i < 300000; i++) {
		random_text(pat, "ab*?*", 8);
		random_text(text, "ab", 12);
		CHECK(sv_glob_match(check_str(pat), check_str(text)) == slow_match(pat, text));
	}
}

static void test_long(void)
{
	static uint8_t pat[4095], text[4095];
	struct sv_str p = { pat, sizeof(pat) }, t = { text, sizeof(text) };

	for (size_t i = 0; i < sizeof(pat); i++)
		pat[i] = i % 2 ? 'a' : '*';
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = 'b';
	pat[sizeof(pat) - 1] = 'c';
	CHECK(!sv_glob_match(p, t));
	pat[sizeof(pat) - 1] = 'b';
	CHECK(sv_glob_match(p, t));
}

static int words(const char *text, struct sv_str *out)
{
	int n = 0;

	for (; *text; text += *text == ' ') {
		out[n].p = (const uint8_t *)text;
		out[n].n = strcspn(text, " ");
		text += out[n++].n;
	}
	return n;
}

static bool argv_match(const char *pats, const char *args)
{
	struct sv_str p[16], a[16];
	int np = words(pats, p), na = words(args, a);

	return sv_argv_match(p, np, a, na);
}

static void test_argv(void)
{
	struct sv_str open = check_str("[a");

	CHECK(argv_match("", ""));
	CHECK(!argv_match("", "x"));
	CHECK(argv_match("**", ""));
	CHECK(argv_match("**", "a b c"));
	CHECK(argv_match("push **", "push origin main"));
	CHECK(argv_match("push **", "push"));
	CHECK(!argv_match("push **", "pull push"));
	CHECK(argv_match("** --force **", "push --force"));
	CHECK(argv_match("** -* x", "a -b -c x"));
	CHECK(!argv_match("** -* x", "a -b c x"));
	CHECK(argv_match("a ** b ** c", "a b x b c"));
	CHECK(argv_match("/etc/*", "/etc/a/b"));
	CHECK(!sv_argv_check(&open, 1));
}

int main(void)
{
	printf("seed %#llx\n", (unsigned long long)check_state);
	test_table();
	test_check();
	test_parts();
	test_random();
	test_long();
	test_argv();
	return check_end();
}
