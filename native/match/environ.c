/* environ.c - keep, then drop, then set. */
#include "match/environ.h"

#include <string.h>

/* `*` and `?` and letters, matched whole; one star to come back to is enough. */
static bool matches(struct sv_str pattern, struct sv_str name)
{
	size_t at = 0, i = 0, back = SIZE_MAX, back_i = 0;

	while (i < name.n) {
		if (at < pattern.n && pattern.p[at] == '*') {
			back = ++at;
			back_i = i;
		} else if (at < pattern.n &&
			   (pattern.p[at] == '?' || pattern.p[at] == name.p[i])) {
			at++;
			i++;
		} else if (back != SIZE_MAX) {
			at = back;
			i = ++back_i;
		} else {
			return false;
		}
	}
	while (at < pattern.n && pattern.p[at] == '*')
		at++;
	return at == pattern.n;
}

static bool any(const struct sv_words *patterns, struct sv_str name)
{
	for (int i = 0; i < patterns->n; i++)
		if (matches(patterns->v[i], name))
			return true;
	return false;
}

static bool is_set(const struct sv_env *e, struct sv_str name)
{
	for (int i = 0; i < e->set.n; i += 2)
		if (e->set.v[i].n == name.n && !memcmp(e->set.v[i].p, name.p, name.n))
			return true;
	return false;
}

bool sv_environ_passes(const struct sv_env *e, struct sv_str variable)
{
	const uint8_t *end = variable.n ? memchr(variable.p, '=', variable.n) : NULL;
	struct sv_str name = { variable.p, end ? (size_t)(end - variable.p) : 0 };

	if (!end || (e->keep.n && !any(&e->keep, name)) || any(&e->drop, name))
		return false;
	return !is_set(e, name);
}
