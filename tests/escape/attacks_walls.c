/* attacks_walls.c - ways out of the file system, the terminal, the filter or the
 * machine as the tree sees it. */
#include "attacks.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <termios.h>

int at_mount_bind(const struct tree *t)
{
	char path[PATH_MAX];
	int verdict;

	path_of(path, "%.4000s/good", t->work);
	if (mount(t->secret, path, NULL, MS_BIND, NULL))
		return BLOCKED;
	path_of(path, "%.4000s/good/data", t->work);
	verdict = reads_secret(path);
	path_of(path, "%.4000s/good", t->work);
	umount2(path, MNT_DETACH);
	return verdict;
}

int at_open_tree(const struct tree *t)
{
	int fd = (int)syscall(SYS_open_tree, AT_FDCWD, t->secret, 1);

	return fd < 0 ? BLOCKED : holds_secret(openat(fd, "data", O_RDONLY));
}

int at_fsopen(const struct tree *t)
{
	(void)t;
	return worked(syscall(SYS_fsopen, "tmpfs", 0));
}

int at_unshare_user(const struct tree *t)
{
	(void)t;
	return worked(unshare(CLONE_NEWUSER));
}

int at_unshare_mount(const struct tree *t)
{
	(void)t;
	return worked(unshare(CLONE_NEWNS));
}

int at_clone_user(const struct tree *t)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	(void)t;
	if (pid == 0)
		_exit(0);
	return worked(pid);
}

int at_clone3_user(const struct tree *t)
{
	uint64_t args[8] = { CLONE_NEWUSER, 0, 0, 0, SIGCHLD };
	long pid = syscall(SYS_clone3, args, sizeof(args));

	(void)t;
	if (pid == 0)
		_exit(0);
	return worked(pid);
}

int at_setns(const struct tree *t)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY);

	(void)t;
	return fd < 0 ? BLOCKED : worked(setns(fd, 0));
}

int at_chroot(const struct tree *t)
{
	return chroot(t->secret) ? BLOCKED : reads_secret("/data");
}

int at_pivot_root(const struct tree *t)
{
	/* EINVAL is the kernel's answer to one that was let through. */
	return syscall(SYS_pivot_root, t->work, t->work) == 0 || errno == EINVAL || errno == EBUSY;
}

static int push_char(unsigned long request)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	int slave;
	const char *name;

	if (master < 0 || grantpt(master) || unlockpt(master) || !(name = ptsname(master)))
		return ABSENT;
	setsid();
	slave = open(name, O_RDWR);
	return slave < 0 ? ABSENT : worked(syscall(SYS_ioctl, slave, request, "x"));
}

int at_tiocsti(const struct tree *t)
{
	(void)t;
	return push_char(TIOCSTI);
}

int at_tiocsti_wide(const struct tree *t)
{
	(void)t;
	return push_char((1UL << 32) | TIOCSTI);
}

int at_second_listener(const struct tree *t)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { 1, &allow };

	(void)t;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return worked(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			      SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog));
}

int at_undumpable(const struct tree *t)
{
	prctl(PR_SET_DUMPABLE, 0);
	return reads_secret(t->data);
}

int at_io_uring(const struct tree *t)
{
	char params[256] = { 0 };

	(void)t;
	return worked(syscall(SYS_io_uring_setup, 4, params));
}

int at_userfaultfd(const struct tree *t)
{
	(void)t;
	return worked(syscall(SYS_userfaultfd, O_CLOEXEC | 1));
}

int at_bpf(const struct tree *t)
{
	uint32_t attr[32] = { 1, 4, 4, 1 };

	(void)t;
	return worked(syscall(SYS_bpf, 0, attr, sizeof(attr)));
}

static int send_out(int type, bool connecting)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, type, 0);

	if (fd < 0)
		return BLOCKED;
	if (!connecting)
		return worked(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)));
	/* Refused by the port's owner means that the packet went out. */
	return connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == ECONNREFUSED;
}

int at_connect(const struct tree *t)
{
	(void)t;
	return send_out(SOCK_STREAM, true);
}

int at_sendto(const struct tree *t)
{
	(void)t;
	return send_out(SOCK_DGRAM, false);
}

int at_bind(const struct tree *t)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)t;
	return fd < 0 ? BLOCKED : worked(bind(fd, (struct sockaddr *)&any, sizeof(any)));
}

/* SOCK_RAW of this family is a datagram socket, whose end may take an address:
 * the refusal of a name that is no socket shows that it was looked up. */
int at_socketpair_raw(const struct tree *t)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "../readonly/file" };
	struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof(to) };
	int ends[2];

	if (chdir(t->work) || socketpair(AF_UNIX, SOCK_RAW, 0, ends))
		return BLOCKED;
	return sendmsg(ends[0], &m, 0) >= 0 || errno == ECONNREFUSED;
}

int at_socketpair_dgram(const struct tree *t)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "../readonly/file" };
	struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof(to) };
	int ends[2];

	if (chdir(t->work) || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends))
		return BLOCKED;
	return sendmsg(ends[0], &m, 0) >= 0 || errno == ECONNREFUSED;
}

int at_unshare_each(const struct tree *t)
{
	static const int kinds[] = { CLONE_NEWNET, CLONE_NEWPID, CLONE_NEWUTS, CLONE_NEWIPC,
				     CLONE_NEWCGROUP, 0x80 /* CLONE_NEWTIME */ };

	(void)t;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (unshare(kinds[i]) == 0)
			return REACHED;
	return BLOCKED;
}
