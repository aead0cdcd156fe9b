/* attacks_read.c - ways to the content of a file that may not be read. */
#include "attacks.h"

#include <linux/openat2.h>
#include <pthread.h>

int at_open(const struct tree *t)
{
	return reads_secret(t->data);
}

int at_openat2(const struct tree *t)
{
	struct open_how how = { .flags = O_RDONLY };

	return holds_secret(syscall(SYS_openat2, AT_FDCWD, t->data, &how, sizeof(how)));
}

int at_open_inner(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "%.4000s/data", t->inner);
	return reads_secret(path);
}

/* The path must lie below 4 GiB for a 32-bit call. */
int at_int80_open(const struct tree *t)
{
#ifdef __x86_64__
	char *low = mmap(NULL, PATH_MAX, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long rc;

	if (low == MAP_FAILED)
		return ABSENT;
	strcpy(low, t->data);
	__asm__ volatile("int $0x80"
			 : "=a"(rc)
			 : "a"(5L), "b"(low), "c"(0L), "d"(0L)
			 : "memory", "r8", "r9", "r10", "r11");
	if (rc < 0) {
		errno = (int)-rc;
		return BLOCKED;
	}
	return holds_secret(rc);
#else
	(void)t;
	return ABSENT;
#endif
}

int at_x32_open(const struct tree *t)
{
#ifdef __x86_64__
	return holds_secret(syscall(0x40000000L | SYS_open, t->data, O_RDONLY));
#else
	(void)t;
	return ABSENT;
#endif
}

int at_wide_dirfd(const struct tree *t)
{
	unsigned long dirfd = (1UL << 32) | (unsigned int)AT_FDCWD;

	return holds_secret(syscall(SYS_openat, dirfd, t->data, O_RDONLY));
}

int at_handle(const struct tree *t)
{
	struct {
		struct file_handle head;
		char room[MAX_HANDLE_SZ];
	} h = { .head = { .handle_bytes = MAX_HANDLE_SZ } };
	int mount;

	if (name_to_handle_at(AT_FDCWD, t->data, &h.head, &mount, 0))
		return BLOCKED;
	mount = open(t->work, O_RDONLY | O_DIRECTORY);
	return holds_secret(open_by_handle_at(mount, &h.head, O_RDONLY));
}

int at_proc_self_root(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/proc/self/root%.4000s", t->data);
	return reads_secret(path);
}

int at_proc_task_root(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/proc/thread-self/root/proc/%d/root%.4000s", (int)getpid(), t->data);
	return reads_secret(path);
}

int at_proc_self_cwd(const struct tree *t)
{
	return chdir(t->secret) ? BLOCKED : reads_secret("/proc/self/cwd/data");
}

int at_chdir(const struct tree *t)
{
	return chdir(t->secret) ? BLOCKED : reads_secret("data");
}

int at_opath_reopen(const struct tree *t)
{
	char path[PATH_MAX];
	int fd = open(t->data, O_PATH);

	path_of(path, "/proc/self/fd/%d", fd);
	return fd < 0 ? BLOCKED : reads_secret(path);
}

int at_opath_dev_fd(const struct tree *t)
{
	char path[PATH_MAX];
	int fd = open(t->data, O_PATH);

	path_of(path, "/dev/fd/%d", fd);
	return fd < 0 ? BLOCKED : reads_secret(path);
}

int at_opath_dirfd(const struct tree *t)
{
	int dir = open(t->secret, O_PATH | O_DIRECTORY);

	return dir < 0 ? BLOCKED : holds_secret(openat(dir, "data", O_RDONLY));
}

int at_opath_fchdir(const struct tree *t)
{
	int dir = open(t->secret, O_PATH | O_DIRECTORY);

	return dir < 0 || fchdir(dir) ? BLOCKED : reads_secret("data");
}

int at_opath_proc_dir(const struct tree *t)
{
	char path[PATH_MAX];
	int dir = open(t->secret, O_PATH | O_DIRECTORY);

	path_of(path, "/proc/self/fd/%d/data", dir);
	return dir < 0 ? BLOCKED : reads_secret(path);
}

int at_opath_openat2(const struct tree *t)
{
	struct open_how how = { .flags = O_PATH };
	char path[PATH_MAX];
	long fd = syscall(SYS_openat2, AT_FDCWD, t->data, &how, sizeof(how));

	path_of(path, "/proc/self/fd/%ld", fd);
	return fd < 0 ? BLOCKED : reads_secret(path);
}

/* No rule speaks of /dev/zero. An O_PATH handle is no device that was given. */
int at_opath_device(const struct tree *t)
{
	char path[PATH_MAX];
	char c;
	int fd = open("/dev/zero", O_PATH);

	(void)t;
	path_of(path, "/proc/self/fd/%d", fd);
	fd = open(path, O_RDWR);
	return fd >= 0 && read(fd, &c, 1) == 1 ? REACHED : BLOCKED;
}

int at_opath_device_chmod(const struct tree *t)
{
	struct stat st;
	int fd = open("/dev/zero", O_PATH);

	(void)t;
	if (fstat(fd, &st))
		return ABSENT;
	return worked(fchownat(fd, "", st.st_uid, st.st_gid, AT_EMPTY_PATH));
}

static int through_link(const struct tree *t, const char *name, const char *target,
			const char *rest)
{
	char link[PATH_MAX];
	char path[PATH_MAX];
	int verdict;

	path_of(link, "%.3000s/%s", t->work, name);
	path_of(path, "%.4000s%s", link, rest);
	unlink(link);
	if (symlink(target, link))
		return BLOCKED;
	verdict = reads_secret(path);
	unlink(link);
	return verdict;
}

int at_symlink(const struct tree *t)
{
	return through_link(t, "l1", t->data, "");
}

int at_symlink_dir(const struct tree *t)
{
	return through_link(t, "l2", t->secret, "/data");
}

int at_symlink_relative(const struct tree *t)
{
	return through_link(t, "l3", "../area_b/data", "");
}

int at_symlink_proc(const struct tree *t)
{
	char target[PATH_MAX];

	path_of(target, "/proc/self/root%.4000s", t->data);
	return through_link(t, "l4", target, "");
}

int at_newline_name(const struct tree *t)
{
	return through_link(t, "a\nrule: allowed\n\x1b[31mred\x7f", t->data, "");
}

int at_invalid_utf8_name(const struct tree *t)
{
	return through_link(t, "\xff\xfe\xc0\x80", t->data, "");
}

static int spelled(const struct tree *t, const char *form)
{
	char path[PATH_MAX];

	path_of(path, "%.3000s/%s", t->work, form);
	return reads_secret(path);
}

int at_dotdot(const struct tree *t)
{
	return spelled(t, "../area_b/data");
}

int at_dotdot_deep(const struct tree *t)
{
	return spelled(t, "nest/deep/../../../area_b/sub/../data");
}

int at_dotdot_over_root(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/../..//./proc/../%.4000s", t->data);
	return reads_secret(path);
}

int at_slashes(const struct tree *t)
{
	return spelled(t, "..//.///area_b/././/data");
}

/* What looks like a step back from a link leads out of the link's target. */
int at_dotdot_after_link(const struct tree *t)
{
	char target[PATH_MAX];

	path_of(target, "%.4000s/sub", t->secret);
	return through_link(t, "l5", target, "/../data");
}

int at_trailing_slash(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "%.4000s/", t->data);
	return reads_secret(path);
}

