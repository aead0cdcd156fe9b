/* facility.c - tries each facility in a throwaway child. */
#include "facility.h"

#include "base/err.h"
#include "base/fd.h"
#include "filter/install.h"
#include "filter/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

/* What one round trip with a supervised child showed, as errnos. */
struct trip {
	int32_t listener, killable, memory, inject, sync;
};

static const struct {
	const char *name, *buys, *fix;
	int need;
} text[SV_FACILITIES] = {
	[SV_FACILITY_LISTENER] = { "seccomp-listener", "every decision: parked calls come to the supervisor",
		"Linux 5.9 with seccomp user notification; not inside gVisor or another supervisor", 1 },
	[SV_FACILITY_WAIT_KILLABLE] = { "wait-killable", "a brokered call never runs twice when a signal comes",
		"Linux 5.19; --allow-degraded wait-killable goes on without", 1 },
	[SV_FACILITY_LANDLOCK] = { "landlock", "the floor: what the kernel refuses with nobody asked",
		"Linux 5.13 with landlock in lsm=; --allow-degraded landlock goes on without", 1 },
	[SV_FACILITY_LANDLOCK_SCOPE] = { "landlock-scope", "signals are bounded by the kernel without a notification",
		"Linux 6.12; without it each kill is checked by notification", 0 },
	[SV_FACILITY_READ_MEMORY] = { "read-memory", "arguments of a parked call can be read",
		"same user and no ptrace restriction above yama 1", 1 },
	[SV_FACILITY_INJECT] = { "inject-fd", "opened files are handed to the caller",
		"Linux 5.14 (SECCOMP_ADDFD_FLAG_SEND)", 1 },
	[SV_FACILITY_EXEC_STOP] = { "exec-stop", "programs are verified before their first instruction",
		"ptrace of own children: yama ptrace_scope 0 or 1, a profile that allows ptrace", 1 },
	[SV_FACILITY_PROC] = { "proc", "true paths, working folders and descriptors of callers",
		"mount -t proc proc /proc", 1 },
	[SV_FACILITY_OPENAT2] = { "openat2", "path walks that cannot be led astray", "Linux 5.6", 1 },
	[SV_FACILITY_SYNC_WAKE_UP] = { "sync-wake-up", "answers from the caller's own CPU: faster", "Linux 6.6", 0 },
	[SV_FACILITY_PIDFD_GETFD] = { "pidfd-getfd", "network rules; inotify watches are put for the caller",
		"Docker's default profile refuses it: a profile that allows it; without it both are refused", 0 },
	[SV_FACILITY_USER_NAMESPACES] = { "user-namespaces", "not used by this version",
		"not needed", 0 },
	[SV_FACILITY_IDENTITIES] = { "other-identities", "programs that give up root, as su does, go on",
		"CAP_SYS_PTRACE for root: podman, docker --cap-add=SYS_PTRACE; without it they are refused", 0 },
};

#define NOBODY	65534
static const char probe_text[] = "probe";

static int target(int sock)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdirat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	bool killable = false;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	fd = sv_filter_install((const uint8_t *)f, sizeof(f), &killable);
	if (fd < 0) {
		uint8_t code = (uint8_t)-fd;

		(void)!write(sock, &code, 1);
		return 1;
	}
	sv_send_fd(sock, fd, killable);
	close(fd);
	return syscall(SYS_mkdirat, -1, probe_text, 0) < 0 ? 2 : 0;
}

static int read_probe(pid_t pid, uint64_t addr)
{
	char buf[sizeof(probe_text)], name[32];
	struct iovec l = { buf, sizeof(buf) }, r = { (void *)(uintptr_t)addr, sizeof(buf) };
	int fd, rc;

	if (process_vm_readv(pid, &l, 1, &r, 1, 0) == (ssize_t)sizeof(buf))
		return memcmp(buf, probe_text, sizeof(buf)) ? EIO : 0;
	snprintf(name, sizeof(name), "/proc/%d/mem", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	rc = pread(fd, buf, sizeof(buf), (off_t)addr) == (ssize_t)sizeof(buf) ? 0 : errno;
	close(fd);
	return rc;
}

static void answer(int fd, struct trip *t)
{
	union { struct seccomp_notif n; char room[512]; } q;
	struct seccomp_notif_addfd add = { .flags = SECCOMP_ADDFD_FLAG_SEND, .srcfd = 0 };
	struct pollfd p = { fd, POLLIN, 0 };

	t->sync = ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, 1UL) < 0 ? errno : 0;
	memset(&q, 0, sizeof(q));
	if (poll(&p, 1, 2000) != 1 || ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &q.n) < 0) {
		t->listener = errno ? errno : ETIMEDOUT;
		return;
	}
	t->memory = read_probe((pid_t)q.n.pid, q.n.data.args[1]);
	add.id = q.n.id;
	add.srcfd = (uint32_t)fd;
	t->inject = ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 ? errno : 0;
	if (t->inject) {
		struct seccomp_notif_resp r = { .id = q.n.id, .error = -EACCES };

		ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &r);
	}
}

