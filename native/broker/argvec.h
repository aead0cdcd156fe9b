/* argvec.h - a target's argument vector, copied once. */
#ifndef SV_BROKER_ARGVEC_H
#define SV_BROKER_ARGVEC_H

#include "decode/tracee.h"

struct sv_argvec {
	char *bytes;		/* strings, each with its NUL */
	size_t len;
	struct sv_str *v;	/* into bytes, NULs not counted */
	int argc;
};

/* addr: the char *const argv[] of execve; NULL is an empty vector, as the
 * kernel has it. -E2BIG past 2 MiB or 131072 strings, -EFAULT, -ENOMEM. Free
 * with sv_argvec_free in every case. */
int sv_argvec_read(const struct sv_tracee *t, uint64_t addr, struct sv_argvec *out);
/* Appends one string to a vector that is being built. */
int sv_argvec_add(struct sv_argvec *a, const char *s, size_t n);
/* Fills v from bytes; call after the last add. */
int sv_argvec_index(struct sv_argvec *a);
void sv_argvec_free(struct sv_argvec *a);

#endif
