/* openhow.c - struct open_how and open flags. */
#include "decode/openhow.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>

#ifndef O_LARGEFILE_BIT
#ifdef __x86_64__
#define O_LARGEFILE_BIT 0100000
#else
#define O_LARGEFILE_BIT 0400000
#endif
#endif

static const uint64_t known_flags = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND |
	O_NONBLOCK | O_DSYNC | O_ASYNC | O_DIRECT | O_LARGEFILE_BIT | O_DIRECTORY | O_NOFOLLOW |
	O_NOATIME | O_CLOEXEC | O_SYNC | O_PATH | O_TMPFILE;
static const uint64_t known_resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS |
	RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_IN_ROOT | RESOLVE_CACHED;

int sv_read_open_how(const struct sv_tracee *t, uint64_t addr, uint64_t size,
		     struct sv_open_how *out)
{
	return sv_read_struct(t, addr, size, out, sizeof(*out));
}

static int check_strict(const struct sv_open_how *how)
{
	if (how->flags & ~known_flags || how->resolve & ~known_resolve)
		return -EINVAL;
	if ((how->resolve & RESOLVE_BENEATH) && (how->resolve & RESOLVE_IN_ROOT))
		return -EINVAL;
	if (how->flags & O_PATH &&
	    how->flags & ~(uint64_t)(O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC))
		return -EINVAL;
	if (how->mode & ~07777ULL)
		return -EINVAL;
	if (how->mode && !(how->flags & O_CREAT) && (how->flags & O_TMPFILE) != O_TMPFILE)
		return -EINVAL;
	if (how->resolve & RESOLVE_CACHED && how->flags & (O_TRUNC | O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
		return -EAGAIN;
	return 0;
}

int sv_check_open_how(struct sv_open_how *how, bool strict)
{
	const uint64_t tmpfile_only = O_TMPFILE & ~(uint64_t)O_DIRECTORY;

	if (strict) {
		int rc = check_strict(how);

		if (rc < 0)
			return rc;
	} else {
		how->flags &= known_flags;
		how->mode &= 07777;
		if (how->flags & O_PATH)
			how->flags &= O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC;
	}
	if (how->flags & tmpfile_only) {
		if ((how->flags & O_TMPFILE) != O_TMPFILE || how->flags & O_CREAT)
			return -EINVAL;
		if ((how->flags & O_ACCMODE) == O_RDONLY)
			return -EINVAL;
	} else if ((how->flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY)) {
		return -EINVAL;
	}
	if (!(how->flags & O_CREAT) && !(how->flags & tmpfile_only))
		how->mode = 0;
	return 0;
}

uint32_t sv_open_ops(uint64_t flags)
{
	uint32_t ops = 0;

	switch (flags & O_ACCMODE) {
	case O_RDONLY:
		ops = SV_OP_READ;
		break;
	case O_WRONLY:
		ops = SV_OP_WRITE;
		break;
	default:		/* O_RDWR, and 3: the kernel asks for both */
		ops = SV_OP_READ | SV_OP_WRITE;
	}
	if (flags & O_TRUNC)
		ops |= SV_OP_WRITE;
	return ops;
}
