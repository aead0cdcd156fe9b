/* judge.c - collects what matches; the walk has found where, this asks whether. */
#include "match/judge.h"

#include "match/argv.h"

#include <string.h>

struct sv_str sv_last_name(struct sv_str path)
{
	size_t at = path.n;
	struct sv_str out;

	while (at && path.p[at - 1] != '/')
		at--;
	out.p = path.n ? path.p + at : path.p;
	out.n = path.n - at;
	return out;
}

static int order(struct sv_str a, struct sv_str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n ? memcmp(a.p, b.p, n) : 0;

	return c ? c : (a.n > b.n) - (a.n < b.n);
}

static const struct sv_name *find(const struct sv_name *names, uint32_t n, struct sv_str path,
				  uint32_t *count)
{
	struct sv_str name = sv_last_name(path);
	uint32_t lo = 0, hi = n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (order(names[mid].name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (hi = lo; hi < n && !order(names[hi].name, name);)
		hi++;
	*count = hi - lo;
	return names + lo;
}

const struct sv_name *sv_names_of(const struct sv_policy *p, struct sv_str path, uint32_t *count)
{
	return find(p->names, p->nnames, path, count);
}

const struct sv_name *sv_starts_of(const struct sv_policy *p, struct sv_str path, uint32_t *count)
{
	return find(p->start_names, p->nstart_names, path, count);
}

/* Whether an exception of the rule is among the hits. */
static bool excepted(const struct sv_policy *p, const struct sv_walk *w, uint32_t rule)
{
	for (int i = 0; i < w->nhits; i++) {
		struct sv_entries e = sv_trie_entries(p->trie, w->hits[i]);
		const struct sv_entry *x = e.p + e.nmatch;
		uint32_t lo = 0, hi = e.nexcept;

		while (lo < hi) {
			uint32_t mid = lo + (hi - lo) / 2;

			if (x[mid].rule < rule)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo < e.nexcept && x[lo].rule == rule)
			return true;
	}
	return false;
}

static bool applies(const struct sv_question *q, const struct sv_walk *w, uint32_t index)
{
	const struct sv_rule *r = &q->p->rules[index];

	if (r->has_except && excepted(q->p, w, index))
		return false;
	if (!r->has_argv)
		return true;
	if (!q->known)
		return r->action != SV_ALLOW;
	return sv_argv_match(r->argv, r->argc, q->args, q->nargs);
}

/* Insert by key; one entry per rule, the one with the largest key. */
static void tally(struct sv_judged *j, const struct sv_entry *e)
{
	int at = 0, gap;

	while (at < j->n && j->tally[at]->key >= e->key) {
		if (j->tally[at]->rule == e->rule)
			return;
		at++;
	}
	for (gap = at; gap < j->n && j->tally[gap]->rule != e->rule;)
		gap++;
	if (gap == j->n) {
		if (j->n < SV_TALLY)
			j->n++;
		else
			gap--;
	}
	if (at >= SV_TALLY)
		return;
	memmove(&j->tally[at + 1], &j->tally[at], (size_t)(gap - at) * sizeof(j->tally[0]));
	j->tally[at] = e;
}

static void note_pin(struct sv_judged *j, const struct sv_rule *r)
{
	if (!j->pin)
		j->pin = r;
	else if (memcmp(j->pin->digest, r->digest, SV_BLOB_DIGEST) != 0)
		j->clash = true;
}

static void take(struct sv_judged *j, const struct sv_rule *rules, const struct sv_entry *e,
		 uint32_t ops)
{
	if (rules[e->rule].digest)
		note_pin(j, &rules[e->rule]);
	for (; ops; ops &= ops - 1) {
		int bit = __builtin_ctz(ops);

		if (!j->best[bit] || j->best[bit]->key < e->key)
			j->best[bit] = e;
	}
	tally(j, e);
}

static void judge_node(const struct sv_question *q, const struct sv_walk *w, uint32_t node,
		       struct sv_judged *out)
{
	struct sv_entries list = sv_trie_entries(q->p->trie, node);
	uint32_t done = 0;

	for (uint32_t i = 0; i < list.nmatch; i++) {
		const struct sv_rule *r = &q->p->rules[list.p[i].rule];
		uint32_t ops = r->ops & q->ops;

		/* Of those that say which bytes a program has, every one counts. */
		if (i >= SV_SCAN && done == q->ops && !r->digest)
			return;
		if (!ops || !applies(q, w, list.p[i].rule))
			continue;
		done |= ops;
		take(out, q->p->rules, &list.p[i], ops);
	}
}

static void judge_names(const struct sv_question *q, const struct sv_walk *w, struct sv_str path,
			struct sv_judged *out)
{
	uint32_t count;
	const struct sv_name *n = sv_names_of(q->p, path, &count);

	for (uint32_t i = 0; i < count; i++)
		if (applies(q, w, n[i].entry.rule))
			take(out, q->p->rules, &n[i].entry, SV_OP_EXEC);
}

bool sv_judge(const struct sv_question *q, struct sv_walk *w, struct sv_judged *out)
{
	memset(out->best, 0, sizeof(out->best));
	out->n = 0;
	out->pin = NULL;
	out->clash = false;
	if (!sv_trie_walk(q->p->trie, q->path, w))
		return false;
	for (int i = 0; i < w->nhits; i++)
		judge_node(q, w, w->hits[i], out);
	if ((q->ops & SV_OP_EXEC) && q->p->nnames) {
		judge_names(q, w, q->path, out);
		if (q->name.n)
			judge_names(q, w, q->name, out);
	}
	return true;
}

enum sv_action sv_judged_action(const struct sv_policy *p, const struct sv_judged *j, int bit)
{
	if (!j->best[bit] || (1u << bit == SV_OP_EXEC && j->clash))
		return !j->best[bit] && p->open ? SV_ALLOW : SV_DENY;
	return p->rules[j->best[bit]->rule].action;
}
