/* names_table.c - calls that make, remove, move or change a name or its
 * metadata, times kinds of object, a line of three fields between tabs each:
 *
 *   call, object(s), errno and what is left
 *
 * usage: names_table FOLDER PART UMASK   (FOLDER/w, there and empty, is the place of action) */
#include "table.h"

#include <sys/time.h>
#include <sys/types.h>
#include <utime.h>

static char n255[256], n256[257], p4095[4096], p4096[4097];
static mode_t mask;
static int here, above;
static bool times;
static char *fresh;	/* what there is before a call */
static bool touched = true;

static char *listing(void)
{
	char *text;
	size_t len;
	FILE *to = text_begin(&text, &len);

	list_folder(to, ".", times);
	fclose(to);
	return text;
}

/* A call that failed and left everything as it was needs no new folder after it. */
static void standard(void)
{
	if (!touched) {
		chmod("shut", 0555);
		return;
	}
	fchmod(here, 0755);
	empty_folder(".");
	chmod("..", 0755);
	umask(0);
	put_file("reg", 0644, "hello");
	put_file("ro", 0400, "hello");
	mkdir("dir", 0755);
	put_file("dir/f", 0644, "in dir");
	mkdir("empty", 0755);
	mkdir("shut", 0755);
	put_file("shut/f", 0644, "shut");
	(void)!symlink("reg", "lfile");
	(void)!symlink("dir", "ldir");
	(void)!symlink("new", "dangling");
	(void)!symlink("loop", "loop");
	mknod("fifo", S_IFIFO | 0644, 0);
	mkdir("sgid", 02777);
	mkdir("no", 0);
	mkdir("sticky", 01777);
	put_file("sticky/f", 0666, "sticky");
	(void)!link("reg", "reg2");
	if (!fresh)
		fresh = listing();
	chmod("shut", 0555);
	umask(mask);
}

static const char *const names[] = {
	"new", "reg", "ro", "dir", "empty", "lfile", "ldir", "dangling", "loop", "fifo", "new/",
	"reg/", "dir/", "empty/", "lfile/", "ldir/", "dangling/", ".", "..", "dir/.", "dir/..",
	"empty/..", "./", "", "dir/new", "dir/f", "ldir/f", "reg/x", "missing/x", "shut/f",
	"shut/new", "no/..", "no/new", "sgid/new", "sticky/f", "sticky/new", n255, n256, p4095, p4096, "/",
};

static void show(const char *call, const char *object, long rc, int err)
{
	const int more = (int)strlen(object) > 40 ? (int)strlen(object) : 0;
	struct stat st, up;
	char *left;

	printf("%s\t%.40s", call, *object ? object : "(empty)");
	if (more)
		printf("~%d", more);
	fstat(here, &st);
	printf("\t%s .:%o:%u.%u", rc < 0 ? err_name(err) : "ok", st.st_mode, st.st_uid, st.st_gid);
	fchmod(here, 0755);
	chmod("shut", 0755);
	left = listing();
	printf("%s\n", left);
	fstat(above, &up);
	touched = rc >= 0 || strcmp(left, fresh) || (up.st_mode & 07777) != 0755 ||
		  (st.st_mode & 07777) != 0755;
	free(left);
}

#define TRY(name, object, call) \
	do { \
		long rc_; \
		int err_; \
		standard(); \
		rc_ = (call); \
		err_ = errno; \
		show(name, object, rc_, err_); \
	} while (0)
#define EACH(name, call) \
	do { \
		size_t i_; \
		for (i_ = 0; i_ < COUNT(names); i_++) { \
			const char *p = names[i_]; \
			TRY(name, p, call); \
		} \
	} while (0)
/* Not what would change the machine's own root folder. */
#define EACH_BELOW(name, call) \
	do { \
		size_t i_; \
		for (i_ = 0; i_ + 1 < COUNT(names); i_++) { \
			const char *p = names[i_]; \
			TRY(name, p, call); \
		} \
	} while (0)

static int made(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_NONBLOCK, 07777);

	if (fd >= 0)
		close(fd);
	return fd;
}