static int of_length(const struct tree *t, size_t want)
{
	static char path[PATH_MAX * 2];
	size_t n = strlen(t->data);
	size_t at = strlen(t->work);

	memcpy(path, t->work, at);
	while (at < want - 8 - strlen("/../area_b/data")) {
		memcpy(path + at, "/.", 2);
		at += 2;
	}
	strcpy(path + at, "/../area_b/data");
	for (at = strlen(path); at < want; at++) {
		memmove(path + 1, path, at + 1);
		path[0] = '/';
	}
	return n ? reads_secret(path) : ABSENT;
}

int at_path_4095(const struct tree *t)
{
	return of_length(t, 4095);
}

int at_path_4096(const struct tree *t)
{
	return of_length(t, 4096);
}

static void *own_cwd(void *arg)
{
	const struct tree *t = arg;
	static int verdict;

	verdict = BLOCKED;
	if (unshare(CLONE_FS) == 0 && chdir(t->secret) == 0)
		verdict = reads_secret("data");
	return &verdict;
}

/* A thread with a working directory of its own: its process shows another. */
int at_thread_cwd(const struct tree *t)
{
	pthread_t thread;
	void *out = NULL;

	if (chdir(t->work) || pthread_create(&thread, NULL, own_cwd, (void *)(uintptr_t)t))
		return ABSENT;
	pthread_join(thread, &out);
	return *(int *)out;
}

static void *own_files(void *arg)
{
	const struct tree *t = arg;
	static int verdict;
	int dir;

	verdict = BLOCKED;
	if (unshare(CLONE_FILES) == 0) {
		dir = open(t->secret, O_PATH | O_DIRECTORY);
		if (dir >= 0 && dup2(dir, 50) == 50)
			verdict = holds_secret(openat(50, "data", O_RDONLY));
	}
	return &verdict;
}

/* The same with descriptors: number 50 is the workspace in every other thread. */
int at_thread_files(const struct tree *t)
{
	pthread_t thread;
	void *out = NULL;

	if (dup2(open(t->work, O_PATH), 50) != 50 ||
	    pthread_create(&thread, NULL, own_files, (void *)(uintptr_t)t))
		return ABSENT;
	pthread_join(thread, &out);
	return *(int *)out;
}
