/* attributes_table.c - setting and removing extended attributes: calls times objects,
 * names, values and flags, a line of three fields between tabs each:
 *
 *   call, object, errno and the attributes that are left
 *
 * usage: attributes_table FOLDER   (there and empty) */
#include "table.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/xattr.h>

enum { SETAT = 463, REMOVEAT = 466, PAGE = 4096, MOST = 65536 };
enum { FOLLOW_NOT = AT_SYMLINK_NOFOLLOW, EMPTY = AT_EMPTY_PATH };

struct args {
	uint64_t value;
	uint32_t size, flags;
};

static char n256[257], p4096[4097], long_name[300], big[MOST + 1];
static char *edge;	/* the last byte that may be read */
static int here, above;
static char *fresh;	/* what there is before a call */
static bool touched = true;

static const char *const objects[] = {
	"reg", "ro", "dir", "lfile", "ldir", "dangling", "loop", "fifo", "new", "reg/", "lfile/",
	"dir/", "ldir/", ".", "..", "", "dir/f", "ldir/f", "reg/x", "missing/x", n256, p4096,
};

/* An access list may have shut it to its owner. */
static void clean(int folder)
{
	fremovexattr(folder, "system.posix_acl_access");
	fchmod(folder, 0755);
	fremovexattr(folder, "user.new");
	fremovexattr(folder, "user.old");
}

/* Every attribute with its size and a sum of its bytes. */
static void show_attributes(FILE *to, const char *object)
{
	static unsigned char value[MOST];
	char names[4096];
	ssize_t n = llistxattr(object, names, sizeof(names)), k, i;
	char *name;
	struct stat st;

	if (lstat(object, &st) == 0)
		fprintf(to, " %s:%o", object, st.st_mode & 07777);
	for (name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
		unsigned sum = 0;

		if (!strcmp(name, "security.selinux"))
			continue;
		k = lgetxattr(object, name, value, sizeof(value));
		for (i = 0; i < k; i++)
			sum = sum * 31 + value[i];
		fprintf(to, "[%.30s=%zd,%x]", name, k, sum);
	}
}

static char *listing(void)
{
	static const char *const all[] = { ".", "..", "reg", "ro", "dir", "dir/f", "lfile", "fifo" };
	char *text;
	size_t len, i;
	FILE *to = text_begin(&text, &len);

	for (i = 0; i < COUNT(all); i++)
		show_attributes(to, all[i]);
	fclose(to);
	return text;
}

/* A call that failed and left everything as it was needs no new objects after it. */
static void standard(void)
{
	if (!touched)
		return;
	clean(above);
	clean(here);
	empty_folder(".");
	put_file("reg", 0644, "hello");
	put_file("ro", 0400, "hello");
	mkdir("dir", 0755);
	put_file("dir/f", 0644, "in dir");
	(void)!symlink("reg", "lfile");
	(void)!symlink("dir", "ldir");
	(void)!symlink("none", "dangling");
	(void)!symlink("loop", "loop");
	mknod("fifo", S_IFIFO | 0644, 0);
	setxattr("reg", "user.old", "before", 6, 0);
	setxattr("dir", "user.old", "before", 6, 0);
	if (!fresh)
		fresh = listing();
}

static void show(const char *call, const char *object, long rc, int err)
{
	struct stat st, up;
	char *left;

	printf("%s\t%.40s\t%s", call, *object ? object : "(empty)", rc < 0 ? err_name(err) : "ok");
	/* what shuts the folder is shown, and undone to see the rest */
	fstat(here, &st);
	printf(" %o", st.st_mode & 07777);
	fstat(above, &up);
	fchmod(above, 0755);
	fchmod(here, 0755);
	left = listing();
	printf("%s\n", left);
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
		for (i_ = 0; i_ < COUNT(objects); i_++) { \
			const char *p = objects[i_]; \
			TRY(name, p, call); \
		} \
	} while (0)

static long set(const char *p, const char *name, const void *value, size_t n, int flags)
{
	return syscall(SYS_setxattr, p, name, value, n, flags);
}

