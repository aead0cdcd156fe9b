/* test_blob.c - what a blob must be, and that a damaged one is refused in peace. */
#include "check.h"
#include "make_blob.h"

#include "match/blocks.h"
#include "match/signal.h"

#include <errno.h>

static struct sv_err err;

/* Loads what m holds; empties m. */
static struct sv_policy *load(struct make *m, const char *tmp)
{
	size_t len;
	uint8_t *blob = make_done(m, &len);
	struct sv_policy *p;

	memset(&err, 0, sizeof(err));
	p = sv_policy_load(blob, len, tmp, &err);
	free(blob);
	CHECK(p || (err.code && err.msg[0]));
	return p;
}

/* A blob with every kind of part. */
static uint8_t *full(size_t *len)
{
	struct make m = { .flags = SV_POLICY_TMP };
	int r;

	r = make_rule(&m, "work", SV_RULE_FILES, SV_ALLOW, 0x7f, 0, SV_DEST_NONE, NULL);
	make_path(&m, r, 0, "/work/**");
	make_path(&m, r, 1, "/work/.git/**");
	make_path(&m, r, 0, "\x01/**");
	r = make_rule(&m, "env", SV_RULE_FILES, SV_DENY, 0xff, ENOENT, SV_DEST_NONE, NULL);
	make_path(&m, r, 0, "**/.env");
	make_path(&m, r, 0, "/keys/*.[kp]em");
	r = make_rule(&m, "home", SV_RULE_FILES, SV_STEER, 6, 0, SV_DEST_TREE, "\x01/home");
	make_path(&m, r, 0, "/home/**");
	r = make_rule(&m, "hosts", SV_RULE_FILES, SV_STEER, 1, 0, SV_DEST_FILE, "/work/hosts");
	make_path(&m, r, 0, "/etc/hosts");
	r = make_rule(&m, "curl", SV_RULE_EXEC, SV_STEER, SV_OP_EXEC, 0, SV_DEST_ARGV, "/work/fetch");
	make_name(&m, r, "curl");
	make_argv(&m, r, 1, NULL);
	r = make_rule(&m, "push", SV_RULE_EXEC, SV_DENY, SV_OP_EXEC, EPERM, SV_DEST_NONE, NULL);
	make_name(&m, r, "git");
	make_path(&m, r, 0, "/usr/bin/git");
	make_argv(&m, r, 0, "push **");
	r = make_pin(&m, "pin", "0123456789abcdef0123456789abcdef");
	make_name(&m, r, "py");
	make_argv(&m, r, 0, NULL);
	make_block(&m);
	make_fallback(&m, "b");
	make_path(&m, make_rule(&m, "b.in", SV_RULE_FILES, SV_ALLOW, 0x7f, 0, SV_DEST_NONE, NULL), 0,
		  "/work/in/**");
	r = make_rule(&m, "b.no", SV_RULE_EXEC, SV_DENY, SV_OP_EXEC, EPERM, SV_DEST_NONE, NULL);
	make_name(&m, r, "sh");
	make_argv(&m, r, 0, "-c **");
	make_start(&m, "git");
	make_start(&m, "/usr/lib/git/**");
	make_start(&m, "\x01/tool");
	make_block(&m);
	make_path(&m, make_rule(&m, "c.no", SV_RULE_FILES, SV_DENY, 1, 0, SV_DEST_NONE, NULL), 0, "/keys/**");
	make_start(&m, "npm");
	m.now = 0;
	make_signal(&m, "soft", SV_STEER, 1 << 8, SV_WHO_OTHERS, 15);
	make_floor(&m, "/usr");
	make_floor(&m, "\x01");
	make_env(&m, 0, "LC_*");
	make_env(&m, 1, "*_TOKEN");
	make_env(&m, 2, "T");
	make_env(&m, 2, "\x01/t");
	return make_done(&m, len);
}

static bool is(struct sv_str s, const char *text)
{
	return s.n == strlen(text) && !memcmp(s.p, text, s.n);
}

