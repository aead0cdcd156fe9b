/* naive.c - a supervisor as it must not be built, to prove that the race
 * programs beside it can win: it checks what it was shown and then lets
 * something else happen.
 *
 *	naive MODE FORBIDDEN -- COMMAND [ARGUMENT...]
 *
 * string...	reads the path, compares its start with FORBIDDEN, continues
 * resolve...	the same on the resolved path (dirfd, cwd, links), continues
 * behalf	resolves and compares, then opens the path again by itself
 * how		refuses to open FORBIDDEN for writing after reading open_how
 * exec, argv	compares execve's path, or its argv[1], and continues
 * script	compares the interpreter in a script's first line and continues
 * address, message	compare the address of connect and sendto, of sendmsg, and continue
 * family, type	the same, but only for sockets that have a use for such an address
 *
 * Used by these tests only. Exit status: the command's, 2 for our own errors. */
#define _GNU_SOURCE
#include "naive_net.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
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

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif

/* True = continue; false = refused, or already answered. */
typedef bool judge_fn(struct ask *a);

struct mode {
	const char *name;
	judge_fn *judge;
	struct call calls[CALLS];
};

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static bool copy_path(pid_t pid, uint64_t from, char *out)
{
	size_t done = 0;

	while (done < PATH_MAX) {
		size_t n = 256 - ((from + done) & 255);

		if (n > PATH_MAX - done)
			n = PATH_MAX - done;
		if (!copy_in(pid, from + done, out + done, n))
			return false;
		if (memchr(out + done, 0, n))
			return true;
		done += n;
	}
	return false;
}

static bool below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == 0 || path[n] == '/');
}

static bool ask_path(const struct ask *a, int arg, char *out)
{
	return copy_path((pid_t)a->n.pid, a->n.data.args[arg], out);
}

static bool judge_string(struct ask *a)
{
	char path[PATH_MAX];

	if (!ask_path(a, a->call->path, path) || below(path, a->forbidden))
		return false;
	if (a->call->path2 == NONE)
		return true;
	return ask_path(a, a->call->path2, path) && !below(path, a->forbidden);
}

/* Resolves one path of the call; a name that does not exist yet by its folder. */
static bool resolve(const struct ask *a, int dir, int arg, char *out)
{
	char path[PATH_MAX];
	char full[PATH_MAX * 2];
	char *slash;
	int at = dir == NONE ? AT_FDCWD : (int)a->n.data.args[dir];

	if (!ask_path(a, arg, path))
		return false;
	if (path[0] == '/')
		snprintf(full, sizeof(full), "%s", path);
	else if (at == AT_FDCWD)
		snprintf(full, sizeof(full), "/proc/%d/cwd/%s", (int)a->n.pid, path);
	else
		snprintf(full, sizeof(full), "/proc/%d/fd/%d%s%s", (int)a->n.pid, at, path[0] ? "/" : "",
			 path);
	if (realpath(full, out))
		return true;
	slash = strrchr(full, '/');
	if (errno != ENOENT || !slash)
		return false;
	*slash = 0;
	return realpath(full, out) != NULL;
}

static bool judge_resolved(struct ask *a)
{
	char real[PATH_MAX];

	if (!resolve(a, a->call->dir, a->call->path, real) || below(real, a->forbidden))
		return false;
	if (a->call->path2 == NONE)
		return true;
	return resolve(a, a->call->dir2, a->call->path2, real) && !below(real, a->forbidden);
}

