/* test_decide.c - who wins: by hand, against a model that tries every rule on every
 * path, and what is promised about whole subtrees. */
#include "gen.h"
#include "make_blob.h"
#include "naive.h"

#include "match/decide.h"

#include <errno.h>

enum { RULES = 24, PATS = 3 };

static struct sv_policy *load(struct make *m)
{
	struct sv_err err = { 0 };
	size_t len;
	uint8_t *blob = make_done(m, &len);
	struct sv_policy *p = sv_policy_load(blob, len, "", &err);

	free(blob);
	if (!p)
		fprintf(stderr, "%s\n", err.msg);
	return p;
}

static int rule(struct make *m, const char *id, int action, uint32_t ops, const char *pattern)
{
	int r = make_rule(m, id, SV_RULE_FILES, action, ops, action == SV_DENY ? EPERM : 0,
			  action == SV_STEER ? SV_DEST_TREE : SV_DEST_NONE, "/steered");

	make_path(m, r, 0, pattern);
	return r;
}

static struct sv_match ask(const struct sv_policy *p, const char *path, uint32_t ops)
{
	struct sv_match m;

	memset(&m, 0xee, sizeof(m));
	sv_match_path(p, check_str(path), ops, &m);
	return m;
}

static bool says(const struct sv_policy *p, const char *path, uint32_t ops, enum sv_action action,
		 int index)
{
	struct sv_match m = ask(p, path, ops);

	return m.action == action && m.rule == index && m.err != 0;
}

static void test_strictest(void)
{
	struct make m = { 0 };
	struct sv_policy *p;
	struct sv_match a;

	rule(&m, "all", SV_ALLOW, 0x7f, "/w/**");			/* 0 */
	make_path(&m, rule(&m, "no-git", SV_DENY, 2, "/w/**"), 1, "/w/ok/**");	/* 1 */
	rule(&m, "ask", SV_APPROVE, 8, "/w/data/**");			/* 2 */
	rule(&m, "steer", SV_STEER, 4, "/w/**");			/* 3 */
	rule(&m, "env", SV_DENY, 0xff, "**/.env");			/* 4 */
	p = load(&m);
	CHECK(says(p, "/w/x", SV_OP_READ, SV_ALLOW, 0));
	CHECK(says(p, "/w", SV_OP_READ, SV_ALLOW, 0));
	CHECK(says(p, "/w/x", SV_OP_WRITE, SV_DENY, 1));
	CHECK(says(p, "/w/ok/x", SV_OP_WRITE, SV_ALLOW, 0));
	CHECK(says(p, "/w/x", SV_OP_CREATE, SV_STEER, 3));
	CHECK(says(p, "/w/x", SV_OP_CREATE | SV_OP_READ, SV_STEER, 3));
	CHECK(says(p, "/w/data/x", SV_OP_DELETE | SV_OP_CREATE, SV_APPROVE, 2));
	CHECK(says(p, "/w/x", SV_OP_READ | SV_OP_WRITE, SV_DENY, 1));
	CHECK(says(p, "/w/x", SV_OP_EXEC, SV_DENY, -1));
	CHECK(says(p, "/w/x", SV_OP_EXEC | SV_OP_READ, SV_DENY, -1));
	CHECK(says(p, "/w/x/.env", SV_OP_READ, SV_DENY, 4) && says(p, "/w/x/.env", 0xff, SV_DENY, 1));
	CHECK(says(p, "/elsewhere", SV_OP_READ, SV_DENY, -1));
	CHECK(says(p, "w/x", SV_OP_READ, SV_DENY, -1) && says(p, "", SV_OP_READ, SV_DENY, -1));
	CHECK(says(p, "/w/../w", SV_OP_READ, SV_DENY, -1));
	CHECK(says(p, "/w/x", 0, SV_DENY, -1) && says(p, "/w/x", 0x101, SV_DENY, -1));
	a = ask(p, "/w/.env", 0xff);
	CHECK(a.matched == 4 && a.rules[0] == 1 && a.rules[1] == 4 && a.rules[2] == 3 && a.rules[3] == 0);
	CHECK(a.err == EPERM && ask(p, "/x", 1).err == EACCES && ask(p, "/x", 1).matched == 0);
	a = ask(p, "/w/x", SV_OP_CREATE);
	CHECK(a.prefix == 2 && ask(p, "/w/x", SV_OP_READ).prefix == 0);
	sv_policy_free(p);
}

