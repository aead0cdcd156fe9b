/* attacks_exec.c - ways to run a program, or arguments, that may not be run. */
#include "attacks.h"

static char *const plain[] = { (char *)(uintptr_t)"innocent", NULL };

static void in_work(char *out, const struct tree *t, const char *name)
{
	path_of(out, "%.4000s/%s", t->work, name);
}

static bool copy(const char *from, int to)
{
	char buf[65536];
	int fd = open(from, O_RDONLY);
	ssize_t n;

	if (fd < 0 || to < 0)
		return false;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			return false;
	close(fd);
	return n == 0;
}

int at_exec(const struct tree *t)
{
	return runs(t->forbidden, plain, 'F');
}

int at_exec_argv(const struct tree *t)
{
	char *const argv[] = { plain[0], (char *)(uintptr_t)"bad", NULL };

	return runs(t->tool, argv, 'F');
}

/* The other side of the rule: the same program with another word runs. */
int at_exec_argv_good(const struct tree *t)
{
	char *const argv[] = { plain[0], (char *)(uintptr_t)"good", NULL };

	return runs(t->tool, argv, 'A');
}

int at_exec_symlink(const struct tree *t)
{
	char path[PATH_MAX];
	int verdict;

	in_work(path, t, "e1");
	if (symlink(t->forbidden, path))
		return ABSENT;
	verdict = runs(path, plain, 'F');
	unlink(path);
	return verdict;
}

int at_exec_hardlink(const struct tree *t)
{
	char path[PATH_MAX];
	int verdict;

	in_work(path, t, "e2");
	if (link(t->forbidden, path))
		return BLOCKED;
	verdict = runs(path, plain, 'F');
	unlink(path);
	return verdict;
}

int at_exec_renamed(const struct tree *t)
{
	char path[PATH_MAX];
	int verdict;

	in_work(path, t, "e3");
	if (rename(t->forbidden, path))
		return BLOCKED;
	verdict = runs(path, plain, 'F');
	if (rename(path, t->forbidden))
		perror(path);
	return verdict;
}

int at_exec_copied(const struct tree *t)
{
	char path[PATH_MAX];
	int fd;
	int verdict = BLOCKED;

	in_work(path, t, "e4");
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (copy(t->forbidden, fd) && close(fd) == 0)
		verdict = runs(path, plain, 'F');
	unlink(path);
	return verdict;
}

int at_exec_script(const struct tree *t)
{
	char path[PATH_MAX];
	int fd;
	int verdict;

	in_work(path, t, "e5");
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (fd < 0 || dprintf(fd, "#!%s\n", t->forbidden) < 0 || close(fd))
		return ABSENT;
	verdict = runs(path, plain, 'F');
	unlink(path);
	return verdict;
}

int at_exec_shell(const struct tree *t)
{
	char *const argv[] = { (char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c",
			       (char *)(uintptr_t)"\"$0\"; :", (char *)(uintptr_t)t->forbidden,
			       NULL };

	return runs("/bin/sh", argv, 'F');
}

int at_exec_proc_root(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/proc/self/root%.4000s", t->forbidden);
	return runs(path, plain, 'F');
}

static long by_opath(const struct tree *t)
{
	return syscall(SYS_execveat, open(t->forbidden, O_PATH | O_CLOEXEC), "", plain, environ,
		       AT_EMPTY_PATH);
}

int at_exec_opath(const struct tree *t)
{
	return runs_by(by_opath, t, 'F');
}

static long by_proc_fd(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/proc/self/fd/%d", open(t->forbidden, O_PATH));
	return execv(path, plain);
}

int at_exec_proc_fd(const struct tree *t)
{
	return runs_by(by_proc_fd, t, 'F');
}

static long by_dirfd(const struct tree *t)
{
	char dir[PATH_MAX];

	path_of(dir, "%s", t->forbidden);
	*strrchr(dir, '/') = 0;
	return syscall(SYS_execveat, open(dir, O_PATH | O_CLOEXEC), "./forbidden", plain, environ,
		       0);
}

int at_exec_dirfd(const struct tree *t)
{
	return runs_by(by_dirfd, t, 'F');
}

static long by_memfd(const struct tree *t)
{
	int fd = memfd_create("innocent", MFD_CLOEXEC);

	if (!copy(t->allowed, fd))
		return -1;
	return syscall(SYS_execveat, fd, "", plain, environ, AT_EMPTY_PATH);
}

int at_exec_memfd(const struct tree *t)
{
	return runs_by(by_memfd, t, 'A');
}

static long by_memfd_path(const struct tree *t)
{
	char path[PATH_MAX];
	int fd = memfd_create("innocent", 0);

	if (!copy(t->allowed, fd))
		return -1;
	path_of(path, "/proc/self/fd/%d", fd);
	return execv(path, plain);
}

int at_exec_memfd_path(const struct tree *t)
{
	return runs_by(by_memfd_path, t, 'A');
}

static long by_deleted(const struct tree *t)
{
	char path[PATH_MAX];
	int fd;
	int run;

	in_work(path, t, "e6");
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (!copy(t->forbidden, fd) || close(fd))
		return -1;
	run = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
	return syscall(SYS_execveat, run, "", plain, environ, AT_EMPTY_PATH);
}

int at_exec_deleted(const struct tree *t)
{
	return runs_by(by_deleted, t, 'F');
}

int at_exec_loader(const struct tree *t)
{
	static const char *const loaders[] = { "/lib64/ld-linux-x86-64.so.2",
					       "/lib/ld-linux-aarch64.so.1" };

	for (size_t i = 0; i < sizeof(loaders) / sizeof(loaders[0]); i++) {
		char *const argv[] = { (char *)(uintptr_t)loaders[i],
				       (char *)(uintptr_t)t->forbidden, NULL };

		if (access(loaders[i], X_OK) == 0)
			return runs(loaders[i], argv, 'F');
	}
	return ABSENT;
}

/* Not dumpable: what a supervisor that cannot look would have to let pass. */
static long undumpable(const struct tree *t)
{
	char exe[PATH_MAX];

	path_of(exe, "%s", t->forbidden);
	if (syscall(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 0, 0, 0, 0))
		return -1;
	return execv(exe, plain);
}

int at_exec_undumpable(const struct tree *t)
{
	return runs_by(undumpable, t, 'F');
}