static void test_full(void)
{
	size_t len;
	uint8_t *blob = full(&len);
	struct sv_policy *p = sv_policy_load(blob, len, "/tmp/s[1]", &err);
	struct sv_match m;

	free(blob);
	CHECK(p);
	if (!p)
		return;
	CHECK(p->flags == SV_POLICY_TMP && p->record == SV_RECORD_CHANGES && p->filter.n == 16);
	CHECK(p->nsignals == 1 && p->nrules == 12 && p->nnames == 3 && p->nfloor == 2);
	CHECK(is(p->rules[0].id, "work") && is(p->rules[0].src, "test.yaml:1"));
	CHECK(p->rules[0].has_except && p->rules[0].err == EACCES && p->rules[1].err == ENOENT);
	CHECK(p->rules[2].dest_kind == SV_DEST_TREE && is(p->rules[2].dest, "/tmp/s[1]/home"));
	CHECK(is(p->rules[3].dest, "/work/hosts"));
	CHECK(p->rules[4].append && !p->rules[4].has_argv && p->rules[4].dest_argc == 1);
	CHECK(is(p->rules[4].dest_argv[0], "/work/fetch"));
	CHECK(p->rules[5].has_argv && p->rules[5].argc == 2 && is(p->rules[5].argv[1], "**"));
	CHECK(p->nblocks == 2 && p->blocks[0].fallback == 7 && !p->blocks[0].open);
	CHECK(p->blocks[1].open && p->nstart_names == 2 && p->fallback == -1);
	CHECK(sv_blocks_start(p, check_str("/usr/bin/git"), check_str("x")) == 1);
	CHECK(sv_blocks_start(p, check_str("/usr/bin/x"), check_str("a/npm")) == 2);
	CHECK(sv_blocks_start(p, check_str("/usr/lib/git/a"), check_str("npm")) == 3);
	CHECK(sv_blocks_start(p, check_str("/tmp/s[1]/tool"), check_str("tool")) == 1);
	CHECK(sv_blocks_start(p, check_str("/bin/sh"), check_str("sh")) == 0);
	CHECK(p->env.rules && p->env.keep.n == 1 && p->env.drop.n == 1 && p->env.set.n == 2);
	CHECK(is(p->env.set.v[0], "T") && is(p->env.set.v[1], "/tmp/s[1]/t"));
	CHECK(!p->rules[5].digest && p->rules[6].digest);
	CHECK(!memcmp(p->rules[6].digest, "0123456789abcdef0123456789abcdef", 32));
	CHECK(is(p->floor[0].path, "/usr") && is(p->floor[1].path, "/tmp/s[1]"));
	sv_match_path(p, check_str("/tmp/s[1]/x"), SV_OP_READ, &m);
	CHECK(m.action == SV_ALLOW && m.rule == 0);
	sv_match_path(p, check_str("/tmp/s1/x"), SV_OP_READ, &m);
	CHECK(m.action == SV_DENY && m.rule == -1);
	sv_policy_free(p);
}

static void test_tmp(void)
{
	static char long_tmp[4095];
	size_t len;
	uint8_t *blob = full(&len);
	struct sv_policy *p;

	CHECK(!sv_policy_load(blob, len, "", &err) && strstr(err.msg, "TMPDIR"));
	CHECK(!sv_policy_load(blob, len, NULL, &err));
	CHECK(!sv_policy_load(blob, len, "tmp", &err));
	CHECK(!sv_policy_load(blob, len, "/tmp/../x", &err));
	memset(long_tmp, '*', sizeof(long_tmp) - 1);
	long_tmp[0] = '/';
	CHECK(!sv_policy_load(blob, len, long_tmp, &err));
	long_tmp[4080] = 0;
	p = sv_policy_load(blob, len, long_tmp, &err);
	CHECK(p);
	sv_policy_free(p);
	free(blob);
}

/* One rule of files and one of exec, and one path, name or argument entry to refuse. */
static struct make two(void)
{
	struct make m = { 0 };

	make_rule(&m, "a", SV_RULE_FILES, SV_ALLOW, 1, 0, SV_DEST_NONE, NULL);
	make_rule(&m, "b", SV_RULE_EXEC, SV_ALLOW, SV_OP_EXEC, 0, SV_DEST_NONE, NULL);
	return m;
}

static void refuse_rule(int kind, int action, uint32_t ops, int code, int dest_kind, const char *to)
{
	struct make m = { 0 };

	make_rule(&m, "x", kind, action, ops, code, dest_kind, to);
	CHECK(!load(&m, "/t") && err.code == EINVAL);
}