/* A hiding rule hides where it is the one that answers. */
static void test_hides(void)
{
	struct make m = { 0 };
	struct sv_policy *p;
	struct sv_match a;
	int r;

	rule(&m, "all", SV_ALLOW, 0xff, "/w/**");
	r = make_rule(&m, "hidden", SV_RULE_FILES, SV_DENY, SV_BLOB_HIDE | 0xff, ENOENT, SV_DEST_NONE,
		      NULL);
	make_path(&m, r, 0, "/w/h/**");
	make_path(&m, r, 1, "/w/h/but");
	rule(&m, "nearer", SV_DENY, SV_OP_READ, "/w/h/told/**");
	p = load(&m);
	CHECK(p);
	if (!p)
		return;
	CHECK(p->rules[r].ops == 0xff);
	a = ask(p, "/w/h", SV_OP_READ);
	CHECK(a.action == SV_DENY && a.err == ENOENT && sv_match_hides(p, &a));
	a = ask(p, "/w/h/x/y", SV_OP_READ);
	CHECK(sv_match_hides(p, &a));
	a = ask(p, "/w/h/but", SV_OP_READ);
	CHECK(!sv_match_hides(p, &a) && a.action == SV_ALLOW);
	a = ask(p, "/w/h/told/x", SV_OP_READ);
	CHECK(!sv_match_hides(p, &a) && a.err == EPERM);
	a = ask(p, "/elsewhere", SV_OP_READ);
	CHECK(!sv_match_hides(p, &a) && a.rule == -1);
	sv_policy_free(p);
}

static void test_ties(void)
{
	struct make m = { 0 };
	struct sv_policy *p;
	char id[32];

	rule(&m, "z", SV_STEER, 1, "/h/**");		/* 0 */
	rule(&m, "y", SV_STEER, 1, "/h/u/**");		/* 1 */
	rule(&m, "x", SV_STEER, 1, "**/pip.conf");	/* 2 */
	rule(&m, "w", SV_DENY, 2, "/h/*");		/* 3 */
	rule(&m, "a", SV_DENY, 2, "/h/?");		/* 4: same prefix, the first id */
	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "n%02d", i);
		rule(&m, id, SV_ALLOW, 1, "/many/**");
	}
	p = load(&m);
	CHECK(says(p, "/h/x/pip.conf", 1, SV_STEER, 0) && ask(p, "/h/x/pip.conf", 1).prefix == 2);
	CHECK(says(p, "/h/u/pip.conf", 1, SV_STEER, 1) && ask(p, "/h/u/pip.conf", 1).prefix == 4);
	CHECK(says(p, "/q/pip.conf", 1, SV_STEER, 2) && ask(p, "/q/pip.conf", 1).prefix == 0);
	CHECK(says(p, "/h/b", 2, SV_DENY, 4));
	CHECK(says(p, "/many/x", 1, SV_ALLOW, 5));
	CHECK(ask(p, "/many/x", 1).matched >= 32 && ask(p, "/many/x", 1).rules[15] == 20);
	sv_policy_free(p);
}

static struct sv_match exec(const struct sv_policy *p, const char *path, const char *name,
			    const char *args)
{
	struct sv_str argv[8];
	struct sv_match m;
	int n = 0;

	argv[n++] = check_str(name);
	for (; args && *args; args += *args == ' ') {
		argv[n].p = (const uint8_t *)args;
		argv[n].n = strcspn(args, " ");
		args += argv[n++].n;
	}
	sv_match_exec(p, check_str(path), check_str(name), argv, n, args != NULL, &m);
	return m;
}

