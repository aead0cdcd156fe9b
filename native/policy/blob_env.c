/* blob_env.c - the part of a blob that says which environment programs get. */
#include "policy/load.h"

#include <string.h>

/* Names of variables, or with wildcards; never empty, never with a '='. */
static bool is_name_at(const struct sv_str *s)
{
	return s->n && !memchr(s->p, '=', s->n);
}

static int read_names(struct sv_load *l, struct sv_words *out)
{
	struct sv_str *words = NULL;
	int rc = sv_load_words(l, &words, &out->n);

	out->v = words;
	for (int i = 0; !rc && i < out->n; i++)
		if (!is_name_at(&words[i]))
			rc = sv_load_damaged(l, "the name of a variable");
	return rc;
}

/* Name, value, name, value. */
static int read_values(struct sv_load *l, struct sv_words *out)
{
	struct sv_str *words = NULL;
	int rc = sv_load_words(l, &words, &out->n);

	out->v = words;
	if (!rc && out->n % 2)
		rc = sv_load_damaged(l, "a variable without a value");
	for (int i = 0; !rc && i < out->n; i++)
		rc = i % 2 ? sv_load_keep(l, &words[i]) : is_name_at(&words[i]) ? 0 :
		     sv_load_damaged(l, "the name of a variable");
	return rc;
}

int sv_load_env(struct sv_load *l)
{
	struct sv_env *e = &l->p->env;
	size_t n;
	int rc;

	if (!sv_mp_array(&l->r, 3, &n) || n != 3)
		return sv_load_damaged(l, "the environment");
	rc = read_names(l, &e->keep);
	if (!rc)
		rc = read_names(l, &e->drop);
	if (!rc)
		rc = read_values(l, &e->set);
	e->rules = e->keep.n || e->drop.n || e->set.n;
	return rc;
}
