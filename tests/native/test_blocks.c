/* test_blocks.c - blocks narrow: against each block as a policy of its own, on random
 * rules and paths; and what may be moved where there are some. */
#include "gen.h"
#include "make_blob.h"

#include "match/blocks.h"

#include <errno.h>

enum { RULES = 8, SETS = 1 + MAKE_BLOCKS };

struct one {
	int action;
	uint32_t ops;
	bool except;
	char pattern[2][GEN_TEXT];
};

/* The rules of the policy (the first set) and of its blocks. */
struct set {
	struct one rule[RULES];
	int n;
	bool open;
};

static struct sv_policy *load(struct make *m)
{
	struct sv_err err = { 0 };
	size_t len;
	uint8_t *blob = make_done(m, &len);
	struct sv_policy *p = sv_policy_load(blob, len, "", &err);

	free(blob);
	if (!p)
		fprintf(stderr, "%s\n", err.msg);
	CHECK(p);
	return p;
}

static void put(struct make *m, const struct set *s, char letter)
{
	char id[16];

	for (int i = 0; i < s->n; i++) {
		const struct one *o = &s->rule[i];
		int r;

		snprintf(id, sizeof(id), "%c%d", letter, i);
		r = make_rule(m, id, SV_RULE_FILES, o->action, o->ops, 0,
			      o->action == SV_STEER ? SV_DEST_FILE : SV_DEST_NONE, "/to");
		make_path(m, r, 0, o->pattern[0]);
		if (o->except)
			make_path(m, r, 1, o->pattern[1]);
	}
}

static void random_set(struct set *s, bool block)
{
	static const int actions[] = { SV_ALLOW, SV_ALLOW, SV_DENY, SV_STEER };

	s->n = (int)check_random(RULES + 1);
	s->open = block && check_random(2);
	for (int i = 0; i < s->n; i++) {
		struct one *o = &s->rule[i];

		o->action = actions[check_random(block ? 3 : 4)];
		o->ops = o->action == SV_STEER ? 1 + check_random(7) : 1 + check_random(255);
		o->except = !check_random(3);
		gen_pattern(o->pattern[0]);
		gen_pattern(o->pattern[1]);
	}
}

static struct sv_policy *together(const struct set *sets)
{
	struct make m = { 0 };

	put(&m, &sets[0], 'p');
	for (int k = 1; k < SETS; k++) {
		const char name[] = { (char)('A' + k), 0 };

		make_block(&m);
		if (!sets[k].open)
			make_fallback(&m, name);
		put(&m, &sets[k], name[0]);
		make_start(&m, name);
	}
	m.now = 0;
	return load(&m);
}

static struct sv_policy *alone(const struct set *s)
{
	struct make m = { 0 };

	put(&m, s, 'x');
	if (s->open)
		make_path(&m, make_rule(&m, "zz", SV_RULE_FILES, SV_ALLOW, 0xff, 0, SV_DEST_NONE, NULL),
			  0, "/**");
	return load(&m);
}

static enum sv_action asks(const struct sv_policy *p, uint32_t blocks, const char *path, uint32_t ops)
{
	struct sv_match m;

	memset(&m, 0xee, sizeof(m));
	sv_match_path_in(p, blocks, check_str(path), ops, &m);
	CHECK(m.err && m.rule < (int)p->nrules && (m.action != SV_STEER || m.rule >= 0));
	/* A refusal in a block names a rule of that block, or of the policy. */
	if (m.rule >= 0 && p->rules[m.rule].block)
		CHECK(blocks >> (p->rules[m.rule].block - 1) & 1);
	return m.action;
}

static void check_answers(const struct sv_policy *p, struct sv_policy *const *parts, const char *path,
			  uint32_t ops)
{
	for (uint32_t blocks = 0; blocks < 1u << MAKE_BLOCKS; blocks++) {
		enum sv_action want = asks(parts[0], 0, path, ops);
		enum sv_action got = asks(p, blocks, path, ops);

		for (int k = 0; k < MAKE_BLOCKS; k++) {
			enum sv_action own = asks(parts[k + 1], 0, path, ops);

			if (blocks >> k & 1 && own > want)
				want = own;
			/* One block more never allows more. */
			CHECK(asks(p, blocks | 1u << k, path, ops) >= got);
		}
		CHECK(got == want);
	}
}

/* What may be moved is nowhere decided more loosely, by anything that counts. */
static long check_moves(const struct sv_policy *p, struct sv_policy *const *parts, const char *a,
			const char *b)
{
	bool outside = sv_match_may_move(p, 0, check_str(a), check_str(b), false);
	bool inside = sv_match_may_move(p, 1, check_str(a), check_str(b), false);
	bool tree = sv_match_may_move(p, 2, check_str(a), check_str(b), true);
	char below_a[GEN_TEXT * 2], below_b[GEN_TEXT * 2], rest[GEN_TEXT];

	CHECK((!inside || outside) && (!tree || inside));
	for (int k = 0; k < SETS && inside; k++)
		CHECK(!sv_match_looser(parts[k], check_str(a), check_str(b)));
	for (int i = 0; i < 8 && tree; i++) {
		gen_path(rest, 3);
		snprintf(below_a, sizeof(below_a), "%s%s", strcmp(a, "/") ? a : "", rest);
		snprintf(below_b, sizeof(below_b), "%s%s", strcmp(b, "/") ? b : "", rest);
		if (strcmp(rest, "/") != 0)
			for (int k = 0; k < SETS; k++)
				CHECK(!sv_match_looser(parts[k], check_str(below_a), check_str(below_b)));
	}
	return tree;
}