static void test_exec(void)
{
	struct make m = { 0 };
	struct sv_policy *p;
	int r;

	rule(&m, "bin", SV_ALLOW, SV_OP_EXEC | SV_OP_READ, "/usr/**");	/* 0 */
	r = make_rule(&m, "fetch", SV_RULE_EXEC, SV_STEER, SV_OP_EXEC, 0, SV_DEST_ARGV, "/w/fetch");
	make_name(&m, r, "curl");					/* 1 */
	r = make_rule(&m, "push", SV_RULE_EXEC, SV_DENY, SV_OP_EXEC, EPERM, SV_DEST_NONE, NULL);
	make_name(&m, r, "git");					/* 2 */
	make_argv(&m, r, 0, "push **");
	r = make_rule(&m, "own", SV_RULE_EXEC, SV_ALLOW, SV_OP_EXEC, 0, SV_DEST_NONE, NULL);
	make_path(&m, r, 0, "/w/bin/*");				/* 3 */
	make_path(&m, r, 1, "/w/bin/bad");
	make_argv(&m, r, 0, "--safe");
	p = load(&m);
	CHECK(exec(p, "/usr/bin/ls", "ls", "").rule == 0);
	CHECK(exec(p, "/usr/bin/curl", "curl", "").rule == 1);
	CHECK(exec(p, "/usr/bin/curl", "other", "").rule == 1);
	CHECK(exec(p, "/usr/bin/tool", "/x/curl", "").rule == 1);
	CHECK(exec(p, "/usr/bin/curl2", "curl2", "").rule == 0);
	CHECK(exec(p, "/usr/bin/git", "git", "push origin").action == SV_DENY);
	CHECK(exec(p, "/usr/bin/git", "git", "push").err == EPERM);
	CHECK(exec(p, "/usr/bin/git", "git", "pull").action == SV_ALLOW);
	CHECK(exec(p, "/usr/bin/git", "git", NULL).rule == 2);
	CHECK(exec(p, "/w/bin/x", "x", "--safe").rule == 3);
	CHECK(exec(p, "/w/bin/x", "x", "--other").rule == -1);
	CHECK(exec(p, "/w/bin/x", "x", NULL).rule == -1);
	CHECK(exec(p, "/w/bin/bad", "bad", "--safe").rule == -1);
	CHECK(exec(p, "/opt/x", "x", "").action == SV_DENY);
	CHECK(exec(p, "/usr/bin/curl", "curl", "").matched == 2);
	CHECK(says(p, "/usr/bin/git", SV_OP_EXEC, SV_DENY, 2) && says(p, "/usr/bin/git", 1, SV_ALLOW, 0));
	CHECK(sv_match_needs_argv(p, check_str("/usr/bin/git"), check_str("x")));
	CHECK(sv_match_needs_argv(p, check_str("/usr/bin/x"), check_str("./git")));
	CHECK(sv_match_needs_argv(p, check_str("/w/bin/x"), check_str("x")));
	CHECK(!sv_match_needs_argv(p, check_str("/usr/bin/curl"), check_str("curl")));
	CHECK(sv_match_looser(p, check_str("/usr/bin/git"), check_str("/usr/bin/got")));
	sv_policy_free(p);
}

static const char one[] = "0123456789abcdef0123456789abcdef";
static const char two[] = "fedcba9876543210fedcba9876543210";

static struct sv_match ask_exec(const struct sv_policy *p, const char *path, const char *name)
{
	struct sv_match m;

	sv_match_exec(p, check_str(path), check_str(name), NULL, 0, false, &m);
	return m;
}

