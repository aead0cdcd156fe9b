/* xattr.h - the arguments of setxattr(2) and its like.
 *
 * Checked in the order of fs/xattr.c since Linux 6.13: flags, name, size and
 * value come before the path. */
#ifndef SV_DECODE_XATTR_H
#define SV_DECODE_XATTR_H

#include "decode/tracee.h"

enum { SV_ATTR_NAME = 256 };	/* XATTR_NAME_MAX and its NUL */

struct sv_attr {
	char name[SV_ATTR_NAME];
	void *value;		/* owned; NULL where size is 0 */
	size_t size;
	int flags;		/* XATTR_CREATE or XATTR_REPLACE */
	bool set;		/* a value was given: not a removal */
};

/* Nothing owned yet. */
void sv_attr_init(struct sv_attr *a);
void sv_attr_free(struct sv_attr *a);
/* removexattr and its like: the name alone. at_flags: AT_*, which come first. */
int sv_read_attr_name(const struct sv_tracee *t, uint64_t at_flags, uint64_t name,
		      struct sv_attr *out);
/* Name, value, size, flags in registers. out->value is to be freed, also after
 * an error. -EINVAL, -ERANGE, -E2BIG, -EFAULT, -ENOMEM as the kernel. */
int sv_read_attr(const struct sv_tracee *t, const uint64_t args[4], struct sv_attr *out);
/* setxattrat: name, struct xattr_args, its size. */
int sv_read_attr_args(const struct sv_tracee *t, uint64_t at_flags, const uint64_t args[3],
		      struct sv_attr *out);
/* getxattrat: the same; where the value goes, and its room. */
int sv_read_attr_get(const struct sv_tracee *t, uint64_t at_flags, const uint64_t args[3],
		     struct sv_attr *out, uint64_t *buf, uint64_t *room);

#endif
