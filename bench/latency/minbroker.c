/* minbroker.c - the least that a broker of openat can do, and no policy.
 *
 * `minbroker CMD [ARG...]` runs CMD with openat notified: RECV, one memory
 * read, ID_VALID, openat2, ADDFD with SEND, close. It is the yardstick for the
 * brokered open: it decides nothing and protects nothing. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

static int install(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = { 4, f };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER |
				    SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &p);
}

static void child(int sock, char **argv)
{
	int fd = install();
	char c;

	/* the number is enough: the table of descriptors is shared until exec */
	if (fd < 0 || write(sock, &fd, sizeof(fd)) != sizeof(fd) || read(sock, &c, 1) != 1)
		_exit(125);
	execvp(argv[0], argv);
	_exit(127);
}

static void serve_one(int listener, const struct seccomp_notif *q)
{
	char path[4096];
	uint64_t addr = q->data.args[1], id = q->id;
	size_t left = 4096 - (size_t)(addr & 4095);
	struct iovec l = { path, left }, r = { (void *)(uintptr_t)addr, left };
	struct open_how how = { .flags = (q->data.args[2] & 0xffffffffU) | O_CLOEXEC };
	struct seccomp_notif_addfd add = { .id = id, .flags = 2, .newfd_flags = O_CLOEXEC };
	struct seccomp_notif_resp no = { .id = id };
	int fd;

	if (how.flags & O_CREAT)
		how.mode = q->data.args[3] & 07777;
	if (process_vm_readv((pid_t)q->pid, &l, 1, &r, 1, 0) < 0)
		path[0] = 0;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0)
		return;
	fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (fd < 0) {
		no.error = -errno;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &no);
		return;
	}
	add.srcfd = (uint32_t)fd;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	close(fd);
}

static void serve(int listener)
{
	union { struct seccomp_notif n; char room[512]; } q;
	struct pollfd p = { listener, POLLIN, 0 };

	for (;;) {
		memset(&q, 0, sizeof(q));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &q.n) == 0)
			serve_one(listener, &q.n);
		else if (errno != EINTR && (poll(&p, 1, 0) < 0 || p.revents & POLLHUP))
			return;
	}
}

int main(int argc, char **argv)
{
	int sv[2], listener, st;
	pid_t pid;

	if (argc < 2 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return 125;
	/* CLONE_FILES */
	pid = (pid_t)syscall(SYS_clone, 0x400 | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		child(sv[1], argv + 1);
	if (pid < 0 || read(sv[0], &listener, sizeof(listener)) != sizeof(listener))
		return 125;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, 1UL);
	if (write(sv[0], "g", 1) != 1)
		return 125;
	serve(listener);
	waitpid(pid, &st, 0);
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}