/* A rule that says which bytes a program has counts, whatever else allows it. */
static void test_pins(void)
{
	struct make m = { 0 };
	struct sv_policy *p;
	char id[16];
	int r;

	rule(&m, "all", SV_ALLOW, 0xff, "/b/**");			/* 0 */
	make_path(&m, make_pin(&m, "a", one), 0, "/b/py*");		/* 1 */
	make_name(&m, make_pin(&m, "b", two), "tool");			/* 2 */
	make_path(&m, make_pin(&m, "c", two), 0, "/b/pyx");		/* 3 */
	make_path(&m, make_pin(&m, "d", one), 0, "/b/py1");		/* 4 */
	rule(&m, "no", SV_DENY, SV_OP_EXEC, "/b/pydeny");		/* 5 */
	make_path(&m, make_pin(&m, "e", one), 0, "/b/sub/**");		/* 6 */
	for (int i = 0; i < 40; i++) {	/* more than are looked at for the count */
		snprintf(id, sizeof(id), "m%d", i);
		r = make_pin(&m, id, i == 39 ? two : one);
		make_path(&m, r, 0, "/b/many");
	}
	p = load(&m);
	CHECK(p);
	if (!p)
		return;
	CHECK(ask_exec(p, "/b/other", "other").pin == 0);
	CHECK(ask_exec(p, "/b/py", "py").pin == 2 && ask_exec(p, "/b/py", "py").rule == 1);
	CHECK(ask_exec(p, "/b/py", "py").action == SV_ALLOW);
	CHECK(ask_exec(p, "/b/other", "x/tool").pin == 3 && ask_exec(p, "/b/tool", "x").pin == 3);
	CHECK(ask_exec(p, "/b/py1", "py1").action == SV_ALLOW && ask_exec(p, "/b/py1", "py1").pin);
	CHECK(ask_exec(p, "/b/pyx", "pyx").action == SV_DENY);	/* no bytes are both */
	CHECK(ask_exec(p, "/b/py", "tool").action == SV_DENY);
	CHECK(ask_exec(p, "/b/many", "many").action == SV_DENY);
	CHECK(ask_exec(p, "/b/pydeny", "x").action == SV_DENY && ask_exec(p, "/b/pydeny", "x").rule == 5);
	CHECK(ask(p, "/b/py", SV_OP_READ).pin == 0);
	CHECK(sv_match_looser(p, check_str("/b/py"), check_str("/b/other")));
	CHECK(sv_match_looser(p, check_str("/b/py"), check_str("/b/tool")));
	CHECK(!sv_match_looser(p, check_str("/b/py"), check_str("/b/py1")));
	CHECK(!sv_match_looser(p, check_str("/b/other"), check_str("/b/py")));
	CHECK(!sv_match_looser(p, check_str("/b/py"), check_str("/b/pydeny")));
	CHECK(!sv_match_looser(p, check_str("/b/py"), check_str("/b/pyx")));
	CHECK(sv_match_looser(p, check_str("/b/pyx"), check_str("/b/py")));
	CHECK(!sv_match_same_future(p, check_str("/b/sub/d"), check_str("/b/d")));
	CHECK(!sv_match_same_future(p, check_str("/b/d"), check_str("/b/sub/d")));
	CHECK(sv_match_same_future(p, check_str("/b/sub/d"), check_str("/b/sub/e")));
	sv_policy_free(p);
}

static void test_subtrees(void)
{
	struct make m = { 0 };
	struct sv_policy *p;

	make_path(&m, rule(&m, "w", SV_ALLOW, 0x7f, "/w/**"), 1, "/w/.git/hooks/**");
	rule(&m, "t", SV_ALLOW, 0x7f, "/t/**");
	rule(&m, "b", SV_ALLOW, 0x7f, "/t/build/**");
	rule(&m, "env", SV_DENY, 0xff, "**/.env");
	rule(&m, "keys", SV_DENY, 0xff, "**/keys/**");
	rule(&m, "ro", SV_ALLOW, 1, "/ro/**");
	p = load(&m);
#define SAME(a, b) sv_match_same_future(p, check_str(a), check_str(b))
#define LOOSER(a, b) sv_match_looser(p, check_str(a), check_str(b))
	CHECK(SAME("/w/a", "/w/b") && SAME("/w/a/b/c", "/w/b") && SAME("/t/a", "/t/build/x"));
	CHECK(!SAME("/w/.git", "/w/git") && SAME("/w/.git/x", "/w/git"));
	CHECK(SAME("/t/a", "/t/b/c") && !SAME("/t/a", "/t") && !SAME("/t/keys", "/t/x") && SAME("/t/keys/a", "/w/keys") == false);
	CHECK(!SAME("/t/a", "/ro/a") && SAME("/none/a", "/nothing") && !SAME("/t/a", "/none"));
	CHECK(!SAME("/", "/t") && !SAME("bad", "bad"));
	CHECK(LOOSER("/w/.env", "/w/env") && !LOOSER("/w/env", "/w/.env"));
	CHECK(LOOSER("/ro/a", "/t/a") && !LOOSER("/t/a", "/ro/a") && !LOOSER("/t/a", "/w/a"));
	CHECK(LOOSER("bad", "/t/a") && !LOOSER("/t/a", "bad"));
	sv_policy_free(p);
}

