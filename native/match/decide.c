/* decide.c - from the best entries to one verdict, and verdicts about whole subtrees. */
#include "match/decide.h"

#include "match/judge.h"

#include <errno.h>
#include <string.h>

static const uint64_t default_key = (uint64_t)SV_DENY << 62;

static void deny_by_default(const struct sv_policy *p, struct sv_match *out)
{
	memset(out, 0, sizeof(*out));
	out->action = SV_DENY;
	out->rule = p->fallback;
	out->err = EACCES;
}

/* The strictest of the operations asked; a rule's own deny before the default. */
static void fill(const struct sv_question *q, const struct sv_judged *j, struct sv_match *out)
{
	const struct sv_entry *win = NULL;
	const struct sv_rule *r;
	uint64_t key = 0;
	bool open = false;	/* an operation that no rule speaks about */

	for (uint32_t ops = q->ops; ops; ops &= ops - 1) {
		const struct sv_entry *e = j->best[__builtin_ctz(ops)];

		open |= !e && !q->p->open;
		if (e && (!win || e->key > key)) {
			win = e;
			key = e->key;
		}
	}
	deny_by_default(q->p, out);
	out->matched = j->n;
	for (int i = 0; i < j->n && i < 16; i++)
		out->rules[i] = (int)j->tally[i]->rule;
	if (!win && q->p->open) {
		out->action = SV_ALLOW;
		out->rule = -1;
	}
	if (!win || (open && key < default_key))
		return;
	r = &q->p->rules[win->rule];
	out->pin = j->pin ? (int)(j->pin - q->p->rules) + 1 : 0;
	if (j->clash && r->action == SV_ALLOW) {
		out->rule = out->pin - 1;
		return;
	}
	out->action = r->action;
	out->rule = (int)win->rule;
	out->err = r->err;
	out->prefix = r->action == SV_STEER ? win->prefix : 0;
}

void sv_answer(const struct sv_question *q, struct sv_match *out)
{
	struct sv_judged j;
	struct sv_walk w;

	if (!q->ops || q->ops & ~(uint32_t)SV_OPS_ALL || !sv_judge(q, &w, &j))
		deny_by_default(q->p, out);
	else
		fill(q, &j, out);
}

void sv_match_path(const struct sv_policy *p, struct sv_str path, uint32_t ops, struct sv_match *out)
{
	struct sv_question q = { .p = p, .path = path, .ops = ops };

	sv_answer(&q, out);
}

bool sv_match_hides(const struct sv_policy *p, const struct sv_match *m)
{
	return m->rule >= 0 && p->rules[m->rule].hides;
}

void sv_match_exec(const struct sv_policy *p, struct sv_str path, struct sv_str name,
		   const struct sv_str *argv, int argc, bool argv_known, struct sv_match *out)
{
	struct sv_question q = {
		.p = p, .path = path, .name = name, .ops = SV_OP_EXEC, .known = argv_known,
		.args = argc > 1 ? argv + 1 : NULL, .nargs = argc > 1 ? argc - 1 : 0,
	};

	sv_answer(&q, out);
}

static bool names_need_argv(const struct sv_policy *p, struct sv_str path)
{
	uint32_t count;
	const struct sv_name *n = sv_names_of(p, path, &count);

	for (uint32_t i = 0; i < count; i++)
		if (p->rules[n[i].entry.rule].has_argv)
			return true;
	return false;
}

bool sv_match_needs_argv(const struct sv_policy *p, struct sv_str path, struct sv_str name)
{
	struct sv_walk w;

	if (names_need_argv(p, path) || names_need_argv(p, name))
		return true;
	if (!sv_trie_walk(p->trie, path, &w))
		return false;
	for (int i = 0; i < w.nhits; i++) {
		struct sv_entries e = sv_trie_entries(p->trie, w.hits[i]);

		for (uint32_t k = 0; k < e.nmatch; k++)
			if (p->rules[e.p[k].rule].has_argv)
				return true;
	}
	return false;
}

/* Whether bytes that may not run under the first name may under the second. */
static bool pin_lost(const struct sv_policy *p, const struct sv_judged *from,
		     const struct sv_judged *to)
{
	if (!from->pin || sv_judged_action(p, to, __builtin_ctz(SV_OP_EXEC)) != SV_ALLOW)
		return false;
	return !to->pin || memcmp(from->pin->digest, to->pin->digest, SV_BLOB_DIGEST) != 0;
}