static void test_refused_rules(void)
{
	struct make m = { 0 };

	refuse_rule(2, SV_ALLOW, 1, 0, SV_DEST_NONE, NULL);
	refuse_rule(-1, SV_ALLOW, 1, 0, SV_DEST_NONE, NULL);
	refuse_rule(SV_RULE_FILES, 4, 1, 0, SV_DEST_NONE, NULL);
	refuse_rule(SV_RULE_FILES, SV_ALLOW, 0, 0, SV_DEST_NONE, NULL);
	refuse_rule(SV_RULE_FILES, SV_ALLOW, 256, 0, SV_DEST_NONE, NULL);
	refuse_rule(SV_RULE_FILES, SV_ALLOW, 1, 4096, SV_DEST_NONE, NULL);
	refuse_rule(SV_RULE_EXEC, SV_ALLOW, 1, 0, SV_DEST_NONE, NULL);
	refuse_rule(SV_RULE_FILES, SV_STEER, 1, 0, SV_DEST_NONE, NULL);
	refuse_rule(SV_RULE_FILES, SV_ALLOW, 1, 0, SV_DEST_FILE, "/x");
	refuse_rule(SV_RULE_FILES, SV_STEER, 1, 0, SV_DEST_TRASH, NULL);
	refuse_rule(SV_RULE_FILES, SV_STEER, SV_OP_DELETE, 0, SV_DEST_TRASH, "/trash");
	refuse_rule(SV_RULE_FILES, SV_STEER, SV_OP_DELETE | 1, 0, SV_DEST_TRASH, NULL);
	refuse_rule(SV_RULE_FILES, SV_STEER, SV_OP_DELETE | 1, 0, SV_DEST_TREE, "/a");
	refuse_rule(SV_RULE_FILES, SV_STEER, SV_OP_DELETE, 0, SV_DEST_FILE, "/a");
	refuse_rule(SV_RULE_FILES, SV_DENY, SV_OP_DELETE, 0, SV_DEST_TRASH, NULL);
	refuse_rule(SV_RULE_FILES, SV_STEER, 1, 0, SV_DEST_FILE, "x");
	refuse_rule(SV_RULE_FILES, SV_STEER, 1, 0, SV_DEST_FILE, "\x01x");
	refuse_rule(SV_RULE_FILES, SV_STEER, 1, 0, SV_DEST_FILE, "\x01/../x");
	refuse_rule(SV_RULE_FILES, SV_STEER, 1, 0, SV_DEST_TREE, "/a/./b");
	refuse_rule(SV_RULE_FILES, SV_STEER, 1, 0, SV_DEST_TREE, "/a/");
	refuse_rule(SV_RULE_FILES, SV_STEER, 1, 0, SV_DEST_TREE, "/a//b");
	refuse_rule(SV_RULE_FILES, SV_STEER, 1, 0, SV_DEST_ARGV, "/x");
	refuse_rule(SV_RULE_EXEC, SV_STEER, SV_OP_EXEC, 0, SV_DEST_FILE, "/x");
	refuse_rule(SV_RULE_EXEC, SV_STEER, SV_OP_EXEC, 0, SV_DEST_ARGV, "");
	refuse_rule(SV_RULE_FILES, SV_DENY, SV_BLOB_HIDE | 0x7f, ENOENT, SV_DEST_NONE, NULL);
	refuse_rule(SV_RULE_FILES, SV_DENY, SV_BLOB_HIDE | 0xff, EACCES, SV_DEST_NONE, NULL);
	refuse_rule(SV_RULE_FILES, SV_ALLOW, SV_BLOB_HIDE | 0xff, ENOENT, SV_DEST_NONE, NULL);
	refuse_rule(SV_RULE_EXEC, SV_DENY, SV_BLOB_HIDE | SV_OP_EXEC, ENOENT, SV_DEST_NONE, NULL);
	make_rule(&m, "", SV_RULE_FILES, SV_ALLOW, 1, 0, SV_DEST_NONE, NULL);
	CHECK(!load(&m, ""));
}

static void refuse_pin(int kind, int action, const char *digest)
{
	struct make m = { 0 };
	uint32_t ops = kind == SV_RULE_EXEC ? SV_OP_EXEC : 1;

	make_pinned(&m, "x", kind, action, ops, 0, SV_DEST_NONE, NULL, digest);
	CHECK(!load(&m, "/t") && err.code == EINVAL);
}

