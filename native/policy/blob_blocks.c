/* blob_blocks.c - the blocks of a policy: each a matcher of its own over the policy's
 * list of rules, and the programs that they are for. */
#include "policy/load.h"

#include <errno.h>
#include <stdlib.h>

/* Programs of all blocks together, while they are read. */
struct starts {
	struct sv_name *names;
	uint32_t n;
};

/* nil = what no rule speaks of is allowed; else the rule that denies it. */
static int read_default(struct sv_load *l)
{
	const struct sv_rule *r;
	uint64_t rule;

	l->p->open = sv_mp_nil(&l->r);
	if (l->p->open)
		return 0;
	if (!sv_mp_uint(&l->r, UINT32_MAX, &rule) || rule >= l->p->nrules)
		return sv_load_damaged(l, "the default of a block");
	r = &l->p->rules[rule];
	if (r->block != l->block || r->action != SV_DENY || r->kind != SV_RULE_FILES)
		return sv_load_damaged(l, "the default of a block");
	l->p->fallback = (int)rule;
	return 0;
}

static struct sv_entry entry_of(const struct sv_load *l)
{
	return (struct sv_entry){ .key = l->block, .rule = l->block - 1u };
}

static int read_start_paths(struct sv_load *l, struct sv_trie *to)
{
	struct sv_entry e = entry_of(l);
	uint8_t buf[SV_PATTERN_MAX];
	struct sv_pattern shape;
	struct sv_str text;
	size_t n;
	int rc = 0;

	if (!sv_mp_array(&l->r, SV_BLOB_PATHS, &n))
		return sv_load_damaged(l, "the programs of a block");
	for (size_t i = 0; !rc && i < n; i++) {
		rc = sv_load_pattern(l, &text, buf, sizeof(buf));
		if (!rc)
			rc = sv_pattern_scan(text, &shape, l->err);
		if (!rc)
			rc = sv_trie_add(to, text, &e, l->err);
	}
	return rc;
}

static int read_start_names(struct sv_load *l, struct starts *s)
{
	struct sv_name *more;
	size_t n;

	if (!sv_mp_array(&l->r, SV_BLOB_PATHS, &n))
		return sv_load_damaged(l, "the programs of a block");
	more = realloc(s->names, (s->n + n + 1) * sizeof(*more));
	if (!more)
		return sv_load_memory(l);
	s->names = more;
	for (size_t i = 0; i < n; i++) {
		struct sv_name *to = &s->names[s->n];

		to->entry = entry_of(l);
		if (!sv_mp_bin(&l->r, SV_BLOB_PATTERN, &to->name) || !sv_load_is_program(to->name))
			return sv_load_damaged(l, "the name of a program");
		s->n++;
	}
	return 0;
}

static int read_block(struct sv_load *l, struct sv_trie *starts, struct starts *names)
{
	size_t fields;
	int rc;

	if (!sv_mp_array(&l->r, 7, &fields) || fields != 7)
		return sv_load_damaged(l, "a block");
	rc = read_default(l);
	if (!rc)
		rc = sv_load_paths(l);
	if (!rc)
		rc = sv_load_names(l);
	if (!rc)
		rc = sv_load_argvs(l);
	if (!rc)
		rc = read_start_paths(l, starts);
	if (!rc)
		rc = read_start_names(l, names);
	return rc ? rc : sv_load_network(l);
}

static int read_blocks(struct sv_load *l, struct sv_policy *p, struct starts *names)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < p->nblocks; i++) {
		struct sv_policy *b = &p->blocks[i];

		b->rules = p->rules;
		b->nrules = p->nrules;
		b->by_rank = p->by_rank;
		b->fallback = -1;
		l->p = b;
		l->block = (uint8_t)(i + 1);
		rc = read_block(l, p->starts, names);
	}
	l->p = p;
	l->block = 0;
	return rc;
}

/* A rule of a block that there is none of would be a rule that nothing asks. */
static int check_rules(const struct sv_load *l)
{
	for (uint32_t i = 0; i < l->p->nrules; i++)
		if (l->p->rules[i].block > l->p->nblocks)
			return sv_load_damaged(l, "a rule of a block that is not there");
	return 0;
}

int sv_load_blocks(struct sv_load *l)
{
	struct sv_policy *p = l->p;
	struct starts names = { NULL, 0 };
	size_t n;
	int rc;

	if (!sv_mp_array(&l->r, SV_BLOCKS, &n))
		return sv_load_damaged(l, "the blocks");
	if (!n)
		return check_rules(l);
	p->blocks = sv_load_array(n, sizeof(*p->blocks));
	p->starts = sv_trie_new((uint64_t)(uintptr_t)p->blocks);
	if (!p->blocks || !p->starts)
		return sv_load_memory(l);
	p->nblocks = (uint32_t)n;
	rc = read_blocks(l, p, &names);
	p->start_names = names.names;
	p->nstart_names = names.n;
	if (!rc)
		rc = check_rules(l);
	if (rc)
		return rc;
	sv_load_sort_names(names.names, names.n);
	return sv_trie_seal(p->starts, l->err);
}

void sv_load_free_blocks(struct sv_policy *p)
{
	for (uint32_t i = 0; i < p->nblocks; i++) {
		sv_trie_free(p->blocks[i].trie);
		free(p->blocks[i].names);
		sv_load_free_network(&p->blocks[i].net);
	}
	free(p->blocks);
	sv_trie_free(p->starts);
	free(p->start_names);
}