static bool judge_behalf(struct ask *a)
{
	struct seccomp_notif_addfd add = { .id = a->n.id, .flags = SECCOMP_ADDFD_FLAG_SEND };
	uint64_t *args = (uint64_t *)a->n.data.args;
	char path[PATH_MAX];
	char real[PATH_MAX];
	int fd;

	if (!resolve(a, a->call->dir, a->call->path, real) || below(real, a->forbidden))
		return false;
	if (!ask_path(a, a->call->path, path))
		return false;
	fd = open(path, (int)args[a->call->path + 1] | O_CLOEXEC, args[a->call->path + 2] & 07777);
	if (fd < 0)
		return false;
	add.srcfd = (uint32_t)fd;
	ioctl(a->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	close(fd);
	a->n.id = 0;
	return false;
}

static bool judge_how(struct ask *a)
{
	struct open_how how;
	char path[PATH_MAX];
	bool writes;

	if (!ask_path(a, a->call->path, path) ||
	    !copy_in((pid_t)a->n.pid, a->n.data.args[2], &how, sizeof(how)))
		return false;
	writes = (how.flags & O_ACCMODE) != O_RDONLY || (how.flags & O_TRUNC);
	return !(writes && below(path, a->forbidden));
}

static bool judge_argv(struct ask *a)
{
	uint64_t at = a->n.data.args[1] + sizeof(uint64_t);
	uint64_t word;
	char text[PATH_MAX];

	if (!copy_in((pid_t)a->n.pid, at, &word, sizeof(word)))
		return false;
	if (word == 0)
		return true;
	return copy_path((pid_t)a->n.pid, word, text) && strcmp(text, a->forbidden) != 0;
}

/* A script by the interpreter that its first line names. */
static bool judge_script(struct ask *a)
{
	char path[PATH_MAX];
	char line[PATH_MAX] = "";
	FILE *f;
	bool ok;

	if (!ask_path(a, a->call->path, path))
		return false;
	f = fopen(path, "re");
	ok = f && fgets(line, sizeof(line), f) && strncmp(line, "#!", 2) == 0;
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	return !ok || !below(line + 2, a->forbidden);
}

/* A program by its bytes, which must not be those of the forbidden file. */
static bool judge_bytes(struct ask *a)
{
	char path[PATH_MAX], one[4096], two[4096];
	FILE *f, *g;
	bool differ = false;
	size_t n;

	if (!ask_path(a, a->call->path, path))
		return false;
	f = fopen(path, "re");
	g = fopen(a->forbidden, "re");
	while (f && g && !differ && (n = fread(one, 1, sizeof(one), f)) > 0)
		differ = fread(two, 1, sizeof(two), g) != n || memcmp(one, two, n) != 0;
	if (f)
		fclose(f);
	if (g)
		fclose(g);
	return differ;
}

#ifdef SYS_open
#define OLD_OPEN { SYS_open, NONE, 0, NONE, NONE },
#define OLD_CHANGE                                                                                 \
	{ SYS_mkdir, NONE, 0, NONE, NONE }, { SYS_unlink, NONE, 0, NONE, NONE },                   \
		{ SYS_rename, NONE, 0, NONE, 1 }, { SYS_link, NONE, 0, NONE, 1 },                  \
		{ SYS_chmod, NONE, 0, NONE, NONE }, { SYS_symlink, NONE, 1, NONE, NONE },
#define OLD_UNLINK { SYS_unlink, NONE, 0, NONE, NONE },
#define OLD_RENAME { SYS_rename, NONE, 0, NONE, 1 }, { SYS_link, NONE, 0, NONE, 1 },
#else
#define OLD_OPEN
#define OLD_CHANGE
#define OLD_UNLINK
#define OLD_RENAME
#endif

/* Left out of resolve-change: renameat2, by which the races swap their links. */
static const struct mode modes[] = {
	{ "string-open", judge_string,
	  { OLD_OPEN { SYS_openat, 0, 1, NONE, NONE }, { SYS_openat2, 0, 1, NONE, NONE } } },
	{ "string-unlink", judge_string, { OLD_UNLINK { SYS_unlinkat, 0, 1, NONE, NONE } } },
	{ "string-rename", judge_string,
	  { OLD_RENAME { SYS_renameat2, 0, 1, 2, 3 }, { SYS_linkat, 0, 1, 2, 3 } } },
	{ "resolve-open", judge_resolved, { OLD_OPEN { SYS_openat, 0, 1, NONE, NONE } } },
	{ "resolve-change", judge_resolved,
	  { OLD_CHANGE { SYS_mkdirat, 0, 1, NONE, NONE }, { SYS_unlinkat, 0, 1, NONE, NONE },
	    { SYS_renameat, 0, 1, 2, 3 }, { SYS_linkat, 0, 1, 2, 3 },
	    { SYS_fchmodat, 0, 1, NONE, NONE }, { SYS_symlinkat, 1, 2, NONE, NONE },
	    { SYS_truncate, NONE, 0, NONE, NONE }, { SYS_setxattr, NONE, 0, NONE, NONE },
	    { SYS_inotify_add_watch, NONE, 1, NONE, NONE } } },
	{ "string-look", judge_string,
	  { { SYS_newfstatat, 0, 1, NONE, NONE }, { SYS_statx, 0, 1, NONE, NONE } } },
	{ "resolve-look", judge_resolved,
	  { { SYS_newfstatat, 0, 1, NONE, NONE }, { SYS_statx, 0, 1, NONE, NONE } } },
	{ "behalf", judge_behalf, { OLD_OPEN { SYS_openat, 0, 1, NONE, NONE } } },
	{ "how", judge_how, { { SYS_openat2, 0, 1, NONE, NONE } } },
	{ "exec", judge_string, { { SYS_execve, NONE, 0, NONE, NONE } } },
	{ "resolve-exec", judge_resolved, { { SYS_execve, NONE, 0, NONE, NONE } } },
	{ "script", judge_script, { { SYS_execve, NONE, 0, NONE, NONE } } },
	{ "bytes", judge_bytes, { { SYS_execve, NONE, 0, NONE, NONE } } },
	{ "argv", judge_argv, { { SYS_execve, NONE, 0, NONE, NONE } } },
	{ "address", judge_address,
	  { { SYS_connect, NONE, 1, NONE, NONE }, { SYS_sendto, NONE, 4, NONE, NONE } } },
	{ "message", judge_message, { { SYS_sendmsg, NONE, 1, NONE, NONE } } },
	{ "family", judge_family, { { SYS_connect, NONE, 1, NONE, NONE } } },
	{ "type", judge_type, { { SYS_sendmsg, NONE, 1, NONE, NONE } } },
};

static int install(const struct mode *m)
{
	struct sock_filter f[2 * CALLS + 2];
	struct sock_fprog prog = { .filter = f };
	unsigned short n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, nr));
	for (int i = 0; i < CALLS && (m->calls[i].nr || m->calls[i].path); i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      (uint32_t)m->calls[i].nr, 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prog.len = n;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
}