/* The model: every pattern of every rule is tried. */
struct model {
	int n;
	struct {
		enum sv_action action;
		uint32_t ops;
		int npat, nexc;
		char pat[PATS][GEN_TEXT], exc[PATS][GEN_TEXT];
	} rule[RULES];
};

/* The literal prefix of the best pattern that matches, -1 = the rule does not match. */
static int model_rule(const struct model *s, int i, const char *path)
{
	struct sv_pattern shape;
	int best = -1;

	for (int k = 0; k < s->rule[i].nexc; k++)
		if (naive_match(s->rule[i].exc[k], path))
			return -1;
	for (int k = 0; k < s->rule[i].npat; k++) {
		if (!naive_match(s->rule[i].pat[k], path))
			continue;
		sv_pattern_scan(check_str(s->rule[i].pat[k]), &shape, NULL);
		if ((int)shape.literal > best)
			best = (int)shape.literal;
	}
	return best;
}

static void model_ask(const struct model *s, const char *path, uint32_t ops, struct sv_match *out)
{
	int best_literal = -1;
	bool open = false;
	int literal[RULES];

	memset(out, 0, sizeof(*out));
	out->rule = -1;
	for (int i = 0; i < s->n; i++) {
		literal[i] = model_rule(s, i, path);
		out->matched += literal[i] >= 0 && s->rule[i].ops & ops;
	}
	for (uint32_t bit = 1; bit < 256; bit <<= 1) {
		bool any = false;

		for (int i = 0; (ops & bit) && i < s->n; i++) {
			if (literal[i] < 0 || !(s->rule[i].ops & bit))
				continue;
			any = true;
			if (out->rule < 0 || s->rule[i].action > out->action ||
			    (s->rule[i].action == out->action &&
			     (literal[i] > best_literal || (literal[i] == best_literal && i < out->rule)))) {
				out->action = s->rule[i].action;
				out->rule = i;
				best_literal = literal[i];
			}
		}
		open |= (ops & bit) && !any;
	}
	if (open && (out->rule < 0 || out->action != SV_DENY)) {
		out->action = SV_DENY;
		out->rule = -1;
	}
}

/* Deletes are steered alone, to the trash. */
static uint32_t steerable(uint32_t ops)
{
	return check_random(4) && ops != SV_OP_DELETE ? (ops & ~(uint32_t)SV_OP_DELETE) : SV_OP_DELETE;
}

static int dest_kind(enum sv_action action, uint32_t ops)
{
	if (action != SV_STEER)
		return SV_DEST_NONE;
	return ops == SV_OP_DELETE ? SV_DEST_TRASH : SV_DEST_TREE;
}

static struct sv_policy *random_policy(struct model *s)
{
	struct make m = { 0 };
	char id[16];

	s->n = 1 + (int)check_random(RULES);
	for (int i = 0; i < s->n; i++) {
		s->rule[i].action = (enum sv_action)check_random(4);
		s->rule[i].ops = 1 + check_random(255);
		if (s->rule[i].action == SV_STEER)
			s->rule[i].ops = steerable(s->rule[i].ops);
		s->rule[i].npat = 1 + (int)check_random(PATS);
		s->rule[i].nexc = check_random(3) ? 0 : 1 + (int)check_random(PATS);
		snprintf(id, sizeof(id), "r%02d", i);
		make_rule(&m, id, SV_RULE_FILES, (int)s->rule[i].action, s->rule[i].ops, 0,
			  dest_kind(s->rule[i].action, s->rule[i].ops),
			  s->rule[i].ops == SV_OP_DELETE ? NULL : "/to");
		for (int k = 0; k < s->rule[i].npat; k++) {
			gen_pattern(s->rule[i].pat[k]);
			make_path(&m, i, 0, s->rule[i].pat[k]);
		}
		for (int k = 0; k < s->rule[i].nexc; k++) {
			gen_pattern(s->rule[i].exc[k]);
			make_path(&m, i, 1, s->rule[i].exc[k]);
		}
	}
	return load(&m);
}

static void below(char *out, const char *folder, const char *rest)
{
	snprintf(out, GEN_TEXT * 4, "%s%s", strcmp(folder, "/") ? folder : "", rest);
}

