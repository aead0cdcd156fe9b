/* xattr.c - names and values of extended attributes, read once. */
#include "decode/xattr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <sys/xattr.h>

/* As the kernel's struct xattr_args, which older headers lack. */
struct attr_args {
	uint64_t value;
	uint32_t size;
	uint32_t flags;
};

void sv_attr_init(struct sv_attr *a)
{
	a->name[0] = 0;
	a->value = NULL;
	a->size = 0;
	a->flags = 0;
	a->set = false;
}

void sv_attr_free(struct sv_attr *a)
{
	free(a->value);
	a->value = NULL;
}

static int read_name(const struct sv_tracee *t, uint64_t addr, struct sv_attr *out)
{
	int n = sv_read_str(t, addr, out->name, sizeof(out->name));

	if (n == 0 || n == -ENAMETOOLONG)
		return -ERANGE;
	return n < 0 ? n : 0;
}

static int check_at_flags(uint64_t flags)
{
	return flags & ~(uint64_t)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) ? -EINVAL : 0;
}

int sv_read_attr_name(const struct sv_tracee *t, uint64_t at_flags, uint64_t name,
		      struct sv_attr *out)
{
	const int rc = check_at_flags(at_flags);

	return rc < 0 ? rc : read_name(t, name, out);
}

int sv_read_attr(const struct sv_tracee *t, const uint64_t args[4], struct sv_attr *out)
{
	const uint64_t size = args[2];
	int rc;

	out->set = true;
	out->flags = (int)(uint32_t)args[3];
	if (out->flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	rc = read_name(t, args[0], out);
	if (rc < 0)
		return rc;
	if (size > XATTR_SIZE_MAX)
		return -E2BIG;
	if (size == 0)
		return 0;
	out->size = (size_t)size;
	out->value = malloc(out->size);
	return out->value ? sv_read_mem(t, args[1], out->value, out->size) : -ENOMEM;
}

int sv_read_attr_args(const struct sv_tracee *t, uint64_t at_flags, const uint64_t args[3],
		      struct sv_attr *out)
{
	struct attr_args a;
	int rc = sv_read_struct(t, args[1], args[2], &a, sizeof(a));

	if (rc == 0)
		rc = check_at_flags(at_flags);
	return rc < 0 ? rc : sv_read_attr(t, (uint64_t[]){ args[0], a.value, a.size, a.flags }, out);
}

int sv_read_attr_get(const struct sv_tracee *t, uint64_t at_flags, const uint64_t args[3],
		     struct sv_attr *out, uint64_t *buf, uint64_t *room)
{
	struct attr_args a;
	int rc = sv_read_struct(t, args[1], args[2], &a, sizeof(a));

	if (rc == 0 && a.flags)
		rc = -EINVAL;
	if (rc < 0)
		return rc;
	*buf = a.value;
	*room = a.size;
	return sv_read_attr_name(t, at_flags, args[0], out);
}
