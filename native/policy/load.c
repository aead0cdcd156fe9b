/* load.c - strings and failures of a blob that is being read. */
#include "policy/load.h"

#include "base/err.h"
#include "match/glob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "policy blob";

struct owned {
	struct owned *next;
	uint8_t bytes[];
};

int sv_load_damaged(const struct sv_load *l, const char *part)
{
	return sv_fail(l->err, EINVAL, where, "damaged or not version %d: %s, near byte %zu",
		       SV_BLOB_VERSION, part, (size_t)(l->r.p - l->start));
}

int sv_load_memory(const struct sv_load *l)
{
	return sv_fail(l->err, ENOMEM, where, "out of memory");
}

void *sv_load_array(size_t n, size_t size)
{
	return calloc(n ? n : 1, size);
}

bool sv_load_no_nul(struct sv_str s)
{
	return !s.n || !memchr(s.p, 0, s.n);
}

bool sv_load_is_tmp(struct sv_str s)
{
	return s.n && s.p[0] == SV_BLOB_TMP;
}

size_t sv_load_tmp(const struct sv_load *l, struct sv_str s, bool as_glob, uint8_t *out, size_t cap)
{
	size_t n = l->tmp.n;

	if (!n) {
		sv_fail(l->err, EINVAL, where, "the policy uses ${TMPDIR}, but there is no private folder");
		return 0;
	}
	if (s.n > 1 && s.p[1] != '/') {
		sv_load_damaged(l, "a path in the private folder");
		return 0;
	}
	if (as_glob)
		n = sv_glob_escape(l->tmp, out, cap);
	else if (n <= cap)
		memcpy(out, l->tmp.p, n);
	if (n > cap || s.n - 1 > cap - n) {
		sv_fail(l->err, E2BIG, where, "a path in the private folder is too long");
		return 0;
	}
	memcpy(out + n, s.p + 1, s.n - 1);
	return n + s.n - 1;
}

int sv_load_keep(struct sv_load *l, struct sv_str *s)
{
	uint8_t buf[SV_PATH_MAX - 1];
	struct owned *o;
	size_t n;

	if (!sv_load_no_nul(*s))
		return sv_load_damaged(l, "a NUL byte in a path or argument");
	if (!sv_load_is_tmp(*s))
		return 0;
	n = sv_load_tmp(l, *s, false, buf, sizeof(buf));
	if (!n)
		return -EINVAL;
	o = malloc(sizeof(*o) + n);
	if (!o)
		return sv_load_memory(l);
	memcpy(o->bytes, buf, n);
	o->next = l->p->owned;
	l->p->owned = o;
	s->p = o->bytes;
	s->n = n;
	return 0;
}

/* Absolute, with no empty, "." or ".." component; "/" alone is fine. */
static bool is_normal(struct sv_str s)
{
	size_t from = 1;

	if (!s.n || s.n >= SV_PATH_MAX || s.p[0] != '/')
		return false;
	for (size_t i = 1; i <= s.n && s.n > 1; i++) {
		struct sv_str name = { s.p + from, i - from };

		if (i < s.n && s.p[i] != '/')
			continue;
		if (!sv_is_name(name))
			return false;
		from = i + 1;
	}
	return true;
}

int sv_load_keep_path(struct sv_load *l, struct sv_str *s)
{
	int rc = sv_load_keep(l, s);

	if (!rc && !is_normal(*s))
		rc = sv_load_damaged(l, "a path that is not absolute and normalised");
	return rc;
}

int sv_load_words(struct sv_load *l, struct sv_str **out, int *count)
{
	struct sv_str *words;
	size_t n;

	if (!sv_mp_array(&l->r, SV_BLOB_PATHS, &n))
		return sv_load_damaged(l, "a list of arguments");
	words = sv_load_array(n, sizeof(*words));
	if (!words)
		return sv_load_memory(l);
	*out = words;
	*count = (int)n;
	for (size_t i = 0; i < n; i++)
		if (!sv_mp_bin(&l->r, SV_BLOB_MAX, &words[i]) || !sv_load_no_nul(words[i]))
			return sv_load_damaged(l, "an argument");
	return 0;
}

int sv_load_order(struct sv_str a, struct sv_str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n ? memcmp(a.p, b.p, n) : 0;

	return c ? c : (a.n > b.n) - (a.n < b.n);
}

void sv_load_free_kept(void *kept)
{
	struct owned *o = kept, *next;

	for (; o; o = next) {
		next = o->next;
		free(o);
	}
}
