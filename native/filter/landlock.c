/* landlock.c - builds and enters the target's Landlock domain. */
#include "filter/landlock.h"

#include "base/err.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Our own names: installed headers may be older than the kernel. */
enum {
	FS_EXECUTE = 1 << 0, FS_READ_FILE = 1 << 2,
	RULE_PATH_BENEATH = 1, CREATE_VERSION = 1,
	NET_BIND_TCP = 1 << 0, NET_CONNECT_TCP = 1 << 1,
	SCOPE_ABSTRACT_UNIX = 1 << 0, SCOPE_SIGNAL = 1 << 1,
	FILE_RIGHTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
};

struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

struct path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

int sv_landlock_abi(void)
{
	long n = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);

	return n < 0 ? -errno : (int)n;
}

/* Every file-system right that this version knows. */
static uint64_t all_fs(int abi)
{
	uint64_t bits = (1 << 13) - 1;	/* EXECUTE .. MAKE_SYM */

	if (abi >= 2)
		bits |= 1 << 13;	/* REFER */
	if (abi >= 3)
		bits |= 1 << 14;	/* TRUNCATE */
	if (abi >= 5)
		bits |= 1 << 15;	/* IOCTL_DEV */
	return bits;
}

static int create(int abi, bool open)
{
	struct ruleset_attr a = { .handled_access_fs = all_fs(abi) };
	size_t size = sizeof(a.handled_access_fs);

	if (abi >= 4 && !open)
		a.handled_access_net = NET_BIND_TCP | NET_CONNECT_TCP;
	if (abi >= 6)
		a.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	if (abi >= 4)
		size += sizeof(a.handled_access_net);
	if (abi >= 6)
		size += sizeof(a.scoped);
	long fd = syscall(SYS_landlock_create_ruleset, &a, size, 0);

	return fd < 0 ? -errno : (int)fd;
}

/* Rules are about true paths: behind a link lies a folder that they do not speak of.
 * ENOSYS is what a supervisor around this one says; that is told when the filter is
 * put in place. */
static int add(int ruleset, const char *path, uint64_t rights)
{
	struct path_beneath_attr rule = { .allowed_access = rights };
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	cleanup_fd int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	struct stat st;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP ||
				       errno == ENOSYS ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= FILE_RIGHTS;
	rule.parent_fd = fd;
	if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

int sv_landlock_build(const struct sv_floor_entry *floor, size_t n, bool open, struct sv_err *err)
{
	int abi = sv_landlock_abi(), rc = 0;
	cleanup_fd int fd = -1;
	size_t i;

	if (abi < 1)
		return sv_fail(err, abi ? -abi : ENOSYS, "landlock",
			       "this kernel offers no Landlock (Linux 5.13 with landlock in lsm=)");
	fd = create(abi, open);
	if (fd < 0)
		return sv_fail(err, -fd, "landlock", "the ruleset cannot be made: %s", strerror(-fd));
	if (open)
		rc = add(fd, "/", all_fs(abi));
	for (i = 0; !open && rc == 0 && i < n; i++)
		if (floor[i].rights & 1)
			rc = add(fd, floor[i].path, FS_EXECUTE | FS_READ_FILE);
	if (rc < 0)
		return sv_fail(err, -rc, "landlock", "a rule cannot be added: %s", strerror(-rc));
	return take_fd(&fd);
}

int sv_landlock_enter(int ruleset)
{
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}