static long set_at(int fd, const char *p, int at, const char *name, const void *value, size_t n,
		   int flags)
{
	struct args a = { (uint64_t)(uintptr_t)value, (uint32_t)n, (uint32_t)flags };

	return syscall(SETAT, fd, p, at, name, &a, sizeof(a));
}

static long remove_at(int fd, const char *p, int at, const char *name)
{
	return syscall(REMOVEAT, fd, p, at, name);
}

static void by_path(void)
{
	EACH("set", set(p, "user.new", "value", 5, 0));
	EACH("lset", syscall(SYS_lsetxattr, p, "user.new", "value", 5, 0));
	EACH("remove", syscall(SYS_removexattr, p, "user.old"));
	EACH("lremove", syscall(SYS_lremovexattr, p, "user.old"));
	EACH("set_at", set_at(AT_FDCWD, p, 0, "user.new", "value", 5, 0));
	EACH("set_at empty", set_at(AT_FDCWD, p, EMPTY, "user.new", "value", 5, 0));
	EACH("set_at nofollow", set_at(AT_FDCWD, p, FOLLOW_NOT, "user.new", "value", 5, 0));
	EACH("remove_at", remove_at(AT_FDCWD, p, 0, "user.old"));
	EACH("remove_at empty", remove_at(AT_FDCWD, p, EMPTY, "user.old"));
	EACH("remove_at nofollow", remove_at(AT_FDCWD, p, FOLLOW_NOT, "user.old"));
}

static void names_and_values(void)
{
	static const char *const names[] = {
		"user.new", "user.old", "user.", "user", "", ".", "nothing", "other.x", "system.x",
		"system.posix_acl_access", "system.posix_acl_default", "security.capability",
		"user.\xff\x01", long_name + 44, long_name + 43,
	};
	static const size_t sizes[] = { 0, 1, 100, 4000, 5000, MOST, MOST + 1 };
	char what[80];
	size_t i, j;
	int flags;

	for (i = 0; i < COUNT(names); i++) {
		for (j = 0; j < COUNT(sizes); j++) {
			snprintf(what, sizeof(what), "set %.25s of %zu", names[i], sizes[j]);
			TRY(what, "reg", set("reg", names[i], big, sizes[j], 0));
		}
		for (flags = -1; flags < 6; flags++) {
			snprintf(what, sizeof(what), "set %.25s flags %d", names[i], flags);
			TRY(what, "reg", set("reg", names[i], "v", 1, flags));
			TRY(what, "dir", set_at(AT_FDCWD, "dir", 0, names[i], "v", 1, flags));
		}
		snprintf(what, sizeof(what), "remove %.25s", names[i]);
		TRY(what, "reg", syscall(SYS_removexattr, "reg", names[i]));
		TRY(what, "lfile", syscall(SYS_lremovexattr, "lfile", names[i]));
	}
}

/* u::rw- u:12345:rwx g::r-- m::rwx o::--- : also the file's mode. */
static void access_lists(void)
{
	static const struct {
		uint32_t version;
		struct { uint16_t tag, perm; uint32_t id; } entry[5];
	} acl = { 2, { { 1, 6, -1 }, { 2, 7, 12345 }, { 4, 4, -1 }, { 16, 7, -1 }, { 32, 0, -1 } } };
	static const char access[] = "system.posix_acl_access", preset[] = "system.posix_acl_default";

	EACH("acl", set(p, access, &acl, sizeof(acl), 0));
	EACH("lset acl", syscall(SYS_lsetxattr, p, access, &acl, sizeof(acl), 0));
	EACH("acl cut", set(p, access, &acl, sizeof(acl) - 3, 0));
	TRY("default acl", "dir", set("dir", preset, &acl, sizeof(acl), 0));
	TRY("default acl", "reg", set("reg", preset, &acl, sizeof(acl), 0));
	TRY("default acl removed", "dir", set("dir", preset, &acl, sizeof(acl), 0) +
					     syscall(SYS_removexattr, "dir", preset));
	TRY("acl removed", "reg", syscall(SYS_removexattr, "reg", access));
}

