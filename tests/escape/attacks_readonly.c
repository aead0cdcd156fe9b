/* attacks_readonly.c - ways to change a file that may only be read: its content
 * and everything else about it, by path, by descriptor and by handle. */
#include "attacks.h"

#include <linux/fs.h>
#include <sys/xattr.h>
#include <utime.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#endif
#ifndef SYS_file_setattr
#define SYS_file_setattr 469
#endif

int at_truncate(const struct tree *t)
{
	return worked(truncate(t->readonly, 2));
}

int at_open_truncate(const struct tree *t)
{
	struct stat st;
	int fd = open(t->readonly, O_RDONLY | O_TRUNC);

	if (fd < 0)
		return BLOCKED;
	return fstat(fd, &st) || st.st_size ? BLOCKED : REACHED;
}

int at_open_write(const struct tree *t)
{
	return worked(open(t->readonly, O_WRONLY));
}

int at_open_append(const struct tree *t)
{
	return worked(open(t->readonly, O_RDWR | O_APPEND));
}

int at_creat(const struct tree *t)
{
	return worked(creat(t->readonly, 0600));
}

/* A read-only descriptor opened again for writing. */
int at_reopen_write(const struct tree *t)
{
	char path[PATH_MAX];
	int fd = open(t->readonly, O_RDONLY);

	path_of(path, "/proc/self/fd/%d", fd);
	return fd < 0 ? BLOCKED : worked(open(path, O_RDWR));
}

int at_chmod(const struct tree *t)
{
	return worked(chmod(t->readonly, 0604));
}

int at_fchmod(const struct tree *t)
{
	return worked(fchmod(open(t->readonly, O_RDONLY), 0614));
}

int at_fchmodat2(const struct tree *t)
{
	return worked(syscall(SYS_fchmodat2, open(t->readonly, O_PATH), "", 0624, AT_EMPTY_PATH));
}

int at_chmod_proc_fd(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/proc/self/fd/%d", open(t->readonly, O_PATH));
	return worked(chmod(path, 0634));
}

int at_chown(const struct tree *t)
{
	return worked(chown(t->readonly, getuid(), getgid()));
}

int at_fchown(const struct tree *t)
{
	return worked(fchown(open(t->readonly, O_RDONLY), getuid(), getgid()));
}

int at_fchownat_empty(const struct tree *t)
{
	return worked(fchownat(open(t->readonly, O_PATH), "", getuid(), getgid(), AT_EMPTY_PATH));
}

int at_utimensat(const struct tree *t)
{
	return worked(utimensat(AT_FDCWD, t->readonly, NULL, 0));
}

int at_futimens(const struct tree *t)
{
	return worked(futimens(open(t->readonly, O_RDONLY), NULL));
}

int at_utime(const struct tree *t)
{
	struct utimbuf when = { 1, 1 };

	return worked(utime(t->readonly, &when));
}

int at_setxattr(const struct tree *t)
{
	return worked(setxattr(t->readonly, "user.a", "1", 1, 0));
}

int at_fsetxattr(const struct tree *t)
{
	return worked(fsetxattr(open(t->readonly, O_RDONLY), "user.b", "1", 1, 0));
}

int at_setxattrat(const struct tree *t)
{
	struct {
		uint64_t value;
		uint32_t size, flags;
	} x = { (uint64_t)(uintptr_t)"1", 1, 0 };

	return worked(syscall(SYS_setxattrat, AT_FDCWD, t->readonly, 0, "user.c", &x, sizeof(x)));
}

int at_removexattr(const struct tree *t)
{
	/* ENODATA is the file's own answer: the call was let through. */
	return removexattr(t->readonly, "user.none") == 0 || errno == ENODATA;
}

int at_setxattr_proc_fd(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/proc/self/fd/%d", open(t->readonly, O_PATH));
	return worked(setxattr(path, "user.d", "1", 1, 0));
}

int at_setxattr_empty(const struct tree *t)
{
	struct {
		uint64_t value;
		uint32_t size, flags;
	} x = { (uint64_t)(uintptr_t)"1", 1, 0 };

	return worked(syscall(SYS_setxattrat, open(t->readonly, O_RDONLY), "", AT_EMPTY_PATH,
			      "user.e", &x, sizeof(x)));
}

/* u::rwx g::rwx o::rwx */
int at_setxattr_acl(const struct tree *t)
{
	static const struct {
		uint32_t version;
		struct { uint16_t tag, perm; uint32_t id; } entry[3];
	} all = { 2, { { 1, 7, UINT32_MAX }, { 4, 7, UINT32_MAX }, { 32, 7, UINT32_MAX } } };

	return worked(setxattr(t->readonly, "system.posix_acl_access", &all, sizeof(all), 0));
}

int at_setxattr_trusted(const struct tree *t)
{
	return worked(setxattr(t->work, "trusted.overlay.opaque", "y", 1, 0));
}

int at_setxattr_label(const struct tree *t)
{
	return worked(setxattr(t->work, "security.evasion", "1", 1, 0));
}

int at_set_flags(const struct tree *t)
{
	int flags = 0;
	int fd = open(t->readonly, O_RDONLY);

	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags))
		return ABSENT;
	return worked(ioctl(fd, FS_IOC_SETFLAGS, &flags));
}

int at_file_setattr(const struct tree *t)
{
	uint64_t attr[4] = { 0 };

	return worked(syscall(SYS_file_setattr, AT_FDCWD, t->readonly, attr, sizeof(attr), 0));
}

int at_map_shared_write(const struct tree *t)
{
	int fd = open(t->readonly, O_RDONLY);
	char *map = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return map == MAP_FAILED ? BLOCKED : REACHED;
}