/* The listener goes to the parent by number: it can fetch it, as we are its
 * child and stand still until it has. */
static void run_command(const struct mode *m, int talk, char **argv)
{
	int fd;
	char go;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = install(m);
	if (fd < 0)
		fail("seccomp");
	if (write(talk, &fd, sizeof(fd)) != sizeof(fd) || read(talk, &go, 1) != 1)
		_exit(2);
	close(fd);
	execv(argv[0], argv);
	fail(argv[0]);
}

static int fetch_listener(pid_t child, int talk)
{
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	int number;
	int fd;

	if (pidfd < 0 || read(talk, &number, sizeof(number)) != sizeof(number))
		fail("listener");
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	if (fd < 0 || write(talk, "g", 1) != 1)
		fail("pidfd_getfd");
	close(pidfd);
	ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, 1UL);
	return fd;
}

static void answer(struct ask *a, const struct mode *m)
{
	struct seccomp_notif_resp resp = { 0 };
	bool go;

	for (a->call = m->calls; a->call->nr != a->n.data.nr; a->call++)
		;
	resp.id = a->n.id;
	go = m->judge(a);
	if (a->n.id == 0)
		return;
	resp.flags = go ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	resp.error = go ? 0 : -EACCES;
	ioctl(a->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

static int serve(struct ask *a, const struct mode *m, pid_t child)
{
	int status = 0;

	for (;;) {
		struct pollfd p = { .fd = a->listener, .events = POLLIN };

		if (poll(&p, 1, 200) == 0 || !(p.revents & POLLIN)) {
			if (waitpid(child, &status, WNOHANG) == child)
				return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			continue;
		}
		memset(&a->n, 0, sizeof(a->n));
		if (ioctl(a->listener, SECCOMP_IOCTL_NOTIF_RECV, &a->n) == 0)
			answer(a, m);
	}
}

int main(int argc, char **argv)
{
	struct ask a = { 0 };
	const struct mode *m = NULL;
	int talk[2];
	pid_t child;

	for (size_t i = 0; argc > 4 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(modes[i].name, argv[1]) == 0)
			m = &modes[i];
	if (!m || strcmp(argv[3], "--") != 0) {
		fprintf(stderr, "usage: naive MODE FORBIDDEN -- COMMAND [ARGUMENT...]\n");
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk))
		fail("socketpair");
	child = fork();
	if (child == 0)
		run_command(m, talk[1], argv + 4);
	if (child < 0)
		fail("fork");
	a.listener = fetch_listener(child, talk[0]);
	a.forbidden = argv[2];
	return serve(&a, m, child);
}