/* Two things wrong: which of them counts? */
static void precedence(void)
{
	const char *const bad = (const char *)8;
	const char *const name = "user.new";

	TRY("bad value", "reg", set("reg", name, bad, 5, 0));
	TRY("bad value of none", "reg", set("reg", name, bad, 0, 0));
	TRY("null value", "reg", set("reg", name, NULL, 5, 0));
	TRY("value past its page", "reg", set("reg", name, edge, 2, 0));
	TRY("value at its page's end", "reg", set("reg", name, edge, 1, 0));
	TRY("name past its page", "reg", set("reg", edge, "v", 1, 0));
	TRY("bad name", "reg", set("reg", bad, "v", 1, 0));
	TRY("null name", "reg", set("reg", NULL, "v", 1, 0));
	TRY("bad path", "reg", set(bad, name, "v", 1, 0));
	TRY("bad path and flags", "reg", set(bad, name, "v", 1, 8));
	TRY("bad path and name", "reg", set(bad, "", "v", 1, 0));
	TRY("bad path and size", "reg", set(bad, name, "v", MOST + 1, 0));
	TRY("missing, bad value", "new", set("new", name, bad, 5, 0));
	TRY("missing, bad name", "new", set("new", "", "v", 1, 0));
	TRY("missing, bad flags", "new", set("new", name, "v", 1, 8));
	TRY("missing, unknown name", "new", set("new", "nothing", "v", 1, 0));
	TRY("bad name, too big", "reg", set("reg", bad, "v", MOST + 1, 0));
	TRY("bad value, too big", "reg", set("reg", name, bad, MOST + 1, 0));
	TRY("bad name and flags", "reg", set("reg", bad, "v", 1, 8));
	TRY("far size", "reg", set("reg", name, "v", (size_t)1 << 32 | 1, 0));
	TRY("far flags", "reg", syscall(SYS_setxattr, "reg", name, "v", 1, 1UL << 32));
	TRY("remove bad path and name", "reg", syscall(SYS_removexattr, bad, ""));
	TRY("remove bad path", "reg", syscall(SYS_removexattr, bad, "user.old"));
	TRY("remove bad name", "reg", syscall(SYS_removexattr, "new", bad));
	TRY("fset bad", "555", syscall(SYS_fsetxattr, 555, bad, "v", 1, 0));
	TRY("fset flags", "555", syscall(SYS_fsetxattr, 555, name, "v", 1, 8));
	TRY("fremove bad", "555", syscall(SYS_fremovexattr, 555, ""));
}

static long below(const char *folder, const char *p)
{
	int fd = open(folder, O_PATH | O_CLOEXEC);
	long rc = set_at(fd, p, 0, "user.new", "v", 1, 0);
	int err = errno;

	close(fd);
	errno = err;
	return rc;
}

static void at_forms(void)
{
	const char *const bad = (const char *)8;
	const char *const name = "user.new";
	struct { struct args a; uint64_t more[600]; } x = { { (uintptr_t)"v", 1, 0 }, { 0 } };
	static const size_t sizes[] = { 0, 8, 15, 16, 17, 24, 4096, 4097 };
	size_t i;

	for (i = 0; i < COUNT(sizes); i++)
		TRY("args of a size", "reg", syscall(SETAT, AT_FDCWD, "reg", 0, name, &x, sizes[i]));
	x.more[1] = 1;
	for (i = 0; i < COUNT(sizes); i++)
		TRY("args with more", "reg", syscall(SETAT, AT_FDCWD, "reg", 0, name, &x, sizes[i]));
	TRY("args bad", "reg", syscall(SETAT, AT_FDCWD, "reg", 0, name, bad, 16));
	TRY("args bad, at flags", "reg", syscall(SETAT, AT_FDCWD, "reg", 1, name, bad, 16));
	TRY("args small, at flags", "reg", syscall(SETAT, AT_FDCWD, "reg", 1, name, &x, 8));
	TRY("at flags, bad name", "reg", set_at(AT_FDCWD, "reg", 1, bad, "v", 1, 0));
	TRY("at flags", "reg", set_at(AT_FDCWD, "reg", 0x400, name, "v", 1, 0));
	TRY("remove at flags, bad name", "reg", remove_at(AT_FDCWD, "reg", 1, bad));
	TRY("no path", "reg", set_at(AT_FDCWD, NULL, 0, name, "v", 1, 0));
	TRY("no path, empty", "reg", set_at(AT_FDCWD, NULL, EMPTY, name, "v", 1, 0));
	TRY("bad path, empty", "reg", set_at(AT_FDCWD, bad, EMPTY, name, "v", 1, 0));
	TRY("remove no path, empty", "reg", remove_at(AT_FDCWD, NULL, EMPTY, "user.old"));
	TRY("at 555", "reg", set_at(555, "reg", 0, name, "v", 1, 0));
	TRY("at -5", "", set_at(-5, "", EMPTY, name, "v", 1, 0));
	TRY("remove at -5", "", remove_at(-5, "", EMPTY, name));
	EACH("below fd", below("dir", p));
}

