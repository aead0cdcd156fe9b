/* openhow.h - open flags as the kernel reads them.
 *
 * openat2(2) passes its flags in memory, open(2) and openat(2) in registers
 * with unknown bits ignored; both end as one struct whose checks are those of
 * the kernel's build_open_flags() (fs/open.c). */
#ifndef SV_DECODE_OPENHOW_H
#define SV_DECODE_OPENHOW_H

#include "decode/tracee.h"

struct sv_open_how {
	uint64_t flags;
	uint64_t mode;
	uint64_t resolve;
};

/* Copies struct open_how of the caller's size: -EINVAL too small, -E2BIG with
 * non-zero bytes that this version does not know, -EFAULT. */
int sv_read_open_how(const struct sv_tracee *t, uint64_t addr, uint64_t size,
		     struct sv_open_how *out);
/* strict = openat2. Clears what open(2) ignores; -EINVAL as the kernel. */
int sv_check_open_how(struct sv_open_how *how, bool strict);
/* The operations of the policy language that opening an existing object asks
 * for, less LIST which depends on what it turns out to be. */
uint32_t sv_open_ops(uint64_t flags);

#endif