static void test_random(int policies, int paths)
{
	static struct set sets[SETS];
	char a[GEN_TEXT], b[GEN_TEXT];
	long trees = 0;

	for (int i = 0; i < policies; i++) {
		struct sv_policy *parts[SETS], *p;

		for (int k = 0; k < SETS; k++) {
			random_set(&sets[k], k > 0);
			parts[k] = alone(&sets[k]);
		}
		p = together(sets);
		for (int n = 0; p && n < paths; n++) {
			gen_path(a, 6);
			gen_path(b, 6);
			check_answers(p, parts, a, check_random(2) ? 1u << check_random(8) :
							      1 + check_random(255));
			trees += check_moves(p, parts, a, b);
		}
		sv_policy_free(p);
		for (int k = 0; k < SETS; k++)
			sv_policy_free(parts[k]);
	}
	printf("%d policies with %d blocks, %d paths each; %ld folders might move\n", policies,
	       MAKE_BLOCKS, paths, trees);
	CHECK(trees > 0);
}

static int allow(struct make *m, const char *id, const char *pattern)
{
	int r = make_rule(m, id, SV_RULE_FILES, SV_ALLOW, 0xff, 0, SV_DEST_NONE, NULL);

	make_path(m, r, 0, pattern);
	return r;
}

/* Renaming is no way out of a block, nor a way to feed one. */
static void test_moves(void)
{
	struct make m = { 0 };
	struct sv_policy *p;

	allow(&m, "all", "/**");
	make_block(&m);
	make_fallback(&m, "git");
	allow(&m, "git.in", "/ws/in/**");
	make_start(&m, "git");
	make_start(&m, "/ws/tools/**");
	m.now = 0;
	p = load(&m);
	if (!p)
		return;
#define MOVE(in, a, b, folder) sv_match_may_move(p, in, check_str(a), check_str(b), folder)
	CHECK(MOVE(0, "/ws/a", "/ws/in/a", false) && MOVE(0, "/ws/in/a", "/ws/a", false));
	CHECK(!MOVE(1, "/ws/a", "/ws/in/a", false) && MOVE(1, "/ws/in/a", "/ws/in/b", false));
	CHECK(MOVE(0, "/ws/a", "/ws/in/a", true) && !MOVE(1, "/ws/a", "/ws/in/a", true));
	CHECK(MOVE(1, "/ws/in/a", "/ws/in/b", true));
	CHECK(!MOVE(0, "/ws/git", "/ws/tig", false) && MOVE(0, "/ws/tig", "/ws/git", false));
	CHECK(MOVE(0, "/ws/git", "/ws/in/git", false));
	CHECK(!MOVE(0, "/ws/tools/x", "/ws/x", false) && MOVE(0, "/ws/tools/x", "/ws/tools/y", false));
	CHECK(MOVE(0, "/ws/tools/x", "/ws/git", false));
	CHECK(!MOVE(0, "/ws/tools", "/ws/slools", true) && MOVE(0, "/ws/tools/x", "/ws/tools/y", true));
	CHECK(!MOVE(0, "/ws", "/sw", true));
#undef MOVE
	sv_policy_free(p);
}

/* Arguments are read where a block looks at them. */
static void test_arguments(void)
{
	const struct sv_str push[] = { check_str("git"), check_str("push") };
	struct make m = { 0 };
	struct sv_policy *p;
	struct sv_match out;
	int r;

	allow(&m, "all", "/**");
	make_block(&m);
	r = make_rule(&m, "b.push", SV_RULE_EXEC, SV_DENY, SV_OP_EXEC, EPERM, SV_DEST_NONE, NULL);
	make_name(&m, r, "git");
	make_argv(&m, r, 0, "push **");
	make_start(&m, "agent");
	m.now = 0;
	p = load(&m);
	if (!p)
		return;
	CHECK(!sv_match_needs_argv_in(p, 0, check_str("/b/git"), check_str("git")));
	CHECK(sv_match_needs_argv_in(p, 1, check_str("/b/git"), check_str("git")));
	sv_match_exec_in(p, 1, check_str("/b/git"), check_str("git"), push, 2, true, &out);
	CHECK(out.action == SV_DENY && out.err == EPERM && out.rule == r && out.matched == 2);
	sv_match_exec_in(p, 1, check_str("/b/git"), check_str("git"), push, 1, true, &out);
	CHECK(out.action == SV_ALLOW);
	sv_match_exec_in(p, 0, check_str("/b/git"), check_str("git"), push, 2, true, &out);
	CHECK(out.action == SV_ALLOW);
	sv_policy_free(p);
}

int main(void)
{
	printf("seed %#llx\n", (unsigned long long)check_state);
	test_moves();
	test_arguments();
	test_random(400, 60);
	return check_end();
}