static void round_trip(struct trip *t)
{
	int sv[2], fd, st;
	uint8_t note = 0;
	pid_t pid;

	memset(t, 0, sizeof(*t));
	t->killable = t->memory = t->inject = t->sync = ENOSYS;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0) {
		t->listener = errno;
		return;
	}
	pid = fork();
	if (pid == 0)
		_exit(target(sv[1]));
	close(sv[1]);
	fd = pid < 0 ? -errno : sv_recv_fd(sv[0], &note);
	t->listener = fd == -ENOMSG ? note : fd < 0 ? -fd : 0;
	if (fd >= 0) {
		t->killable = note ? 0 : ENOSYS;
		answer(fd, t);
		close(fd);
	}
	close(sv[0]);
	if (pid > 0) {
		if (t->listener)
			kill(pid, SIGKILL);
		waitpid(pid, &st, 0);
	}
}

/* Waits until nobody wants to look any more. Says first whether it has the identity. */
static void be_looked_at(int sock, uid_t uid)
{
	char other = 1;

	if (uid && (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
		other = 0;
	if (write(sock, &other, 1) == 1)
		(void)!read(sock, &other, 1);
}

/* For probes that need a child to look at. Where nobody can take on the identity
 * (0: ours), nobody of another is met. */
static int with_child(int (*probe)(pid_t pid), uid_t uid)
{
	int sv[2], rc;
	char other = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return errno;
	pid = fork();
	if (pid == 0) {
		close(sv[0]);
		be_looked_at(sv[1], uid);
		_exit(0);
	}
	rc = pid < 0 ? errno : 0;
	close(sv[1]);
	if (rc == 0)
		rc = read(sv[0], &other, 1) != 1 ? EIO : other ? probe(pid) : 0;
	close(sv[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return rc;
}

static int look(pid_t pid)
{
	return read_probe(pid, (uintptr_t)probe_text);
}

static int seize(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC) < 0)
		return errno;
	/* detaching needs a stop */
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	waitpid(pid, NULL, __WALL);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	return 0;
}

static int getfd(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), fd, rc;

	if (pidfd < 0)
		return errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, 0, 0);
	rc = fd < 0 && errno != EBADF ? errno : 0;
	if (fd >= 0)
		close(fd);
	close(pidfd);
	return rc;
}

static int user_namespace(void)
{
	int st;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) < 0 ? errno & 0x7f : 0);
	if (pid < 0 || waitpid(pid, &st, 0) < 0)
		return errno;
	return WIFEXITED(st) ? WEXITSTATUS(st) : EIO;
}

static int try_openat2(void)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

	if (fd < 0)
		return errno;
	close((int)fd);
	return 0;
}

static int try_proc(void)
{
	struct statfs fs;

	if (statfs("/proc", &fs) < 0)
		return errno;
	return fs.f_type == PROC_SUPER_MAGIC ? 0 : ENOENT;
}

/* value: the version found, or -errno. */
static int landlock_from(int abi, int *value)
{
	*value = sv_landlock_abi();
	if (*value < 0)
		return -*value;
	return *value < abi ? ENOSYS : 0;
}

static int probe(enum sv_facility_id id, int *value)
{
	struct trip t;

	switch (id) {
	case SV_FACILITY_LISTENER: round_trip(&t); return t.listener;
	case SV_FACILITY_WAIT_KILLABLE: round_trip(&t); return t.killable;
	case SV_FACILITY_READ_MEMORY: round_trip(&t); return t.memory;
	case SV_FACILITY_INJECT: round_trip(&t); return t.inject;
	case SV_FACILITY_SYNC_WAKE_UP: round_trip(&t); return t.sync;
	case SV_FACILITY_LANDLOCK: return landlock_from(1, value);
	case SV_FACILITY_LANDLOCK_SCOPE: return landlock_from(6, value);
	case SV_FACILITY_EXEC_STOP: return with_child(seize, 0);
	case SV_FACILITY_PIDFD_GETFD: return with_child(getfd, 0);
	case SV_FACILITY_PROC: return try_proc();
	case SV_FACILITY_OPENAT2: return try_openat2();
	case SV_FACILITY_USER_NAMESPACES: return user_namespace();
	case SV_FACILITY_IDENTITIES: return with_child(look, NOBODY);
	case SV_FACILITIES: break;
	}
	return ENOSYS;
}

int sv_facility(int i, struct sv_facility *out)
{
	int value = 0;

	if (i < 0 || i >= SV_FACILITIES)
		return -ENOENT;
	memset(out, 0, sizeof(*out));
	out->err = probe((enum sv_facility_id)i, &value);
	out->ok = out->err == 0;
	out->need = text[i].need;
	out->value = value < 0 ? 0 : value;
	snprintf(out->name, sizeof(out->name), "%s", text[i].name);
	snprintf(out->buys, sizeof(out->buys), "%s", text[i].buys);
	if (i == SV_FACILITY_LISTENER && out->err == EBUSY)
		snprintf(out->detail, sizeof(out->detail), "another supervisor already holds this tree");
	else if (!out->ok)
		snprintf(out->detail, sizeof(out->detail), "%s (%s)", strerror(out->err), text[i].fix);
	return 0;
}

int sv_need_duplicates(pid_t pid, struct sv_err *err)
{
	const int rc = getfd(pid);

	return rc ? sv_fail(err, rc, "pidfd-getfd", "network rules are carried out on duplicates of "
			    "sockets, which this machine refuses (pidfd_getfd: %s): a container's "
			    "profile must allow it", strerror(rc)) : 0;
}