/* Where two folders are said to have one future, no path below may tell them apart. */
static long check_future(const struct model *s, const struct sv_policy *p, const char *a, const char *b)
{
	char rest[GEN_TEXT * 2], pa[GEN_TEXT * 4], pb[GEN_TEXT * 4];

	if (!sv_match_same_future(p, check_str(a), check_str(b)))
		return 0;
	for (int i = 0; i < 12; i++) {
		uint32_t op = 1u << check_random(8);
		struct sv_match ma, mb;

		do
			gen_path(rest, 3);
		while (!strcmp(rest, "/"));
		below(pa, a, rest);
		below(pb, b, rest);
		model_ask(s, pa, op, &ma);
		model_ask(s, pb, op, &mb);
		CHECK(ma.action == mb.action && (ma.action != SV_STEER || ma.rule == mb.rule));
	}
	return 1;
}

static void test_random(int policies, int paths)
{
	static struct model s;
	char path[GEN_TEXT * 2], other[GEN_TEXT * 2];
	long pairs = 0, same = 0;

	for (int i = 0; i < policies; i++) {
		struct sv_policy *p = random_policy(&s);

		CHECK(p);
		for (int k = 0; p && k < paths; k++, pairs++) {
			uint32_t ops = check_random(2) ? 1u << check_random(8) : 1 + check_random(255);
			struct sv_match got, want;
			bool looser = false;

			gen_path(path, 6);
			got = ask(p, path, ops);
			model_ask(&s, path, ops, &want);
			CHECK(got.action == want.action && got.rule == want.rule);
			CHECK(got.matched == want.matched);
			gen_path(other, 6);
			for (uint32_t bit = 1; bit < 256; bit <<= 1)
				looser |= ask(p, other, bit).action < ask(p, path, bit).action;
			CHECK(sv_match_looser(p, check_str(path), check_str(other)) == looser);
			same += check_future(&s, p, path, other);
		}
		sv_policy_free(p);
	}
	printf("%ld random (policy, path) pairs, %ld with one future\n", pairs, same);
	CHECK(same > pairs / 100);
}

static void test_sv_decide(void)
{
	struct make m = { 0 };
	struct sv_verdict v;
	struct sv_err err = { 0 };
	uint8_t *blob;
	size_t len;
	int r = make_rule(&m, "push", SV_RULE_EXEC, SV_ALLOW, SV_OP_EXEC, 0, SV_DEST_NONE, NULL);

	make_name(&m, r, "git");
	make_argv(&m, r, 0, "push **");
	rule(&m, "w", SV_ALLOW, 1, "/w/**");
	blob = make_done(&m, &len);
#define DECIDE(op, path, argv, n)                                                           \
	sv_decide(blob, len, "", op, (const uint8_t *)(path), strlen(path), (const uint8_t *)"git", \
		  3, (const uint8_t *)(argv), n, 0, &v, &err)
	CHECK(!DECIDE(SV_OP_EXEC, "/b/git", "git\0push", 8) && v.action == SV_ALLOW && v.rule == 0);
	CHECK(v.matched == 1 && v.rules[0] == 0);
	CHECK(!DECIDE(SV_OP_EXEC, "/b/git", "git\0push\0", 9) && v.action == SV_ALLOW);
	CHECK(!DECIDE(SV_OP_EXEC, "/b/git", "git\0pull", 8) && v.action == SV_DENY && v.rule == -1);
	CHECK(!DECIDE(SV_OP_EXEC, "/b/git", "git", 3) && v.action == SV_DENY);
	CHECK(!DECIDE(SV_OP_EXEC, "/b/git", "", 0) && v.action == SV_DENY);
	CHECK(!DECIDE(SV_OP_EXEC, "/b/git", NULL, 0) && v.action == SV_DENY);
	CHECK(!DECIDE(SV_OP_READ, "/w/x", NULL, 0) && v.rule == 1 && v.err == EACCES);
	CHECK(DECIDE(0, "/w/x", NULL, 0) == -EINVAL && err.code == EINVAL);
	len--;
	CHECK(DECIDE(SV_OP_READ, "/w/x", NULL, 0) == -EINVAL);
	free(blob);
}

int main(void)
{
	test_hides();
	printf("seed %#llx\n", (unsigned long long)check_state);
	test_strictest();
	test_ties();
	test_exec();
	test_pins();
	test_subtrees();
	test_sv_decide();
	test_random(1500, 50);
	return check_end();
}
