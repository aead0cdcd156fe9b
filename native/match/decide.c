/* decide.c - from the best entries to one verdict, and verdicts about whole subtrees. */
#include "match/decide.h"

#include "base/err.h"
#include "match/judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t default_key = (uint64_t)SV_DENY << 62;

static void deny_by_default(struct sv_match *out)
{
	memset(out, 0, sizeof(*out));
	out->action = SV_DENY;
	out->rule = -1;
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

		open |= !e;
		if (e && (!win || e->key > key)) {
			win = e;
			key = e->key;
		}
	}
	deny_by_default(out);
	out->matched = j->n;
	for (int i = 0; i < j->n && i < 16; i++)
		out->rules[i] = (int)j->tally[i]->rule;
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

static void answer(const struct sv_question *q, struct sv_match *out)
{
	struct sv_judged j;
	struct sv_walk w;

	if (!q->ops || q->ops & ~(uint32_t)SV_OPS_ALL || !sv_judge(q, &w, &j))
		deny_by_default(out);
	else
		fill(q, &j, out);
}

void sv_match_path(const struct sv_policy *p, struct sv_str path, uint32_t ops, struct sv_match *out)
{
	struct sv_question q = { .p = p, .path = path, .ops = ops };

	answer(&q, out);
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

	answer(&q, out);
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

	/* A failed walk leaves no best entries: deny for everything. */
	sv_judge(&q, &w, &a);
	q.path = to;
	sv_judge(&q, &w, &b);
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
static void keep_stays(const struct sv_policy *p, struct sv_walk *w)
{
	int n = 0;

	for (int i = 0; i < w->nhits; i++)
		if (sv_trie_stays(p->trie, w->hits[i]))
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

bool sv_match_same_future(const struct sv_policy *p, struct sv_str a, struct sv_str b)
{
	const struct sv_entry *best_a[SV_OPS], *best_b[SV_OPS];
	struct sv_walk wa, wb;

	if (!sv_trie_walk(p->trie, a, &wa) || !sv_trie_walk(p->trie, b, &wb))
		return false;
	if (!same_set(wa.set[wa.now], wa.nset, wb.set[wb.now], wb.nset) ||
	    !same_set(wa.stars, wa.nstars, wb.stars, wb.nstars))
		return false;
	keep_stays(p, &wa);
	keep_stays(p, &wb);
	if (same_set(wa.hits, wa.nhits, wb.hits, wb.nhits))
		return true;
	if (!plain_best(p, &wa, &wb, best_a) || !plain_best(p, &wb, &wa, best_b))
		return false;
	for (int bit = 0; bit < SV_OPS; bit++)
		if (!alike(p, best_a[bit], best_b[bit]))
			return false;
	return true;
}

/* argv as one string with NULs between; the caller frees. */
static struct sv_str *split_argv(const uint8_t *argv, size_t len, int *argc)
{
	struct sv_str *out;
	size_t count = 1;

	for (size_t i = 0; i < len; i++)
		count += !argv[i];
	out = calloc(count, sizeof(*out));
	if (!out)
		return NULL;
	*argc = (int)count;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *nul = len ? memchr(argv, 0, len) : NULL;

		out[i].p = argv;
		out[i].n = nul ? (size_t)(nul - argv) : len;
		len -= nul ? out[i].n + 1 : len;
		argv += nul ? out[i].n + 1 : 0;
	}
	return out;
}

static void to_verdict(const struct sv_match *m, struct sv_verdict *out)
{
	memset(out, 0, sizeof(*out));
	out->action = (int32_t)m->action;
	out->rule = m->rule;
	out->err = m->err;
	out->matched = m->matched;
	for (int i = 0; i < m->matched && i < 16; i++)
		out->rules[i] = m->rules[i];
}

int sv_decide(const uint8_t *blob, size_t len, const char *tmp, uint32_t op,
	      const uint8_t *path, size_t path_len, const uint8_t *name, size_t name_len,
	      const uint8_t *argv, size_t argv_len, struct sv_verdict *out, struct sv_err *err)
{
	struct sv_question q = { .path = { path, path_len }, .name = { name, name_len }, .ops = op };
	struct sv_str *words = NULL;
	struct sv_match m;
	struct sv_policy *p;
	int argc = 0;

	if (!op || op & ~(uint32_t)SV_OPS_ALL || argv_len > INT32_MAX)
		return sv_fail(err, EINVAL, "decide", "no such operation or too many arguments");
	if (argv) {
		words = split_argv(argv, argv_len, &argc);
		if (!words)
			return sv_fail(err, ENOMEM, "decide", "out of memory");
	}
	p = sv_policy_load(blob, len, tmp, err);
	if (!p) {
		free(words);
		return err && err->code ? -err->code : -EINVAL;
	}
	q.p = p;
	q.known = argv != NULL;
	q.args = argc > 1 ? words + 1 : NULL;
	q.nargs = argc > 1 ? argc - 1 : 0;
	answer(&q, &m);
	to_verdict(&m, out);
	sv_policy_free(p);
	free(words);
	return 0;
}