static long fset(int fd) { return syscall(SYS_fsetxattr, fd, "user.new", "v", 1, 0); }
static long fremove(int fd) { return syscall(SYS_fremovexattr, fd, "user.old"); }
static long set_fd(int fd) { return set_at(fd, "", EMPTY, "user.new", "v", 1, 0); }
static long set_fd_null(int fd) { return set_at(fd, NULL, EMPTY, "user.new", "v", 1, 0); }
static long set_fd_plain(int fd) { return set_at(fd, "", 0, "user.new", "v", 1, 0); }
static long remove_fd(int fd) { return remove_at(fd, "", EMPTY, "user.old"); }
static long set_proc(int fd)
{
	char name[40];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return set(name, "user.new", "v", 1, 0);
}

static long on(int fd, long (*fn)(int fd))
{
	long rc = fd < 0 ? -1 : fn(fd);
	int err = errno;

	close(fd);
	errno = err;
	return rc;
}

static int a_pipe(void)
{
	int p[2] = { -1, -1 };

	if (pipe(p) == 0)
		close(p[1]);
	return p[0];
}

#define ON_FD(fn) \
	do { \
		TRY(#fn, "reg", on(open("reg", O_RDONLY), fn)); \
		TRY(#fn, "reg written", on(open("reg", O_WRONLY), fn)); \
		TRY(#fn, "reg path", on(open("reg", O_PATH), fn)); \
		TRY(#fn, "link path", on(open("lfile", O_PATH | O_NOFOLLOW), fn)); \
		TRY(#fn, "dir", on(open("dir", O_RDONLY), fn)); \
		TRY(#fn, "dir path", on(open("dir", O_PATH), fn)); \
		TRY(#fn, "fifo", on(open("fifo", O_RDWR), fn)); \
		TRY(#fn, "pipe", on(a_pipe(), fn)); \
		TRY(#fn, "socket", on(socket(AF_UNIX, SOCK_STREAM, 0), fn)); \
		TRY(#fn, "memory", on(memfd_create("m", 0), fn)); \
		TRY(#fn, "no fd", fn(555)); \
		TRY(#fn, "fd -1", fn(-1)); \
		TRY(#fn, "AT_FDCWD", fn(AT_FDCWD)); \
	} while (0)

int main(int argc, char **argv)
{
	char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (argc != 2 || chdir(argv[1]) || mkdir("w", 0755) || chdir("w") || two == MAP_FAILED || mprotect(two + PAGE, PAGE, PROT_NONE))
		die("start");
	here = open(".", O_RDONLY | O_CLOEXEC);
	above = open("..", O_RDONLY | O_CLOEXEC);
	edge = two + PAGE - 1;
	*edge = 'e';
	memset(n256, 'n', 256);
	memset(p4096, '/', 4096);
	memset(big, 'b', sizeof(big));
	memset(long_name, 'l', 299);
	memcpy(long_name + 44, "user.", 5);	/* of 255 characters; one before it begins a name too long */
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	umask(022);
	by_path();
	names_and_values();
	access_lists();
	precedence();
	at_forms();
	ON_FD(fset);
	ON_FD(fremove);
	ON_FD(set_fd);
	ON_FD(set_fd_null);
	ON_FD(set_fd_plain);
	ON_FD(remove_fd);
	ON_FD(set_proc);
	return fflush(stdout) ? 1 : 0;
}