bool sv_match_looser(const struct sv_policy *p, struct sv_str from, struct sv_str to)
{
	struct sv_question q = { .p = p, .path = from, .ops = SV_OPS_ALL };
	struct sv_judged a, b;
	struct sv_walk w;

	/* A failed walk leaves no best entries, and says nothing. */
	if (!sv_judge(&q, &w, &a) && p->open)
		return true;
	q.path = to;
	if (!sv_judge(&q, &w, &b) && p->open)
		return true;
	for (int bit = 0; bit < SV_OPS; bit++)
		if (sv_judged_action(p, &b, bit) < sv_judged_action(p, &a, bit))
			return true;
	return pin_lost(p, &a, &b);
}

static bool holds(const uint32_t *list, int n, uint32_t node)
{
	for (int i = 0; i < n; i++)
		if (list[i] == node)
			return true;
	return false;
}

/* Both lists hold every node once. */
static bool same_set(const uint32_t *a, int na, const uint32_t *b, int nb)
{
	if (na != nb)
		return false;
	for (int i = 0; i < na; i++)
		if (!holds(b, nb, a[i]))
			return false;
	return true;
}

/* Keep of the hits those that stand for all paths below. */
static void keep_stays(const struct sv_trie *t, struct sv_walk *w)
{
	int n = 0;

	for (int i = 0; i < w->nhits; i++)
		if (sv_trie_stays(t, w->hits[i]))
			w->hits[n++] = w->hits[i];
	w->nhits = n;
}

/* The best entries of one side's hits, leaving out rules with exceptions or argv
 * patterns or digests; false when such a rule, or an exception, stands on this side only. */
static bool plain_best(const struct sv_policy *p, const struct sv_walk *w,
		       const struct sv_walk *other, const struct sv_entry *best[SV_OPS])
{
	memset(best, 0, SV_OPS * sizeof(best[0]));
	for (int i = 0; i < w->nhits; i++) {
		struct sv_entries e = sv_trie_entries(p->trie, w->hits[i]);
		bool both = holds(other->hits, other->nhits, w->hits[i]);

		if (e.nexcept && !both)
			return false;
		for (uint32_t m = 0; m < e.nmatch; m++) {
			const struct sv_rule *r = &p->rules[e.p[m].rule];
			bool plain = !r->has_except && !r->has_argv && !r->digest;

			if (!plain && !both)
				return false;
			for (int bit = 0; plain && bit < SV_OPS; bit++)
				if ((r->ops >> bit & 1) && (!best[bit] || best[bit]->key < e.p[m].key))
					best[bit] = &e.p[m];
		}
	}
	return true;
}

/* Two entries that decide alike whatever else matches further down. */
static bool alike(const struct sv_policy *p, const struct sv_entry *a, const struct sv_entry *b)
{
	if (!a || !b)
		return a == b;
	if (p->rules[a->rule].action == SV_ALLOW)
		return p->rules[b->rule].action == SV_ALLOW;
	return a->rule == b->rule && a->key == b->key && a->prefix == b->prefix;
}

/* Whether both walks could go on in the same ways; keeps of their hits what stays. */
static bool same_walks(const struct sv_trie *t, struct sv_str a, struct sv_str b,
		       struct sv_walk *wa, struct sv_walk *wb)
{
	if (!sv_trie_walk(t, a, wa) || !sv_trie_walk(t, b, wb))
		return false;
	keep_stays(t, wa);
	keep_stays(t, wb);
	return same_set(wa->set[wa->now], wa->nset, wb->set[wb->now], wb->nset) &&
	       same_set(wa->stars, wa->nstars, wb->stars, wb->nstars);
}

bool sv_trie_same_below(const struct sv_trie *t, struct sv_str a, struct sv_str b)
{
	struct sv_walk wa, wb;

	return same_walks(t, a, b, &wa, &wb) && same_set(wa.hits, wa.nhits, wb.hits, wb.nhits);
}

bool sv_match_same_future(const struct sv_policy *p, struct sv_str a, struct sv_str b)
{
	const struct sv_entry *best_a[SV_OPS], *best_b[SV_OPS];
	struct sv_walk wa, wb;

	if (!same_walks(p->trie, a, b, &wa, &wb))
		return false;
	if (same_set(wa.hits, wa.nhits, wb.hits, wb.nhits))
		return true;
	if (!plain_best(p, &wa, &wb, best_a) || !plain_best(p, &wb, &wa, best_b))
		return false;
	for (int bit = 0; bit < SV_OPS; bit++)
		if (!alike(p, best_a[bit], best_b[bit]))
			return false;
	return true;
}
