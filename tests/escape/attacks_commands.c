/* attacks_commands.c - ioctl and setsockopt: what is done to terminals, inodes and the
 * machine through a descriptor, and no write access is asked for. */
#include "attacks.h"

#include <linux/fs.h>
#include <netinet/in.h>
#include <termios.h>

/* ext4's own; the headers have them only since Linux 6.4. */
#define EXT4_SWAP_BOOT _IO('f', 17)
#define EXT4_MIGRATE _IO('f', 9)
#define EXT4_MOVE_EXT _IOWR('f', 15, struct move_extent)
#define BTRFS_SUBVOL_CREATE 0x5000940eUL
#define BTRFS_SNAP_CREATE_V2 0x50009417UL
#define BTRFS_SNAP_DESTROY 0x5000940fUL
#define BTRFS_TREE_SEARCH 0xd0009411UL

struct move_extent {
	uint32_t reserved, donor_fd;
	uint64_t orig_start, donor_start, len, moved_len;
};

static int new_terminal(char *name, size_t size)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);

	if (master < 0 || grantpt(master) || unlockpt(master))
		return -1;
	return ptsname_r(master, name, size) ? -1 : master;
}

/* The child has a session and a terminal of its own, until somebody takes it. */
static pid_t session_with(const char *name)
{
	int ends[2];
	char c;
	pid_t pid;

	if (pipe(ends))
		return -1;
	pid = fork();
	if (pid == 0) {
		signal(SIGHUP, SIG_IGN);
		if (setsid() < 0 || ioctl(open(name, O_RDWR | O_NOCTTY), TIOCSCTTY, 0) ||
		    write(ends[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(ends[1]);
	return read(ends[0], &c, 1) == 1 ? pid : -1;
}

static int steal(unsigned long request, unsigned long arg)
{
	char name[64];
	int master = new_terminal(name, sizeof(name));
	pid_t owner = master < 0 ? -1 : session_with(name);
	int tty = open(name, O_RDWR | O_NOCTTY);
	int verdict = ABSENT;

	if (owner > 0 && tty >= 0 && setsid() > 0)
		verdict = worked(syscall(SYS_ioctl, tty, request, arg));
	if (owner > 0)
		kill(owner, SIGKILL);
	return verdict;
}

int at_terminal_stolen(const struct tree *t)
{
	(void)t;
	return steal(TIOCSCTTY, 1);
}

int at_terminal_stolen_wide(const struct tree *t)
{
	(void)t;
	return steal((1UL << 32) | TIOCSCTTY, (1UL << 32) | 1);
}

int at_ok_terminal(const struct tree *t)
{
	char name[64];
	int tty = new_terminal(name, sizeof(name)) < 0 ? -1 : open(name, O_RDWR | O_NOCTTY);

	(void)t;
	return tty < 0 || setsid() < 0 ? BLOCKED : worked(ioctl(tty, TIOCSCTTY, 0));
}

/* Asked of a pipe, where nothing can come of it: every answer but the refusal is
 * that of somebody who would have done it to a file. */
static int asked(const unsigned long *requests, size_t n)
{
	int ends[2];

	if (pipe(ends))
		return ABSENT;
	for (size_t i = 0; i < 2 * n; i++)
		if (syscall(SYS_ioctl, ends[0], (i % 2) << 32 | requests[i / 2], -1L) == 0 ||
		    errno != EPERM)
			return REACHED;
	return BLOCKED;
}

#define ASKED(...) \
	asked((const unsigned long[]){ __VA_ARGS__ }, \
	      sizeof((const unsigned long[]){ __VA_ARGS__ }) / sizeof(unsigned long))

int at_swap_boot(const struct tree *t)
{
	(void)t;
	return ASKED(EXT4_SWAP_BOOT);
}

int at_ext4_inode(const struct tree *t)
{
	(void)t;
	return ASKED(EXT4_MIGRATE, _IOW('f', 4, long) /* SETVERSION */,
		     _IOW('f', 16, uint64_t) /* RESIZE_FS */);
}

int at_btrfs_subvolume(const struct tree *t)
{
	(void)t;
	return ASKED(BTRFS_SUBVOL_CREATE, BTRFS_SNAP_CREATE_V2, BTRFS_SNAP_DESTROY);
}

int at_btrfs_search(const struct tree *t)
{
	(void)t;
	return ASKED(BTRFS_TREE_SEARCH);
}

int at_fssetxattr(const struct tree *t)
{
	struct fsxattr attr;
	int fd = open(t->readonly, O_RDONLY);

	if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &attr))
		return ABSENT;
	return worked(ioctl(fd, FS_IOC_FSSETXATTR, &attr));
}

/* The kernel itself asks for write access; other file systems know no such thing. */
int at_move_extent(const struct tree *t)
{
	struct move_extent m = { .len = 1 };
	char path[PATH_MAX];
	int fd = open(t->readonly, O_RDONLY);

	path_of(path, "%.4000s/data", t->work);
	m.donor_fd = (uint32_t)fd;
	return fd < 0 ? BLOCKED : worked(ioctl(open(path, O_RDWR), EXT4_MOVE_EXT, &m));
}

int at_clone_into(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "%.4000s/data", t->work);
	return worked(ioctl(open(t->readonly, O_RDONLY), FICLONE, open(path, O_RDONLY)));
}

int at_clone_handle(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "%.4000s/data", t->work);
	return worked(ioctl(open(path, O_RDWR), FICLONE, open(t->data, O_PATH)));
}

/* Zeros are no table, so nothing is replaced: what is not refused with EPERM was
 * looked at. */
static int filter_table(int family, uint64_t level, const uint64_t *options, size_t n)
{
	static const char zeros[4096];
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0)
		return ABSENT;
	for (size_t i = 0; i < n; i++)
		if (syscall(SYS_setsockopt, fd, level, options[i], zeros, sizeof(zeros)) == 0 ||
		    errno != EPERM)
			return REACHED;
	return BLOCKED;
}

int at_packet_filter(const struct tree *t)
{
	/* of iptables, arptables and ebtables: replace, add counters */
	static const uint64_t options[] = { 64, 65, 96, 97, 128, 129 };

	(void)t;
	return filter_table(AF_INET, IPPROTO_IP, options, 6);
}

int at_packet_filter_6(const struct tree *t)
{
	static const uint64_t options[] = { 64, 65 };

	(void)t;
	return filter_table(AF_INET6, IPPROTO_IPV6, options, 2);
}

int at_packet_filter_wide(const struct tree *t)
{
	static const uint64_t options[] = { 1ULL << 32 | 64 };

	(void)t;
	return filter_table(AF_INET, 1ULL << 32 | IPPROTO_IP, options, 1);
}

/* The same numbers mean something else where they are no IP options, and what IPv6
 * has between its filter's is its own. */
int at_ok_socket_options(const struct tree *t)
{
	const int on = 1;
	const int fd = socket(AF_INET6, SOCK_STREAM, 0);

	(void)t;
	return fd >= 0 && setsockopt(fd, SOL_SOCKET, 64, &on, sizeof(on)) == 0 &&
	       setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &on, sizeof(on)) == 0 &&
	       setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &on, sizeof(on)) == 0;
}
