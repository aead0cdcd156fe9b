/* test_signal.c - signal rules against a model that looks at each pair of signal and target. */
#include "check.h"
#include "make_blob.h"

#include "match/signal.h"

#include <errno.h>

enum { RULES = 6 };

struct one {
	char id[8];
	int action;
	uint64_t mask;
	unsigned who, to;
};

static struct sv_err err;

static struct one random_rule(int i)
{
	struct one r = { .action = check_random(3) ? SV_STEER : SV_DENY };

	snprintf(r.id, sizeof(r.id), "r%d", (i * 5) % 7);	/* not in the order of ids */
	for (int k = 0; k < 3; k++)
		r.mask |= 1ULL << (check_random(2) ? check_random(4) : 60 + check_random(4));
	r.who = 1 + check_random(7);
	r.to = r.action == SV_STEER ? check_random(4) * 5 : 0;
	return r;
}

/* Of all that speak of the signal and of any of the targets: deny, then the first id. */
static int model(const struct one *r, int n, int sig, unsigned who, int *to, int *matched)
{
	int best = -1;

	*to = sig;
	*matched = 0;
	for (int i = 0; i < n; i++) {
		if (!(r[i].mask & 1ULL << (sig - 1)) || !(r[i].who & who))
			continue;
		++*matched;
		if (best < 0 || (r[i].action == SV_DENY && r[best].action != SV_DENY) ||
		    (r[i].action == r[best].action && strcmp(r[i].id, r[best].id) < 0))
			best = i;
	}
	for (int i = 0, seen = 0; i < n; i++)
		if (r[i].action == SV_STEER && r[i].mask & 1ULL << (sig - 1) && r[i].who & who) {
			*to = seen++ && *to != (int)r[i].to ? SV_SIGNAL_TORN : (int)r[i].to;
			if (*to == SV_SIGNAL_TORN)
				break;
		}
	return best;
}

static void compare(const struct sv_policy *p, const struct one *r, int n)
{
	for (int sig = 1; sig <= SV_SIGNALS; sig++)
		for (unsigned who = 1; who <= SV_WHO_TREE; who++) {
			int to, matched, best = model(r, n, sig, who, &to, &matched);
			struct sv_match m;

			CHECK(sv_match_signal(p, sig, who, &m) == to);
			CHECK(m.rule == best && m.matched == matched && m.err == EPERM);
			CHECK(m.action == (best < 0 ? SV_ALLOW : (enum sv_action)r[best].action));
			CHECK(sv_match_signal_asked(p, sig, who) == (matched > 0));
			CHECK(best < 0 || m.rules[0] == best);
		}
}

static void random_policies(void)
{
	for (int round = 0; round < 300; round++) {
		int n = (int)check_random(RULES + 1);
		struct one r[RULES];
		struct make m = { 0 };
		struct sv_policy *p;
		uint8_t *blob;
		size_t len;

		for (int i = 0; i < n; i++) {
			r[i] = random_rule(i);
			make_signal(&m, r[i].id, r[i].action, r[i].mask, r[i].who, r[i].to);
		}
		blob = make_done(&m, &len);
		p = sv_policy_load(blob, len, "", &err);
		CHECK(p);
		if (p)
			compare(p, r, n);
		sv_policy_free(p);
		free(blob);
	}
}

/* More rules than are told of. */
static void many(void)
{
	struct make m = { 0 };
	struct sv_policy *p;
	struct sv_match got;
	uint8_t *blob;
	size_t len;

	for (int i = 0; i < 40; i++) {
		char id[8];

		snprintf(id, sizeof(id), "s%02d", 39 - i);
		make_signal(&m, id, i == 30 ? SV_DENY : SV_STEER, 1, SV_WHO_TREE, i == 30 ? 0 : 2);
	}
	blob = make_done(&m, &len);
	p = sv_policy_load(blob, len, "", &err);
	CHECK(p && sv_match_signal(p, 1, SV_WHO_SELF, &got) == 2);
	CHECK(got.rule == 30 && got.action == SV_DENY && got.matched == 40 && got.rules[1] == 39);
	CHECK(p && sv_match_signal(p, 0, SV_WHO_SELF, &got) == 0 && got.action == SV_ALLOW);
	CHECK(p && sv_match_signal(p, 65, SV_WHO_SELF, &got) == 65 && got.rule == -1);
	CHECK(p && sv_match_signal_asked(p, 0, SV_WHO_CHILD) && !sv_match_signal_asked(p, 2, SV_WHO_TREE));
	sv_policy_free(p);
	free(blob);
}

static void refused(void)
{
	static const struct {
		int action;
		uint64_t mask;
		unsigned who, to;
	} bad[] = {
		{ SV_ALLOW, 1, 7, 0 }, { SV_APPROVE, 1, 7, 0 }, { SV_DENY, 0, 7, 0 },
		{ SV_DENY, 1, 0, 0 }, { SV_DENY, 1, 8, 0 }, { SV_DENY, 1, 7, 1 },
		{ SV_STEER, 1, 7, 65 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]) + 3; i++) {
		const bool shaped = i >= sizeof(bad) / sizeof(bad[0]);
		struct make m = { 0 };
		uint8_t *blob;
		size_t len;

		if (!shaped)
			make_signal(&m, "r", bad[i].action, bad[i].mask, bad[i].who, bad[i].to);
		else if (i == sizeof(bad) / sizeof(bad[0]))	/* in a block */
			make_block(&m), make_signal(&m, "r", SV_DENY, 1, 7, 0);
		else if (i == sizeof(bad) / sizeof(bad[0]) + 1)	/* paths of a signal rule */
			make_path(&m, make_signal(&m, "r", SV_DENY, 1, 7, 0), 0, "/a");
		else						/* other operations */
			make_rule(&m, "r", SV_RULE_SIGNAL, SV_DENY, SV_OP_READ, 0, SV_DEST_NONE, NULL);
		blob = make_done(&m, &len);
		err = (struct sv_err){ 0 };
		CHECK(!sv_policy_load(blob, len, "", &err) && err.code == EINVAL);
		free(blob);
	}
}

static void names(void)
{
	char out[SV_SIGNAL_NAME];

	CHECK(!strcmp(sv_signal_name(0, out), "none") && !strcmp(sv_signal_name(9, out), "KILL"));
	CHECK(!strcmp(sv_signal_name(31, out), "SYS") && !strcmp(sv_signal_name(33, out), "33"));
	CHECK(!strcmp(sv_signal_name(34, out), "RTMIN") && !strcmp(sv_signal_name(64, out), "RTMIN+30"));
}

int main(void)
{
	random_policies();
	many();
	refused();
	names();
	return check_end();
}