static void make(void)
{
	EACH("mkdir 0777", syscall(SYS_mkdir, p, 0777));
	EACH("mkdirat 07777", syscall(SYS_mkdirat, AT_FDCWD, p, 07777));
	EACH("mknod file", syscall(SYS_mknod, p, S_IFREG | 0666, 0));
	EACH("mknod 0", syscall(SYS_mknod, p, 07666, 0));
	EACH("mknodat fifo", syscall(SYS_mknodat, AT_FDCWD, p, S_IFIFO | 0666, 0));
	EACH("mknod socket", syscall(SYS_mknod, p, S_IFSOCK | 0777, 0));
	EACH("mknod folder", syscall(SYS_mknod, p, S_IFDIR | 0777, 0));
	EACH("mknod nonsense", syscall(SYS_mknod, p, 0070000 | 0777, 0));
	EACH("symlink", syscall(SYS_symlink, "text", p));
	EACH("symlinkat empty", syscall(SYS_symlinkat, "", AT_FDCWD, p));
	TRY("symlink 4095", "new", syscall(SYS_symlink, p4095, "new"));
	TRY("symlink 4096", "new", syscall(SYS_symlink, p4096, "new"));
	TRY("symlink no text", "new", syscall(SYS_symlink, NULL, "new"));
	TRY("mkdir no name", "", syscall(SYS_mkdir, NULL, 0777));
	TRY("mkdir bad name", "", syscall(SYS_mkdir, 16, 0777));
	TRY("mkdirat bad", "x", syscall(SYS_mkdirat, 555, "x", 0777));
	EACH("open create", made(p));
}

static void unmake(void)
{
	EACH("unlink", syscall(SYS_unlink, p));
	EACH("rmdir", syscall(SYS_rmdir, p));
	EACH("unlinkat dir", syscall(SYS_unlinkat, AT_FDCWD, p, AT_REMOVEDIR));
	EACH("unlinkat bad", syscall(SYS_unlinkat, AT_FDCWD, p, 1));
	TRY("unlink no name", "", syscall(SYS_unlink, NULL));
}

static void two_names(void)
{
	static const char *const from[] = {
		"reg", "dir", "lfile", "ldir", "dangling", "new", "reg/", "dir/", "ldir/", ".",
		"dir/..", "shut/f", "reg2", n256,
	};
	static const char *const to[] = {
		"new", "reg", "empty", "lfile", "ldir", "dangling", "new/", "empty/", "dir/f",
		"dir/sub/x", "..", "", "shut/new", n256, "/",
	};
	size_t i, j;

	for (i = 0; i < COUNT(from); i++) {
		for (j = 0; j < COUNT(to); j++) {
			const char *a = from[i], *b = to[j];
			char both[600];

			snprintf(both, sizeof(both), "%.20s > %.20s", a, b);
			TRY("rename", both, syscall(SYS_rename, a, b));
			TRY("noreplace", both, syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 1));
			TRY("exchange", both, syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2));
			TRY("link", both, syscall(SYS_link, a, b));
			TRY("linkat follow", both, syscall(SYS_linkat, AT_FDCWD, a, AT_FDCWD, b,
							   AT_SYMLINK_FOLLOW));
		}
	}
	for (i = 3; i < 20; i++)
		if (!(i & 4))
			TRY("renameat2 flags", "reg > new", syscall(SYS_renameat2, AT_FDCWD, "reg",
								   AT_FDCWD, "new", i));
	TRY("linkat here", ". > new", syscall(SYS_linkat, AT_FDCWD, "", AT_FDCWD, "new", AT_EMPTY_PATH));
	TRY("linkat here", ". > reg", syscall(SYS_linkat, AT_FDCWD, "", AT_FDCWD, "reg", AT_EMPTY_PATH));
	TRY("rename bad", "missing/x > bad", syscall(SYS_rename, "missing/x", 16));
	TRY("rename bad", "reg/x > long", syscall(SYS_rename, "reg/x", p4096));
	TRY("renameat bad", "555 > bad", syscall(SYS_renameat, 555, "reg", AT_FDCWD, 16));
	TRY("linkat bad", "missing/x > bad", syscall(SYS_linkat, AT_FDCWD, "missing/x", 555, NULL, 0));
	TRY("linkat flags", "bad > new", syscall(SYS_linkat, AT_FDCWD, NULL, AT_FDCWD, "new", 1));
	TRY("linkat flags", "reg > new", syscall(SYS_linkat, AT_FDCWD, "reg", AT_FDCWD, "new", 1));
	TRY("linkat bad", "reg > new", syscall(SYS_linkat, 555, "reg", AT_FDCWD, "new", 0));
	TRY("renameat bad", "reg > new", syscall(SYS_renameat, AT_FDCWD, "reg", 555, "new"));
	TRY("rename no names", "", syscall(SYS_rename, NULL, "new"));
	TRY("rename no name", "", syscall(SYS_rename, "reg", NULL));
}

