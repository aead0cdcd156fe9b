/* attacks_process.c - ways at the supervisor itself, out of the tree, or out of
 * its file system. What is tried on the supervisor would change nothing: it
 * sets what is already set. */
#include "attacks.h"

#include <linux/seccomp.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <termios.h>

static int of_parent(const struct tree *t, const char *name, int flags)
{
	char path[PATH_MAX];
	char c;
	int fd;

	path_of(path, "/proc/%d/%s", (int)t->parent, name);
	fd = open(path, flags | O_CLOEXEC);
	/* An open that later reads nothing is no reach; mem at 0 gives EIO. */
	return fd >= 0 && (read(fd, &c, 1) >= 0 || errno == EIO) ? REACHED : BLOCKED;
}

int at_parent_environ(const struct tree *t)
{
	return of_parent(t, "environ", O_RDONLY);
}

int at_parent_maps(const struct tree *t)
{
	return of_parent(t, "maps", O_RDONLY);
}

int at_parent_auxv(const struct tree *t)
{
	return of_parent(t, "auxv", O_RDONLY);
}

int at_parent_mem(const struct tree *t)
{
	return of_parent(t, "mem", O_RDWR);
}

int at_parent_oom(const struct tree *t)
{
	char path[PATH_MAX];
	int fd;

	path_of(path, "/proc/%d/oom_score_adj", (int)t->parent);
	fd = open(path, O_RDWR);
	return fd < 0 ? BLOCKED : worked(write(fd, "0", 1));
}

int at_parent_fd(const struct tree *t)
{
	char path[PATH_MAX];
	char link_[PATH_MAX];

	for (int fd = 0; fd < 64; fd++) {
		path_of(path, "/proc/%d/fd/%d", (int)t->parent, fd);
		if (readlink(path, link_, sizeof(link_)) > 0 || open(path, O_RDONLY) >= 0)
			return REACHED;
	}
	return BLOCKED;
}

int at_parent_root(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/proc/%d/root%.4000s", (int)t->parent, t->data);
	return reads_secret(path);
}

int at_parent_cwd(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/proc/%d/cwd/../../../../../../../../../../../..%.4000s", (int)t->parent,
		t->data);
	return reads_secret(path);
}

int at_parent_ptrace(const struct tree *t)
{
	if (ptrace(PTRACE_SEIZE, t->parent, 0, 0))
		return BLOCKED;
	return REACHED;
}

int at_parent_kill(const struct tree *t)
{
	return worked(kill(t->parent, 0));
}

int at_parent_sigcont(const struct tree *t)
{
	return worked(kill(t->parent, SIGCONT));
}

int at_parent_pidfd(const struct tree *t)
{
	int pidfd = (int)syscall(SYS_pidfd_open, t->parent, 0);

	if (pidfd < 0)
		return BLOCKED;
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 ||
	       syscall(SYS_pidfd_getfd, pidfd, 0, 0) >= 0;
}

int at_parent_prlimit(const struct tree *t)
{
	struct rlimit now;

	if (prlimit(t->parent, RLIMIT_NOFILE, NULL, &now))
		return BLOCKED;
	return worked(prlimit(t->parent, RLIMIT_NOFILE, &now, NULL));
}

int at_parent_affinity(const struct tree *t)
{
	cpu_set_t set;

	if (sched_getaffinity(t->parent, sizeof(set), &set))
		return BLOCKED;
	return worked(sched_setaffinity(t->parent, sizeof(set), &set));
}

int at_parent_scheduler(const struct tree *t)
{
	struct sched_param p = { 0 };

	return worked(sched_setscheduler(t->parent, SCHED_OTHER, &p));
}

int at_parent_priority(const struct tree *t)
{
	errno = 0;
	return worked(setpriority(PRIO_PROCESS, (id_t)t->parent,
				  getpriority(PRIO_PROCESS, (id_t)t->parent)));
}

int at_parent_ioprio(const struct tree *t)
{
	return worked(syscall(SYS_ioprio_set, 1, t->parent, 0));
}

static int reached_memory(ssize_t n)
{
	return n >= 0 || errno == EFAULT ? REACHED : BLOCKED;
}

int at_parent_vm_readv(const struct tree *t)
{
	char c;
	struct iovec here = { &c, 1 };
	struct iovec there = { (void *)4096, 1 };

	return reached_memory(process_vm_readv(t->parent, &here, 1, &there, 1, 0));
}

int at_parent_vm_writev(const struct tree *t)
{
	char c = 0;
	struct iovec here = { &c, 1 };
	struct iovec there = { (void *)4096, 1 };

	return reached_memory(process_vm_writev(t->parent, &here, 1, &there, 1, 0));
}

int at_parent_move_pages(const struct tree *t)
{
	/* None of its pages: only whether one may. */
	return worked(syscall(SYS_move_pages, t->parent, 0UL, NULL, NULL, NULL, 0));
}

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
