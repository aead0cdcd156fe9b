/* blob_signal.c - what signal rules speak of. */
#include "policy/load.h"

static int read_one(struct sv_load *l, struct sv_signal_rule *s)
{
	const struct sv_rule *r = sv_load_of_rule(l, 4);
	uint64_t who, to;

	if (!r || r->kind != SV_RULE_SIGNAL || !sv_mp_uint(&l->r, UINT64_MAX, &s->signals) ||
	    !s->signals || !sv_mp_uint(&l->r, SV_WHO_TREE, &who) || !who ||
	    !sv_mp_uint(&l->r, 64, &to) || (to && r->action != SV_STEER))
		return sv_load_damaged(l, "a signal rule");
	s->rule = (uint32_t)(r - l->p->rules);
	s->who = (uint32_t)who;
	s->to = (int)to;
	return 0;
}

int sv_load_signals(struct sv_load *l)
{
	struct sv_policy *p = l->p;
	size_t n;
	int rc = 0;

	if (!sv_mp_array(&l->r, SV_BLOB_SIGNALS, &n))
		return sv_load_damaged(l, "the signal rules");
	p->signals = sv_load_array(n, sizeof(*p->signals));
	if (!p->signals)
		return sv_load_memory(l);
	for (size_t i = 0; !rc && i < n; i++)
		rc = read_one(l, &p->signals[i]);
	p->nsignals = (uint32_t)n;
	return rc;
}