static void modes(void)
{
	EACH_BELOW("chmod 0640", syscall(SYS_chmod, p, 0640));
	EACH_BELOW("chmod 07755", syscall(SYS_chmod, p, 07755));
	EACH_BELOW("chmod 0170777", syscall(SYS_chmod, p, 0170777));
	EACH_BELOW("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, p, 0600));
	EACH_BELOW("fchmodat2", syscall(452, AT_FDCWD, p, 0600, 0));
	EACH_BELOW("fchmodat2 nofollow", syscall(452, AT_FDCWD, p, 0600, AT_SYMLINK_NOFOLLOW));
	EACH_BELOW("fchmodat2 empty", syscall(452, AT_FDCWD, p, 0700, AT_EMPTY_PATH));
	EACH_BELOW("fchmodat2 bad", syscall(452, AT_FDCWD, p, 0700, 1));
	EACH_BELOW("chown none", syscall(SYS_chown, p, -1, -1));
	EACH_BELOW("chown self", syscall(SYS_chown, p, getuid(), getgid()));
	EACH_BELOW("lchown self", syscall(SYS_lchown, p, getuid(), -1));
	EACH_BELOW("chown other", syscall(SYS_chown, p, 12345, -1));
	EACH_BELOW("lchown other group", syscall(SYS_lchown, p, -1, 12345));
	EACH_BELOW("fchownat", syscall(SYS_fchownat, AT_FDCWD, p, -1, getgid(), AT_EMPTY_PATH));
	EACH_BELOW("fchownat nofollow", syscall(SYS_fchownat, AT_FDCWD, p, -1, 12345,
						AT_SYMLINK_NOFOLLOW));
	EACH_BELOW("fchownat bad", syscall(SYS_fchownat, AT_FDCWD, p, -1, -1, 1));
	EACH_BELOW("truncate 0", syscall(SYS_truncate, p, 0));
	EACH_BELOW("truncate 100", syscall(SYS_truncate, p, 100));
	EACH_BELOW("truncate -1", syscall(SYS_truncate, p, -1));
	TRY("truncate far", "reg", syscall(SYS_truncate, "reg", 1L << 60));
}

static long on_fd(const char *name, int flags, long (*fn)(int fd))
{
	int fd = open(name, flags | O_CLOEXEC);
	long rc;
	int err;

	if (fd < 0)
		return -1;
	rc = fn(fd);
	err = errno;
	close(fd);
	errno = err;
	return rc;
}

static long fchmod_it(int fd) { return syscall(SYS_fchmod, fd, 0604); }
static long fchmod_sgid(int fd) { return syscall(SYS_fchmod, fd, 06711); }
static long fchown_it(int fd) { return syscall(SYS_fchown, fd, -1, getgid()); }
static long fchown_other(int fd) { return syscall(SYS_fchown, fd, 12345, 12345); }
static long chown_empty(int fd) { return syscall(SYS_fchownat, fd, "", -1, -1, AT_EMPTY_PATH); }
static long chmod_empty(int fd) { return syscall(452, fd, "", 0604, AT_EMPTY_PATH); }
static long chmod_nothing(int fd) { return syscall(452, fd, "", 0604, 0); }
static long link_empty(int fd) { return syscall(SYS_linkat, fd, "", AT_FDCWD, "new", AT_EMPTY_PATH); }
static long futimens_now(int fd) { return syscall(SYS_utimensat, fd, NULL, NULL, 0); }
static const struct timespec old[2] = { { 1000, 5 }, { 2000, 6 } };
static long futimens_old(int fd) { return syscall(SYS_utimensat, fd, NULL, old, 0); }
static long futimens_flag(int fd) { return syscall(SYS_utimensat, fd, NULL, old, AT_SYMLINK_NOFOLLOW); }
static long utimes_empty(int fd) { return syscall(SYS_utimensat, fd, "", old, AT_EMPTY_PATH); }
static long ftruncate_it(int fd) { return syscall(SYS_ftruncate, fd, 3); }

#define ON_FD(fn) \
	do { \
		TRY(#fn, "reg", on_fd("reg", O_RDONLY, fn)); \
		TRY(#fn, "reg written", on_fd("reg", O_RDWR, fn)); \
		TRY(#fn, "reg path", on_fd("reg", O_PATH, fn)); \
		TRY(#fn, "link path", on_fd("lfile", O_PATH | O_NOFOLLOW, fn)); \
		TRY(#fn, "dir", on_fd("dir", O_RDONLY, fn)); \
		TRY(#fn, "dir path", on_fd("dir", O_PATH, fn)); \
		TRY(#fn, "fifo", on_fd("fifo", O_RDWR, fn)); \
		TRY(#fn, "no fd", fn(555)); \
		TRY(#fn, "fd -1", fn(-1)); \
	} while (0)

static void descriptors(void)
{
	ON_FD(fchmod_it);
	ON_FD(fchmod_sgid);
	ON_FD(fchown_it);
	ON_FD(fchown_other);
	ON_FD(chown_empty);
	ON_FD(chmod_empty);
	ON_FD(chmod_nothing);
	ON_FD(link_empty);
	ON_FD(ftruncate_it);
}

static void all_times(void)
{
	static const struct timespec omit[2] = { { 1, UTIME_OMIT }, { 2, UTIME_OMIT } };
	static const struct timespec first[2] = { { 1000, 7 }, { 0, UTIME_OMIT } };
	static const struct timespec second[2] = { { 0, UTIME_OMIT }, { 3000, 9 } };
	static const struct timespec now[2] = { { 0, UTIME_NOW }, { 0, UTIME_NOW } };
	static const struct timespec mixed[2] = { { 0, UTIME_NOW }, { 4000, 1 } };
	static const struct timespec bad[2] = { { 0, 1000000000 }, { 0, 0 } };
	static const struct timespec minus[2] = { { -5, 0 }, { -5, 999999999 } };
	static const struct timeval tv[2] = { { 5000, 1 }, { 6000, 2 } };
	static const struct timeval bad_tv[2] = { { 5000, 1000000 }, { 6000, 2 } };
	static const struct utimbuf buf = { 7000, 8000 };
	static const struct { const char *name; const struct timespec *t; } forms[] = {
		{ "NULL", NULL }, { "old", old }, { "omit", omit }, { "first", first },
		{ "second", second }, { "now", now }, { "mixed", mixed }, { "bad", bad },
		{ "minus", minus },
	};
	char name[40];
	size_t i;

	times = true;
	for (i = 0; i < COUNT(forms); i++) {
		snprintf(name, sizeof(name), "utimensat %s", forms[i].name);
		EACH_BELOW(name, syscall(SYS_utimensat, AT_FDCWD, p, forms[i].t, 0));
		snprintf(name, sizeof(name), "utimensat nofollow %s", forms[i].name);
		EACH_BELOW(name, syscall(SYS_utimensat, AT_FDCWD, p, forms[i].t, AT_SYMLINK_NOFOLLOW));
	}
	EACH_BELOW("utimensat empty", syscall(SYS_utimensat, AT_FDCWD, p, old, AT_EMPTY_PATH));
	EACH_BELOW("utimensat bad", syscall(SYS_utimensat, AT_FDCWD, p, old, 1));
	EACH_BELOW("utimes", syscall(SYS_utimes, p, tv));
	EACH_BELOW("utimes NULL", syscall(SYS_utimes, p, NULL));
	EACH_BELOW("utimes bad", syscall(SYS_utimes, p, bad_tv));
	EACH_BELOW("utime", syscall(SYS_utime, p, &buf));
	EACH_BELOW("futimesat", syscall(SYS_futimesat, AT_FDCWD, p, tv));
	TRY("utimensat no name at cwd", "", syscall(SYS_utimensat, AT_FDCWD, NULL, old, 0));
	TRY("futimesat no name", "", syscall(SYS_futimesat, 555, NULL, tv));
	TRY("utimensat bad pointer", "reg", syscall(SYS_utimensat, AT_FDCWD, "reg", 8, 0));
	TRY("utimes no name", "", syscall(SYS_utimes, NULL, tv));
	ON_FD(futimens_now);
	ON_FD(futimens_old);
	ON_FD(futimens_flag);
	ON_FD(utimes_empty);
	times = false;
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } parts[] = {
		{ "make", make }, { "unmake", unmake }, { "two", two_names }, { "modes", modes },
		{ "descriptors", descriptors }, { "times", all_times },
	};
	size_t i;

	if (argc != 4 || chdir(argv[1]) < 0 || chdir("w") < 0)
		die("start");
	here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	above = open("..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memset(n255, 'n', 255);
	memset(n256, 'n', 256);
	for (i = 0; i < 4092; i += 2)
		memcpy(p4095 + i, "./", 2);
	memcpy(p4096, p4095, 4092);
	strcpy(p4095 + 4092, "new");
	strcpy(p4096 + 4092, "new4");
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	mask = (mode_t)strtoul(argv[3], NULL, 8);
	for (i = 0; i < COUNT(parts); i++)
		if (!strcmp(argv[2], parts[i].name))
			parts[i].run();
	return fflush(stdout) ? 1 : 0;
}
