/* trash_item.c - linkat, or a copy with everything that stat and xattr show. */
#include "broker/trash_item.h"

#include "base/fd.h"
#include "broker/copyup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

enum { NAMES_MAX = 65536, VALUE_MAX = 65536 };

static void name_of(int fd, char *buf, size_t n)
{
	snprintf(buf, n, "/proc/self/fd/%d", fd);
}

int sv_item_link(int fd, int trash, const char *name)
{
	char self[32];

	name_of(fd, self, sizeof(self));
	if (linkat(AT_FDCWD, self, trash, name, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	/* EPERM: no hard links there, or not of somebody else's file */
	return errno == EPERM || errno == EMLINK ? -EXDEV : -errno;
}

static int copy_xattr(const char *from, const char *to, const char *name, char *value)
{
	ssize_t n = getxattr(from, name, value, VALUE_MAX);

	if (n < 0)
		return errno == ENODATA ? 0 : -errno;
	return setxattr(to, name, value, (size_t)n, 0) < 0 ? -errno : 0;
}

/* Labels that only privilege can give are the system's, not the file's. */
static bool of_the_file(const char *name)
{
	return !strncmp(name, "user.", 5) || !strncmp(name, "system.posix_acl_", 17);
}

/* Names and a value in one piece of memory. */
static int copy_xattrs(const char *from, const char *to)
{
	char *names = malloc(NAMES_MAX + VALUE_MAX), *p;
	ssize_t n = names ? listxattr(from, names, NAMES_MAX) : -1;
	int rc = 0;

	if (n < 0)
		rc = !names ? -ENOMEM : errno == EOPNOTSUPP ? 0 : -errno;
	for (p = names; n > 0 && rc == 0 && p < names + n; p += strlen(p) + 1)
		if (of_the_file(p))
			rc = copy_xattr(from, to, p, names + NAMES_MAX);
	free(names);
	return rc;
}

/* The owner first: changing it takes set-id bits away. The copy is ours and
 * nobody else's, so an owner that we cannot give is not an error. */
static int copy_looks(int from, const struct stat *st, int to)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	char a[32], b[32];
	int rc;

	name_of(from, a, sizeof(a));
	name_of(to, b, sizeof(b));
	if (fchownat(AT_FDCWD, b, st->st_uid, st->st_gid, 0) < 0 && errno != EPERM)
		return -errno;
	rc = copy_xattrs(a, b);
	if (rc == 0 && fchmodat(AT_FDCWD, b, st->st_mode & 07777, 0) < 0)
		rc = -errno;
	if (rc == 0 && utimensat(AT_FDCWD, b, times, 0) < 0)
		rc = -errno;
	return rc;
}

static int copy_file(int fd, const struct stat *st, int trash, const char *name)
{
	char self[32];
	cleanup_fd int from = -1, to = -1;
	int rc;

	name_of(fd, self, sizeof(self));
	from = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (from < 0)
		return -errno;
	to = openat(trash, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	rc = sv_copy_bytes(from, to);
	if (rc == 0)
		rc = copy_looks(from, st, to);
	if (rc < 0)
		return rc;
	name_of(to, self, sizeof(self));
	return linkat(AT_FDCWD, self, trash, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int copy_symlink(int fd, const struct stat *st, int trash, const char *name)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	char text[4096];
	ssize_t n = readlinkat(fd, "", text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	text[n] = 0;
	if (symlinkat(text, trash, name) < 0)
		return -errno;
	if (fchownat(trash, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != EPERM)
		return -errno;
	return utimensat(trash, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* A name was made; give it the looks of the original, or take it back. */
static int finish(int fd, const struct stat *st, int trash, const char *name, int how)
{
	cleanup_fd int made = openat(trash, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int rc = made < 0 ? -errno : copy_looks(fd, st, made);

	if (rc < 0)
		unlinkat(trash, name, how);
	return rc;
}

int sv_item_copy(int fd, const struct stat *st, int trash, const char *name)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return copy_file(fd, st, trash, name);
	case S_IFLNK:
		return copy_symlink(fd, st, trash, name);
	case S_IFIFO:
	case S_IFSOCK:
		if (mknodat(trash, name, (st->st_mode & S_IFMT) | 0600, 0) < 0)
			return -errno;
		return finish(fd, st, trash, name, 0);
	default:
		return -EPERM;
	}
}

int sv_item_folder(int fd, const struct stat *st, int trash, const char *name)
{
	if (mkdirat(trash, name, 0700) < 0)
		return -errno;
	return finish(fd, st, trash, name, AT_REMOVEDIR);
}
