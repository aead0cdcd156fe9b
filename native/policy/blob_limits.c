/* blob_limits.c - the part of a blob that says how much of everything a run may use. */
#include "policy/load.h"

static const uint64_t largest = 1ULL << 62;

/* A number, or nil for none. */
static bool read_value(struct sv_load *l, uint64_t *out)
{
	*out = UINT64_MAX;
	return sv_mp_nil(&l->r) || sv_mp_uint(&l->r, largest, out);
}

int sv_load_limits(struct sv_load *l)
{
	struct sv_limit *limits = l->p->limits;
	size_t n, fields;

	for (int k = 0; k < SV_LIMITS; k++)
		limits[k] = (struct sv_limit){ .hard = UINT64_MAX, .soft = UINT64_MAX, .rule = -1 };
	if (!sv_mp_array(&l->r, SV_LIMITS, &n))
		return sv_load_damaged(l, "the limits");
	for (size_t i = 0; i < n; i++) {
		uint64_t kind, halt, rule;
		struct sv_limit *m;

		if (!sv_mp_array(&l->r, 5, &fields) || fields != 5 ||
		    !sv_mp_uint(&l->r, SV_LIMITS - 1, &kind))
			return sv_load_damaged(l, "a limit");
		m = &limits[kind];
		if (m->rule >= 0 || !read_value(l, &m->hard) || !read_value(l, &m->soft) ||
		    !sv_mp_uint(&l->r, 1, &halt) || !sv_mp_uint(&l->r, SV_BLOB_RULES, &rule) ||
		    rule >= l->p->nrules)
			return sv_load_damaged(l, "a limit");
		m->halt = halt;
		m->rule = (int)rule;
	}
	return 0;
}

bool sv_policy_limits_kernel(const struct sv_policy *p)
{
	const struct sv_limit *l = p->limits;

	return (l[SV_LIMIT_OPEN_FILES].hard & l[SV_LIMIT_FILE_SIZE].hard & l[SV_LIMIT_CPU].hard) !=
	       UINT64_MAX;
}
