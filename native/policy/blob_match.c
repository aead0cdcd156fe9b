/* blob_match.c - the parts of a blob that say what a rule matches, and the floor. */
#include "policy/load.h"

#include "match/argv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sv_rule *sv_load_of_rule(struct sv_load *l, size_t fields)
{
	uint64_t rule;
	size_t n;

	if (!sv_mp_array(&l->r, fields, &n) || n != fields ||
	    !sv_mp_uint(&l->r, UINT32_MAX, &rule) || rule >= l->p->nrules ||
	    l->p->rules[rule].block != l->block)
		return NULL;
	return &l->p->rules[rule];
}

struct sv_entry sv_load_entry(const struct sv_load *l, const struct sv_rule *r, size_t literal)
{
	struct sv_entry e = { 0, (uint32_t)(r - l->p->rules), 0, 0 };

	/* An allow that names bytes is stricter than one that does not. */
	e.key = (uint64_t)r->action << 62 | (uint64_t)(r->digest != NULL) << 61 |
		(uint64_t)literal << 32 | (UINT32_MAX - r->rank);
	return e;
}

int sv_load_pattern(struct sv_load *l, struct sv_str *text, uint8_t *buf, size_t cap)
{
	if (!sv_mp_bin(&l->r, SV_BLOB_PATTERN, text))
		return sv_load_damaged(l, "a path pattern");
	if (!sv_load_is_tmp(*text))
		return 0;
	text->n = sv_load_tmp(l, *text, true, buf, cap);
	text->p = buf;
	return text->n ? 0 : -EINVAL;
}

static int read_path(struct sv_load *l)
{
	struct sv_rule *r = sv_load_of_rule(l, 3);
	uint8_t buf[SV_PATTERN_MAX];
	struct sv_pattern shape;
	struct sv_entry e;
	struct sv_str text;
	uint64_t except;
	int rc;

	if (!r || (r->kind != SV_RULE_FILES && r->kind != SV_RULE_EXEC) ||
	    !sv_mp_uint(&l->r, 1, &except))
		return sv_load_damaged(l, "a path pattern");
	rc = sv_load_pattern(l, &text, buf, sizeof(buf));
	if (rc < 0)
		return rc;
	rc = sv_pattern_scan(text, &shape, l->err);
	if (rc < 0)
		return rc;
	e = sv_load_entry(l, r, shape.literal);
	e.except = (uint16_t)except;
	if (r->dest_kind == SV_DEST_TREE)
		e.prefix = (uint16_t)shape.folder;
	r->has_except |= except != 0;
	return sv_trie_add(l->p->trie, text, &e, l->err);
}

int sv_load_paths(struct sv_load *l)
{
	/* Where memory lies is all the chance there is without a system call. */
	uint64_t seed = (uint64_t)(uintptr_t)l->p ^ (uint64_t)(uintptr_t)l->p->blob << 20;
	size_t n;
	int rc = 0;

	l->p->trie = sv_trie_new(seed);
	if (!l->p->trie)
		return sv_load_memory(l);
	if (!sv_mp_array(&l->r, SV_BLOB_PATHS, &n))
		return sv_load_damaged(l, "the path patterns");
	for (size_t i = 0; !rc && i < n; i++)
		rc = read_path(l);
	return rc ? rc : sv_trie_seal(l->p->trie, l->err);
}

static int by_name(const void *va, const void *vb)
{
	const struct sv_name *a = va, *b = vb;
	int c = sv_load_order(a->name, b->name);

	return c ? c : (a->entry.key < b->entry.key) - (a->entry.key > b->entry.key);
}

void sv_load_sort_names(struct sv_name *names, uint32_t n)
{
	qsort(names, n, sizeof(*names), by_name);
}

bool sv_load_is_program(struct sv_str s)
{
	return s.n && sv_load_no_nul(s) && !memchr(s.p, '/', s.n);
}

int sv_load_names(struct sv_load *l)
{
	struct sv_policy *p = l->p;
	size_t n;

	if (!sv_mp_array(&l->r, SV_BLOB_PATHS, &n))
		return sv_load_damaged(l, "the program names");
	p->names = sv_load_array(n, sizeof(*p->names));
	if (!p->names)
		return sv_load_memory(l);
	p->nnames = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		struct sv_rule *r = sv_load_of_rule(l, 2);
		struct sv_str *s = &p->names[i].name;

		if (!r || r->kind != SV_RULE_EXEC || !sv_mp_bin(&l->r, SV_BLOB_PATTERN, s) ||
		    !sv_load_is_program(*s))
			return sv_load_damaged(l, "a program name");
		p->names[i].entry = sv_load_entry(l, r, 0);
	}
	sv_load_sort_names(p->names, p->nnames);
	return 0;
}

static int read_argv(struct sv_load *l)
{
	struct sv_rule *r = sv_load_of_rule(l, 3);
	struct sv_str *words = NULL;
	uint64_t append;
	int rc;

	if (!r || r->kind != SV_RULE_EXEC || r->argv_read || !sv_mp_uint(&l->r, 1, &append))
		return sv_load_damaged(l, "an argument rule");
	r->argv_read = true;
	r->append = append != 0;
	if (sv_mp_nil(&l->r))
		return 0;
	if (r->digest)
		return sv_load_damaged(l, "a digest for some arguments only");
	rc = sv_load_words(l, &words, &r->argc);
	r->argv = words;
	if (!rc && !sv_argv_check(r->argv, r->argc))
		rc = sv_load_damaged(l, "an argument pattern");
	r->has_argv = true;
	return rc;
}

int sv_load_argvs(struct sv_load *l)
{
	size_t n;
	int rc = 0;

	if (!sv_mp_array(&l->r, SV_BLOB_RULES, &n))
		return sv_load_damaged(l, "the argument rules");
	for (size_t i = 0; !rc && i < n; i++)
		rc = read_argv(l);
	return rc;
}

int sv_load_floor(struct sv_load *l)
{
	struct sv_policy *p = l->p;
	size_t n, fields;
	uint64_t rights;
	int rc = 0;

	if (!sv_mp_array(&l->r, SV_BLOB_PATHS, &n))
		return sv_load_damaged(l, "the floor");
	p->floor = sv_load_array(n, sizeof(*p->floor));
	if (!p->floor)
		return sv_load_memory(l);
	p->nfloor = (uint32_t)n;
	for (size_t i = 0; !rc && i < n; i++) {
		if (!sv_mp_array(&l->r, 2, &fields) || fields != 2 ||
		    !sv_mp_bin(&l->r, SV_BLOB_PATTERN, &p->floor[i].path) ||
		    !sv_mp_uint(&l->r, 1, &rights) || !rights)
			return sv_load_damaged(l, "a floor path");
		p->floor[i].rights = (uint32_t)rights;
		rc = sv_load_keep_path(l, &p->floor[i].path);
	}
	return rc;
}