static void test_refused_digests(void)
{
	static const char good[] = "0123456789abcdef0123456789abcdef";
	struct make m = { 0 };
	int r;

	refuse_pin(SV_RULE_EXEC, SV_DENY, good);
	refuse_pin(SV_RULE_FILES, SV_ALLOW, good);
	refuse_pin(SV_RULE_EXEC, SV_ALLOW, good + 1);
	refuse_pin(SV_RULE_EXEC, SV_ALLOW, "0123456789abcdef0123456789abcdef0");
	refuse_pin(SV_RULE_EXEC, SV_ALLOW, "");
	r = make_pin(&m, "x", good);
	make_argv(&m, r, 0, "push");
	CHECK(!load(&m, "/t") && err.code == EINVAL);
}

static void test_refused_matches(void)
{
	struct make m = two();

	make_path(&m, 2, 0, "/a");
	CHECK(!load(&m, "") && err.code == EINVAL);
	m = two();
	make_path(&m, 0, 2, "/a");
	CHECK(!load(&m, ""));
	m = two();
	make_path(&m, 0, 0, "a");
	CHECK(!load(&m, "") && strstr(err.msg, "starts with"));
	m = two();
	make_path(&m, 0, 0, "\x01x");
	CHECK(!load(&m, "/t"));
	m = two();
	make_name(&m, 0, "git");
	CHECK(!load(&m, ""));
	m = two();
	make_name(&m, 1, "bin/git");
	CHECK(!load(&m, ""));
	m = two();
	make_name(&m, 1, "");
	CHECK(!load(&m, ""));
	m = two();
	make_argv(&m, 0, 0, NULL);
	CHECK(!load(&m, ""));
	m = two();
	make_argv(&m, 1, 0, NULL);
	make_argv(&m, 1, 0, NULL);
	CHECK(!load(&m, ""));
	m = two();
	make_argv(&m, 1, 0, "[a");
	CHECK(!load(&m, ""));
	m = two();
	make_floor(&m, "usr");
	CHECK(!load(&m, ""));
}

static void refuse_env(int kind, const char *one, const char *value)
{
	struct make m = two();

	make_env(&m, kind, one);
	if (value)
		make_env(&m, kind, value);
	CHECK(!load(&m, "/t") && err.code == EINVAL);
}

static void test_refused_env(void)
{
	refuse_env(0, "", NULL);
	refuse_env(0, "A=", NULL);
	refuse_env(1, "A=B", NULL);
	refuse_env(2, "A", NULL);
	refuse_env(2, "", "x");
	refuse_env(2, "A=B", "x");
	refuse_env(2, "A", "\x01x");
}

static void test_refused_blocks(void)
{
	struct make m = two();

	make_block(&m);	/* a rule of the policy in a block */
	make_path(&m, 0, 0, "/a");
	CHECK(!load(&m, ""));
	m = two();	/* and the other way round */
	make_block(&m);
	make_rule(&m, "c", SV_RULE_FILES, SV_ALLOW, 1, 0, SV_DEST_NONE, NULL);
	m.now = 0;
	make_path(&m, 2, 0, "/a");
	CHECK(!load(&m, ""));
	m = two();	/* a rule of no block */
	m.now = 1;
	make_rule(&m, "c", SV_RULE_FILES, SV_ALLOW, 1, 0, SV_DEST_NONE, NULL);
	m.now = 0;
	CHECK(!load(&m, ""));
	m = two();	/* defaults that are no rule of the block, or allow */
	make_block(&m);
	m.block[0].fallback = 1;
	CHECK(!load(&m, ""));
	m = two();
	make_block(&m);
	m.block[0].fallback = 1 + make_rule(&m, "c", SV_RULE_FILES, SV_ALLOW, 1, 0, SV_DEST_NONE, NULL);
	CHECK(!load(&m, ""));
	m = two();
	make_block(&m);
	m.block[0].fallback = 99;
	CHECK(!load(&m, ""));
	m = two();	/* steers and digests */
	make_block(&m);
	make_rule(&m, "c", SV_RULE_FILES, SV_STEER, 1, 0, SV_DEST_FILE, "/x");
	CHECK(!load(&m, ""));
	m = two();
	make_block(&m);
	make_pin(&m, "c", "0123456789abcdef0123456789abcdef");
	CHECK(!load(&m, ""));
	m = two();	/* programs */
	make_block(&m);
	make_start(&m, "");
	CHECK(!load(&m, ""));
	m = two();
	make_block(&m);
	make_start(&m, "bin/git");
	CHECK(!load(&m, ""));
}

static struct sv_policy *limited(int kind, uint64_t hard, uint64_t soft, int halt, int rule, int again)
{
	struct make m = two();

	make_limit(&m, kind, hard, soft, halt, rule);
	if (again)
		make_limit(&m, kind, hard, soft, halt, rule);
	return load(&m, "");
}

