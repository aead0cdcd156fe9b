/* attacks_args.c - arguments that cannot be read: every path call must answer
 * such a pointer with an error, never with success and never with silence. */
#include "attacks.h"

#include <linux/openat2.h>
#include <sys/un.h>

#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#endif
#ifndef SYS_removexattrat
#define SYS_removexattrat 466
#endif

enum { PAGE = 4096, ONES = 6 };

/* Which arguments are pointers that must be readable; the rest stays as given.
 * A good path stands where another argument's pointer is on trial. */
struct call {
	const char *name;
	long nr;
	uintptr_t args[6];
	unsigned char on_trial;		/* bits of the arguments tried in turn */
};

static char here[] = ".";
static char value[64];
static struct open_how how = { .flags = O_RDONLY };
static struct {
	uint64_t value;
	uint32_t size, flags;
} attr = { (uintptr_t)value, sizeof(value), 0 };

#define P ((uintptr_t)here)
#define V ((uintptr_t)value)
#define NAME ((uintptr_t)"user.a")
#define CWD ((uintptr_t)AT_FDCWD)

static const struct call calls[] = {
	{ "openat", SYS_openat, { CWD, P, O_RDONLY }, 1 << 1 },
	{ "openat creating", SYS_openat, { CWD, P, O_CREAT | O_RDWR, 0600 }, 1 << 1 },
	{ "openat2", SYS_openat2, { CWD, P, (uintptr_t)&how, sizeof(how) }, 1 << 1 | 1 << 2 },
	{ "truncate", SYS_truncate, { P, 0 }, 1 << 0 },
	{ "unlinkat", SYS_unlinkat, { CWD, P, 0 }, 1 << 1 },
	{ "renameat2", SYS_renameat2, { CWD, P, CWD, P, 0 }, 1 << 1 | 1 << 3 },
	{ "linkat", SYS_linkat, { CWD, P, CWD, P, 0 }, 1 << 1 | 1 << 3 },
	{ "symlinkat", SYS_symlinkat, { P, CWD, P }, 1 << 0 | 1 << 2 },
	{ "mkdirat", SYS_mkdirat, { CWD, P, 0700 }, 1 << 1 },
	{ "mknodat", SYS_mknodat, { CWD, P, S_IFIFO | 0600, 0 }, 1 << 1 },
	{ "fchmodat", SYS_fchmodat, { CWD, P, 0700 }, 1 << 1 },
	{ "fchownat", SYS_fchownat, { CWD, P, 0, 0, 0 }, 1 << 1 },
	{ "utimensat", SYS_utimensat, { CWD, P, 0, 0 }, 1 << 1 },
	{ "utimensat times", SYS_utimensat, { CWD, P, P, 0 }, 1 << 2 },
	{ "setxattr", SYS_setxattr, { P, NAME, V, 64, 0 }, 1 << 0 | 1 << 1 | 1 << 2 },
	{ "lsetxattr", SYS_lsetxattr, { P, NAME, V, 64, 0 }, 1 << 0 | 1 << 1 | 1 << 2 },
	{ "fsetxattr", SYS_fsetxattr, { 0, NAME, V, 64, 0 }, 1 << 1 | 1 << 2 },
	{ "setxattrat", SYS_setxattrat, { CWD, P, 0, NAME, (uintptr_t)&attr, sizeof(attr) },
	  1 << 1 | 1 << 3 | 1 << 4 },
	{ "removexattr", SYS_removexattr, { P, NAME }, 1 << 0 | 1 << 1 },
	{ "fremovexattr", SYS_fremovexattr, { 0, NAME }, 1 << 1 },
	{ "removexattrat", SYS_removexattrat, { CWD, P, 0, NAME }, 1 << 1 | 1 << 3 },
	{ "chdir", SYS_chdir, { P }, 1 << 0 },
	{ "execve", SYS_execve, { (uintptr_t)"/bin/true", P, P }, 1 << 0 | 1 << 1 | 1 << 2 },
	{ "execveat", SYS_execveat, { CWD, (uintptr_t)"/bin/true", P, P, 0 }, 1 << 1 | 1 << 2 },
#ifdef SYS_open
	{ "open", SYS_open, { P, O_RDONLY }, 1 << 0 },
	{ "creat", SYS_creat, { P, 0600 }, 1 << 0 },
	{ "unlink", SYS_unlink, { P }, 1 << 0 },
	{ "rmdir", SYS_rmdir, { P }, 1 << 0 },
	{ "rename", SYS_rename, { P, P }, 1 << 0 | 1 << 1 },
	{ "link", SYS_link, { P, P }, 1 << 0 | 1 << 1 },
	{ "symlink", SYS_symlink, { P, P }, 1 << 0 | 1 << 1 },
	{ "mkdir", SYS_mkdir, { P, 0700 }, 1 << 0 },
	{ "mknod", SYS_mknod, { P, S_IFIFO | 0600, 0 }, 1 << 0 },
	{ "chmod", SYS_chmod, { P, 0700 }, 1 << 0 },
	{ "chown", SYS_chown, { P, 0, 0 }, 1 << 0 },
	{ "lchown", SYS_lchown, { P, 0, 0 }, 1 << 0 },
	{ "utimes", SYS_utimes, { P, 0 }, 1 << 0 },
#endif
};

