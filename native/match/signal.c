/* signal.c - one pass over the signal rules, of which there are few. */
#include "match/signal.h"

#include <errno.h>
#include <stdio.h>

enum { TOLD = 16, RTMIN = 34 };	/* the C libraries keep the first two for themselves */

static const char *const names[RTMIN] = {
	"none", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV",
	"USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU",
	"URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS", "32", "33",
};

const char *sv_signal_name(int sig, char *out)
{
	if (sig >= 0 && sig < RTMIN)
		snprintf(out, SV_SIGNAL_NAME, "%s", names[sig]);
	else if (sig == RTMIN)
		snprintf(out, SV_SIGNAL_NAME, "RTMIN");
	else
		snprintf(out, SV_SIGNAL_NAME, "RTMIN+%d", sig - RTMIN);
	return out;
}

static bool speaks(const struct sv_signal_rule *r, int sig, uint32_t who)
{
	return r->who & who && (!sig || r->signals >> (sig - 1) & 1);
}

/* Is a the one that counts, of two that match? */
static bool before(const struct sv_rule *a, const struct sv_rule *b)
{
	return a->action != b->action ? a->action > b->action : a->rank < b->rank;
}

/* Strictest first. */
static void note(const struct sv_policy *p, struct sv_match *m, uint32_t rule)
{
	int n = m->matched < TOLD ? m->matched : TOLD, at = 0;

	while (at < n && before(&p->rules[m->rules[at]], &p->rules[rule]))
		at++;
	m->matched++;
	if (at == TOLD)
		return;
	for (int i = n < TOLD ? n : TOLD - 1; i > at; i--)
		m->rules[i] = m->rules[i - 1];
	m->rules[at] = (int)rule;
}

int sv_match_signal(const struct sv_policy *p, int sig, uint32_t who, struct sv_match *out)
{
	int to = sig;
	bool torn = false, steered = false;

	*out = (struct sv_match){ .action = SV_ALLOW, .rule = -1, .err = EPERM };
	if (sig < 1 || sig > SV_SIGNALS)
		return sig;
	for (uint32_t i = 0; i < p->nsignals; i++) {
		const struct sv_signal_rule *r = &p->signals[i];

		if (!speaks(r, sig, who))
			continue;
		note(p, out, r->rule);
		if (p->rules[r->rule].action != SV_STEER)
			continue;
		torn = torn || (steered && r->to != to);
		to = r->to;
		steered = true;
	}
	if (!out->matched)
		return sig;
	out->rule = out->rules[0];
	out->action = p->rules[out->rule].action;
	out->err = p->rules[out->rule].err;
	return torn ? SV_SIGNAL_TORN : to;
}

bool sv_match_signal_asked(const struct sv_policy *p, int sig, uint32_t who)
{
	for (uint32_t i = 0; i < p->nsignals; i++)
		if (speaks(&p->signals[i], sig, who))
			return true;
	return false;
}