static void test_run_limits(void)
{
	struct sv_policy *p = limited(SV_LIMIT_EXECS, 0, 1ULL << 62, 1, 1, 0);

	CHECK(p && p->limits[SV_LIMIT_EXECS].hard == 0 && p->limits[SV_LIMIT_EXECS].halt &&
	      p->limits[SV_LIMIT_EXECS].soft == 1ULL << 62 && p->limits[SV_LIMIT_EXECS].rule == 1);
	CHECK(p->limits[SV_LIMIT_ACTIONS].hard == UINT64_MAX && p->limits[SV_LIMIT_ACTIONS].rule < 0);
	CHECK(!sv_policy_limits_kernel(p));
	sv_policy_free(p);
	p = limited(SV_LIMIT_FILE_SIZE, 7, UINT64_MAX, 0, 0, 0);
	CHECK(p && sv_policy_limits_kernel(p));
	sv_policy_free(p);
	CHECK(!limited(SV_LIMITS, 0, 0, 0, 0, 0));	/* of no kind */
	CHECK(!limited(0, (1ULL << 62) + 1, 0, 0, 0, 0));
	CHECK(!limited(0, 0, 1ULL << 63, 0, 0, 0));
	CHECK(!limited(0, 0, 0, 2, 0, 0));
	CHECK(!limited(0, 0, 0, 0, 99, 0));	/* told by no rule */
	CHECK(!limited(0, 0, 0, 0, 0, 1));	/* twice */
}

static void test_limits(void)
{
	static char text[5000];
	struct make m = { 0 };
	struct sv_policy *p;

	memset(text, 'i', sizeof(text) - 1);
	text[129] = 0;
	make_rule(&m, text, SV_RULE_FILES, SV_ALLOW, 1, 0, SV_DEST_NONE, NULL);
	CHECK(!load(&m, ""));
	text[128] = 0;
	make_rule(&m, text, SV_RULE_FILES, SV_ALLOW, 1, 0, SV_DEST_NONE, NULL);
	p = load(&m, "");
	CHECK(p);
	sv_policy_free(p);
	memset(text, 'i', sizeof(text) - 1);
	text[0] = '/';
	text[4096] = 0;
	m = two();
	make_path(&m, 0, 0, text);
	CHECK(!load(&m, ""));
	text[4095] = 0;
	m = two();
	make_path(&m, 0, 0, text);
	p = load(&m, "");
	CHECK(p);
	sv_policy_free(p);
}

static void probe(const struct sv_policy *p)
{
	struct sv_match m;

	sv_match_path_in(p, 3, check_str("/work/in/x.pem"), 0xff, &m);
	CHECK(m.rule < (int)p->nrules && m.err);
	sv_match_exec_in(p, 3, check_str("/bin/sh"), check_str("npm"), NULL, 0, false, &m);
	sv_match_may_move(p, 3, check_str("/work/in/a"), check_str("/work/b"), true);
	sv_blocks_start(p, check_str("/usr/lib/git/a"), check_str("git"));

	sv_match_signal(p, 9, SV_WHO_TREE, &m);
	CHECK(m.rule < (int)p->nrules && m.err);
	sv_match_path(p, check_str("/work/.git/x.pem"), 0xff, &m);
	sv_match_exec(p, check_str("/usr/bin/git"), check_str("curl"), NULL, 0, false, &m);
	CHECK(m.matched >= 0 && m.rule < (int)p->nrules && m.err);
}

/* Every cut is refused; the bytes lie in a buffer of just that size. */
static void test_truncated(void)
{
	size_t len;
	uint8_t *blob = full(&len);
	uint8_t *more = malloc(len + 1);

	for (size_t n = 0; n < len; n++) {
		uint8_t *cut = malloc(n ? n : 1);

		memcpy(cut, blob, n);
		CHECK(!sv_policy_load(cut, n, "/t", &err));
		free(cut);
	}
	memcpy(more, blob, len);
	more[len] = 0xc0;
	CHECK(!sv_policy_load(more, len + 1, "/t", &err) && strstr(err.msg, "after the end"));
	free(more);
	free(blob);
}

