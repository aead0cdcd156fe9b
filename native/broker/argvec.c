/* argvec.c - reads and builds argument vectors of any length the kernel takes. */
#include "broker/argvec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 2 << 20, STRINGS_MAX = 131072, BATCH = 64, STRING_MAX = 131072 };

static int grow(struct sv_argvec *a, size_t more)
{
	size_t cap = 256;
	char *bytes;

	if (a->len + more > BYTES_MAX)
		return -E2BIG;
	while (cap < a->len + more)
		cap *= 2;
	bytes = realloc(a->bytes, cap);
	if (!bytes)
		return -ENOMEM;
	a->bytes = bytes;
	return 0;
}

int sv_argvec_add(struct sv_argvec *a, const char *s, size_t n)
{
	int rc = grow(a, n + 1);

	if (rc < 0)
		return rc;
	memcpy(a->bytes + a->len, s, n);
	a->bytes[a->len + n] = 0;
	a->len += n + 1;
	a->argc++;
	return 0;
}

/* One string, whatever its length up to the kernel's MAX_ARG_STRLEN. */
static int add_remote(const struct sv_tracee *t, uint64_t addr, struct sv_argvec *a)
{
	char small[512], *big;
	int n = sv_read_str(t, addr, small, sizeof(small)), rc;

	if (n >= 0)
		return sv_argvec_add(a, small, (size_t)n);
	if (n != -ENAMETOOLONG)
		return n;
	big = malloc(STRING_MAX);
	if (!big)
		return -ENOMEM;
	n = sv_read_str(t, addr, big, STRING_MAX);
	rc = n < 0 ? (n == -ENAMETOOLONG ? -E2BIG : n) : sv_argvec_add(a, big, (size_t)n);
	free(big);
	return rc;
}

static int read_all(const struct sv_tracee *t, uint64_t addr, struct sv_argvec *a)
{
	uint64_t batch[BATCH];

	for (;;) {
		/* up to the next page: the vector may end before an unmapped one */
		size_t left = (4096 - (size_t)(addr & 4095)) / sizeof(batch[0]), i;
		int rc;

		if (left == 0)
			left = 1;
		if (left > BATCH)
			left = BATCH;
		rc = sv_read_mem(t, addr, batch, left * sizeof(batch[0]));
		if (rc < 0)
			return rc;
		for (i = 0; i < left; i++) {
			if (!batch[i])
				return 0;
			if (a->argc >= STRINGS_MAX)
				return -E2BIG;
			rc = add_remote(t, batch[i], a);
			if (rc < 0)
				return rc;
		}
		addr += left * sizeof(batch[0]);
	}
}

int sv_argvec_index(struct sv_argvec *a)
{
	size_t at = 0;
	int i;

	free(a->v);
	a->v = calloc((size_t)a->argc + 1, sizeof(*a->v));
	if (!a->v)
		return -ENOMEM;
	for (i = 0; i < a->argc; i++) {
		a->v[i].p = (const uint8_t *)a->bytes + at;
		a->v[i].n = strlen(a->bytes + at);
		at += a->v[i].n + 1;
	}
	return 0;
}

int sv_argvec_read(const struct sv_tracee *t, uint64_t addr, struct sv_argvec *out)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = addr ? read_all(t, addr, out) : 0;
	return rc < 0 ? rc : sv_argvec_index(out);
}

void sv_argvec_free(struct sv_argvec *a)
{
	free(a->bytes);
	free(a->v);
	memset(a, 0, sizeof(*a));
}