/* Three unreadable places: none, one that starts as text and runs off its page,
 * and one that is mapped but may not be read. */
static void bad_places(uintptr_t bad[ONES])
{
	char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);

	if (two == MAP_FAILED || mprotect(two + PAGE, PAGE, PROT_NONE))
		_exit(2);
	memset(two, 'x', PAGE);
	bad[0] = 1;
	bad[1] = (uintptr_t)two + PAGE - 3;
	bad[2] = (uintptr_t)two + PAGE;
	bad[3] = (uintptr_t)-4096;
	bad[4] = (uintptr_t)1 << 62;
	bad[5] = (uintptr_t)two + PAGE - 1;
}

/* The pointer's own error, or that of a call which is refused whatever it holds. */
static bool refused(int err)
{
	return err == EFAULT || err == EACCES || err == EPERM || err == ENOSYS || err == EOPNOTSUPP;
}

/* In a process of its own: an execve that works would not come back. */
static int one(const struct call *c, int arg, uintptr_t bad)
{
	uintptr_t a[6];
	int status = 0;
	pid_t pid;

	memcpy(a, c->args, sizeof(a));
	a[arg] = bad;
	pid = fork();
	if (pid == 0) {
		alarm(5);
		errno = 0;
		_exit(syscall(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? errno : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		_exit(2);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int at_bad_pointers(const struct tree *t)
{
	uintptr_t bad[ONES];
	int verdict = BLOCKED;

	if (chdir(t->work))
		return ABSENT;
	bad_places(bad);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		for (int n = 0; n < 6 * ONES; n++) {
			int arg = n / ONES;
			int err;

			if (!(calls[i].on_trial & 1 << arg))
				continue;
			err = one(&calls[i], arg, bad[n % ONES]);
			if (refused(err))
				continue;
			fprintf(stderr, "bad_pointers: %s argument %d at %#lx: errno %d\n",
				calls[i].name, arg, (unsigned long)bad[n % ONES], err);
			verdict = REACHED;
		}
	}
	errno = 0;
	return verdict;
}

/* No NUL before the kernel's limit: too long, not cut off and then opened. */
int at_endless_path(const struct tree *t)
{
	char *path = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);

	(void)t;
	if (path == MAP_FAILED)
		return ABSENT;
	memset(path, '/', 4 * PAGE);
	return worked(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY));
}

/* The last byte that may be read holds the NUL: a whole page must not be asked. */
int at_path_at_page_end(const struct tree *t)
{
	char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	char *path;

	if (two == MAP_FAILED || mprotect(two + PAGE, PAGE, PROT_NONE))
		return ABSENT;
	path = two + PAGE - strlen(t->data) - 1;
	strcpy(path, t->data);
	return reads_secret(path);
}

int at_allowed_at_page_end(const struct tree *t)
{
	char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	char *path;

	if (two == MAP_FAILED || mprotect(two + PAGE, PAGE, PROT_NONE))
		return ABSENT;
	path = two + PAGE - strlen(t->readonly) - 1;
	strcpy(path, t->readonly);
	return worked(open(path, O_RDONLY));
}

int at_how_too_big(const struct tree *t)
{
	struct {
		struct open_how head;
		uint64_t more[4];
	} big = { .head = { .flags = O_RDONLY }, .more = { 0, 1 } };

	return worked(syscall(SYS_openat2, AT_FDCWD, t->readonly, &big, sizeof(big)));
}

int at_empty_path(const struct tree *t)
{
	(void)t;
	return worked(open("", O_RDONLY));
}