static void test_flipped(void)
{
	size_t len;
	uint8_t *blob = full(&len);
	int loaded = 0;

	for (size_t i = 0; i < len * 8; i++) {
		struct sv_policy *p;

		blob[i / 8] ^= (uint8_t)(1 << i % 8);
		p = sv_policy_load(blob, len, "/t", &err);
		blob[i / 8] ^= (uint8_t)(1 << i % 8);
		if (!p)
			continue;
		loaded++;
		probe(p);
		sv_policy_free(p);
	}
	for (int i = 0; i < 20000; i++) {
		uint8_t *bad = malloc(len);
		struct sv_policy *p;

		memcpy(bad, blob, len);
		for (uint32_t k = 1 + check_random(6); k; k--)
			bad[check_random((uint32_t)len)] = (uint8_t)check_random(256);
		p = sv_policy_load(bad, len, "/t", &err);
		if (p)
			probe(p);
		sv_policy_free(p);
		free(bad);
	}
	CHECK(loaded > 0);
	free(blob);
}

static void test_mpack(void)
{
	static const uint8_t ints[] = { 0, 0x7f, 0xcc, 0x80, 0xcd, 1, 0, 0xce, 0, 1, 0, 0, 0xcf, 0, 0,
					0, 1, 0, 0, 0, 0 };
	static const uint64_t want[] = { 0, 0x7f, 0x80, 0x100, 0x10000, 0x100000000ULL };
	static const int64_t negative[] = { -1, -32, -33, -128, -129, -32769, INT64_MIN };
	static const uint8_t written[] = { 0xff, 0xe0, 0xd0, 0xdf, 0xd0, 0x80, 0xd1, 0xff, 0x7f, 0xd2,
					   0xff, 0xff, 0x7f, 0xff, 0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0 };
	static const uint8_t huge[] = { 0xdd, 0xff, 0xff, 0xff, 0xff };
	uint8_t buf[64];
	struct sv_str s;
	struct sv_mp r;
	struct sv_mw w;
	uint64_t v;
	size_t n;

	sv_mp_init(&r, ints, sizeof(ints));
	sv_mw_init(&w, buf, sizeof(buf));
	for (size_t i = 0; i < 6; i++) {
		CHECK(sv_mp_uint(&r, UINT64_MAX, &v) && v == want[i]);
		sv_mw_uint(&w, want[i]);
	}
	CHECK(sv_mp_done(&r) && w.n == sizeof(ints) && !memcmp(buf, ints, w.n));
	sv_mw_init(&w, buf, sizeof(buf));
	for (size_t i = 0; i < 7; i++)
		sv_mw_int(&w, negative[i]);
	CHECK(w.n == sizeof(written) && !memcmp(buf, written, w.n));
	sv_mp_init(&r, ints + 1, 1);
	CHECK(!sv_mp_uint(&r, 126, &v) && r.bad && !sv_mp_uint(&r, 127, &v) && !sv_mp_done(&r));
	sv_mp_init(&r, huge, sizeof(huge));
	CHECK(!sv_mp_array(&r, UINT32_MAX, &n) && r.bad);
	sv_mp_init(&r, ints, 1);
	CHECK(!sv_mp_nil(&r) && !r.bad && !sv_mp_str(&r, 9, &s) && r.bad);
	sv_mw_init(&w, buf, 4);
	sv_mw_str(&w, check_str("abc"));
	CHECK(w.n == 4 && !w.over);
	sv_mw_nil(&w);
	CHECK(w.n == 4 && w.over);
	sv_mw_init(&w, buf, 5);
	sv_mw_bin(&w, check_str("abcd"));
	CHECK(w.n == 0 && w.over);
}

/* With a folder to write to: leaves seeds for the fuzzer there. */
static int write_seeds(const char *folder)
{
	struct make m = two();
	char path[4096];
	uint8_t *blob;
	size_t len;

	for (int i = 0; i < 3; i++) {
		FILE *f;

		if (i == 1)
			make_path(&m, 0, 0, "/a/**");
		blob = i == 2 ? full(&len) : make_done(&m, &len);
		if (i == 0)
			m = two();
		snprintf(path, sizeof(path), "%s/seed-%d", folder, i);
		f = fopen(path, "wb");
		if (!f || fwrite(blob, 1, len, f) != len || fclose(f))
			return 1;
		free(blob);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return write_seeds(argv[1]);
	printf("seed %#llx\n", (unsigned long long)check_state);
	test_full();
	test_tmp();
	test_refused_rules();
	test_refused_digests();
	test_refused_matches();
	test_refused_env();
	test_refused_blocks();
	test_run_limits();
	test_limits();
	test_truncated();
	test_flipped();
	test_mpack();
	return check_end();
}
