/* tracee.c - reads a target: memory, descriptors, /proc facts. */
#include "decode/tracee.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

enum { PAGE = 4096, STATUS_MAX = 8192 };

static int open_at(const struct sv_tracee *t, const char *leaf, int flags)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "%d/%s", (int)t->call->tid, leaf);
	fd = openat(t->proc_fd, name, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The second rung: profiles that refuse process_vm_readv(2) still let a
 * supervisor of the same uid read /proc/TID/mem. */
static ssize_t read_proc_mem(const struct sv_tracee *t, uint64_t addr, void *buf, size_t n)
{
	cleanup_fd int fd = open_at(t, "mem", O_RDONLY);
	ssize_t k;

	if (fd < 0)
		return -EPERM;
	k = pread(fd, buf, n, (off_t)addr);
	if (k < 0)
		return errno == EIO ? -EFAULT : -errno;
	return k == 0 ? -EFAULT : k;
}

/* Never crosses a page, so a short string before an unmapped page is whole. */
static ssize_t read_chunk(const struct sv_tracee *t, uint64_t addr, void *buf, size_t n)
{
	size_t left = PAGE - (size_t)(addr & (PAGE - 1));
	struct iovec local = { buf, n < left ? n : left };
	struct iovec remote = { (void *)(uintptr_t)addr, local.iov_len };
	ssize_t k = process_vm_readv(t->call->tid, &local, 1, &remote, 1, 0);

	if (k > 0)
		return k;
	if (k == 0 || errno == EFAULT)
		return -EFAULT;
	if (errno == EPERM || errno == ENOSYS)
		return read_proc_mem(t, addr, buf, local.iov_len);
	return -errno;
}

int sv_read_mem(const struct sv_tracee *t, uint64_t addr, void *buf, size_t n)
{
	size_t done = 0;

	if (n && addr > UINT64_MAX - n)
		return -EFAULT;
	while (done < n) {
		ssize_t k = read_chunk(t, addr + done, (char *)buf + done, n - done);

		if (k < 0)
			return (int)k;
		done += (size_t)k;
	}
	return 0;
}

int sv_read_str(const struct sv_tracee *t, uint64_t addr, char *buf, size_t cap)
{
	size_t done = 0;

	while (done < cap) {
		ssize_t k;
		char *nul;

		if (addr > UINT64_MAX - done)
			return -EFAULT;
		k = read_chunk(t, addr + done, buf + done, cap - done);
		if (k < 0)
			return (int)k;
		nul = memchr(buf + done, 0, (size_t)k);
		if (nul)
			return (int)(nul - buf);
		done += (size_t)k;
	}
	return -ENAMETOOLONG;
}

int sv_read_struct(const struct sv_tracee *t, uint64_t addr, uint64_t size, void *out,
		   size_t known)
{
	uint8_t raw[PAGE];
	size_t i;
	int rc;

	if (size < known)
		return -EINVAL;
	if (size > sizeof(raw))
		return -E2BIG;
	rc = sv_read_mem(t, addr, raw, (size_t)size);
	if (rc < 0)
		return rc;
	for (i = known; i < size; i++)
		if (raw[i])
			return -E2BIG;
	memcpy(out, raw, known);
	return 0;
}

int sv_still_valid(const struct sv_tracee *t)
{
	uint64_t id = t->call->id;

	return ioctl(t->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0 ? -ENOENT : 0;
}

static int again(int fd)
{
	int n = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return n < 0 ? -errno : n;
}

int sv_tracee_cwd(const struct sv_tracee *t)
{
	return t->cwd >= 0 ? again(t->cwd) : open_at(t, "cwd", O_PATH | O_DIRECTORY);
}

int sv_tracee_fd(const struct sv_tracee *t, int fd)
{
	char leaf[32];
	int n, i;

	if (fd < 0)
		return -EBADF;
	for (i = 0; i < t->nfds; i++)
		if (t->fds[i].number == fd)
			return t->fds[i].fd < 0 ? t->fds[i].fd : again(t->fds[i].fd);
	snprintf(leaf, sizeof(leaf), "fd/%d", fd);
	n = open_at(t, leaf, O_PATH);
	return n == -ENOENT ? -EBADF : n;
}

void sv_tracee_prefetch(struct sv_tracee *t, int a, int b, int c)
{
	const int wanted[3] = { a, b, c };
	int i;

	t->cwd = sv_tracee_cwd(t);
	for (i = 0; i < 3; i++) {
		if (wanted[i] < 0)
			continue;
		t->fds[t->nfds].fd = sv_tracee_fd(t, wanted[i]);
		t->fds[t->nfds].is_path = sv_tracee_fd_is_path(t, wanted[i]);
		t->fds[t->nfds++].number = wanted[i];
	}
}

void sv_tracee_forget(struct sv_tracee *t)
{
	while (t->nfds > 0)
		sv_close_fd(&t->fds[--t->nfds].fd);
	sv_close_fd(&t->cwd);
	t->cwd = -1;
}

/* The value behind "Key:\t" in a status text, NULL when absent. */
static const char *field(const char *text, const char *key)
{
	size_t n = strlen(key);
	const char *p = text;

	while (p) {
		if (!strncmp(p, key, n) && p[n] == ':')
			return p + n + 1;
		p = strchr(p, '\n');
		if (p)
			p++;
	}
	return NULL;
}

static int read_status(const struct sv_tracee *t, char *buf, size_t cap)
{
	cleanup_fd int fd = open_at(t, "status", O_RDONLY);
	ssize_t k;

	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	k = read(fd, buf, cap - 1);
	if (k <= 0)
		return -ESRCH;
	buf[k] = 0;
	return 0;
}

bool sv_tracee_fd_is_path(const struct sv_tracee *t, int fd)
{
	char leaf[32], text[256];
	cleanup_fd int info = -1;
	const char *flags;
	ssize_t k;
	int i;

	for (i = 0; i < t->nfds; i++)
		if (t->fds[i].number == fd)
			return t->fds[i].is_path;
	snprintf(leaf, sizeof(leaf), "fdinfo/%d", fd);
	info = open_at(t, leaf, O_RDONLY);
	k = info < 0 ? 0 : read(info, text, sizeof(text) - 1);
	text[k > 0 ? k : 0] = 0;
	flags = field(text, "flags");
	return flags && strtoul(flags, NULL, 8) & O_PATH;
}

static int status_number(const struct sv_tracee *t, const char *key, int base, unsigned long *out)
{
	char text[STATUS_MAX];
	const char *v;
	int rc = read_status(t, text, sizeof(text));

	if (rc < 0)
		return rc;
	v = field(text, key);
	if (!v)
		return -EPROTO;
	*out = strtoul(v, NULL, base);
	return 0;
}

int sv_tracee_umask(const struct sv_tracee *t, mode_t *out)
{
	unsigned long v;
	int rc = status_number(t, "Umask", 8, &v);

	if (rc < 0)
		return rc;
	*out = (mode_t)(v & 0777);
	return 0;
}

static int status_pid(const struct sv_tracee *t, const char *key, pid_t *out)
{
	unsigned long v;
	int rc = status_number(t, key, 10, &v);

	if (rc < 0)
		return rc;
	*out = (pid_t)v;
	return 0;
}

int sv_tracee_tgid(const struct sv_tracee *t, pid_t *out)
{
	return status_pid(t, "Tgid", out);
}

int sv_tracee_parent(const struct sv_tracee *t, pid_t *out)
{
	return status_pid(t, "PPid", out);
}

int sv_tracee_tracer(const struct sv_tracee *t, pid_t *out)
{
	return status_pid(t, "TracerPid", out);
}

/* "Uid:\treal\teff\tsaved\tfs". */
static int read_ids(const char *v, unsigned long ids[4])
{
	char *end = NULL;
	int i;

	for (i = 0; v && i < 4; i++) {
		ids[i] = strtoul(v, &end, 10);
		if (end == v)
			return -EPROTO;
		v = end;
	}
	return v ? 0 : -EPROTO;
}

static int parse_groups(const char *v, struct sv_creds *c)
{
	int n = 0;

	while (v && *v && *v != '\n') {
		char *end;
		unsigned long g = strtoul(v, &end, 10);

		if (end == v)
			break;
		if (n == (int)(sizeof(c->groups) / sizeof(c->groups[0])))
			return -E2BIG;
		c->groups[n++] = (gid_t)g;
		v = end;
		while (*v == ' ')
			v++;
	}
	c->ngroups = n;
	return 0;
}

int sv_tracee_creds(const struct sv_tracee *t, struct sv_creds *out)
{
	char text[STATUS_MAX];
	const char *caps;
	unsigned long uid[4], gid[4];
	int rc = read_status(t, text, sizeof(text));

	if (rc < 0)
		return rc;
	caps = field(text, "CapEff");
	if (read_ids(field(text, "Uid"), uid) || read_ids(field(text, "Gid"), gid) || !caps)
		return -EPROTO;
	out->euid = (uid_t)uid[1];
	out->egid = (gid_t)gid[1];
	out->fsuid = (uid_t)uid[3];
	out->fsgid = (gid_t)gid[3];
	out->caps = strtoull(caps, NULL, 16);
	return parse_groups(field(text, "Groups"), out);
}

void sv_tracee_comm(const struct sv_tracee *t, char *buf, size_t cap)
{
	cleanup_fd int fd = open_at(t, "comm", O_RDONLY);
	ssize_t k = fd < 0 ? 0 : read(fd, buf, cap - 1);

	if (k > 0 && buf[k - 1] == '\n')
		k--;
	buf[k > 0 ? k : 0] = 0;
}

/* /proc/PID/stat after the last ')' of the name: state ppid pgrp session tty. */
static int read_stat(int proc_fd, pid_t pid, pid_t *ppid, pid_t *session, int *tty)
{
	char name[32], text[1024];
	cleanup_fd int fd = -1;
	const char *p;
	ssize_t k;
	int pp, pg, se, tt;
	char st;

	snprintf(name, sizeof(name), "%d/stat", (int)pid);
	fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ESRCH;
	k = read(fd, text, sizeof(text) - 1);
	if (k <= 0)
		return -ESRCH;
	text[k] = 0;
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %c %d %d %d %d", &st, &pp, &pg, &se, &tt) != 5)
		return -EPROTO;
	*ppid = pp;
	*session = se;
	*tty = tt;
	return 0;
}

int sv_tracee_tty(int proc_fd, pid_t pid, int *tty, pid_t *session)
{
	pid_t ppid;

	return read_stat(proc_fd, pid, &ppid, session, tty);
}

bool sv_in_tree(int proc_fd, pid_t pid)
{
	const pid_t self = getpid();
	pid_t ppid, session;
	int tty, depth;

	if (pid == self)
		return false;
	for (depth = 0; depth < 4096 && pid > 1; depth++) {
		if (read_stat(proc_fd, pid, &ppid, &session, &tty) < 0)
			return false;
		if (ppid == self)
			return true;
		pid = ppid;
	}
	return false;
}
