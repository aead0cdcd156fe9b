/* open_table.c - every way to open times every kind of object, a line of four
 * fields between tabs each:
 *
 *   flags, object, errno or (type, mode, size, status flags, close-on-exec), what is left
 *
 * usage: open_table FOLDER   (made here, with FOLDER/w as the place of action) */
#include "table.h"

#include <linux/openat2.h>
#include <sys/mman.h>

enum call { OPENAT, OPEN, CREAT, OPENAT2 };

struct how {
	const char *name;
	enum call call;
	uint64_t flags;
	uint64_t mode;
	uint64_t resolve;
	size_t size;		/* of struct open_how; 0 = right */
};

#define AT(f) { #f, OPENAT, f, 0666, 0, 0 }
#define WITH(r, f) { #r " " #f, OPENAT2, f, 0, r, 0 }
static const struct how hows[] = {
	AT(O_RDONLY), AT(O_WRONLY), AT(O_RDWR), AT(3), AT(O_RDONLY | O_CLOEXEC),
	AT(O_RDONLY | O_TRUNC), AT(O_WRONLY | O_TRUNC), AT(O_WRONLY | O_APPEND),
	AT(O_RDWR | O_NONBLOCK), AT(O_RDONLY | O_NOFOLLOW), AT(O_WRONLY | O_NOFOLLOW),
	AT(O_RDONLY | O_DIRECTORY), AT(O_WRONLY | O_DIRECTORY),
	AT(O_RDONLY | O_DIRECTORY | O_NOFOLLOW), AT(O_RDONLY | O_CREAT), AT(O_WRONLY | O_CREAT),
	AT(O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC), AT(O_WRONLY | O_CREAT | O_APPEND),
	AT(O_WRONLY | O_CREAT | O_EXCL), AT(O_RDONLY | O_CREAT | O_EXCL),
	AT(O_RDWR | O_CREAT | O_NOFOLLOW), AT(O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW),
	AT(O_RDONLY | O_CREAT | O_DIRECTORY), AT(O_WRONLY | O_EXCL), AT(O_PATH),
	AT(O_PATH | O_NOFOLLOW), AT(O_PATH | O_DIRECTORY), AT(O_PATH | O_CREAT | O_WRONLY),
	AT(O_TMPFILE | O_RDWR), AT(O_TMPFILE | O_WRONLY | O_EXCL), AT(O_TMPFILE | O_RDONLY),
	AT(O_TMPFILE | O_RDWR | O_NOFOLLOW),
	AT(O_TMPFILE | O_RDWR | O_CREAT), AT(O_RDONLY | O_NOATIME), AT(O_RDONLY | O_SYNC),
	AT(O_WRONLY | O_DSYNC | O_NOCTTY), AT(O_RDONLY | O_ASYNC), AT(O_RDONLY | 0x40000000),
	{ "mode 07777", OPENAT, O_WRONLY | O_CREAT, 07777, 0, 0 },
	{ "mode 0170000", OPENAT, O_WRONLY | O_CREAT, 0177000, 0, 0 },
	{ "mode 0", OPENAT, O_RDWR | O_CREAT, 0, 0, 0 },
	{ "mode without create", OPENAT, O_RDONLY, 0777, 0, 0 },
	{ "open O_RDONLY", OPEN, O_RDONLY, 0, 0, 0 },
	{ "open O_RDWR|O_CREAT", OPEN, O_RDWR | O_CREAT, 0640, 0, 0 },
	{ "creat 0600", CREAT, 0, 0600, 0, 0 },
	{ "openat2 plain", OPENAT2, O_RDONLY, 0, 0, 0 },
	{ "openat2 create", OPENAT2, O_RDWR | O_CREAT, 0640, 0, 0 },
	{ "openat2 create excl", OPENAT2, O_RDWR | O_CREAT | O_EXCL, 0640, 0, 0 },
	{ "openat2 trunc", OPENAT2, O_WRONLY | O_TRUNC, 0, 0, 0 },
	{ "openat2 path", OPENAT2, O_PATH, 0, 0, 0 },
	{ "openat2 path nofollow", OPENAT2, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, 0, 0 },
	{ "openat2 tmpfile", OPENAT2, O_TMPFILE | O_RDWR, 0600, 0, 0 },
	WITH(RESOLVE_BENEATH, O_RDONLY), WITH(RESOLVE_BENEATH, O_PATH),
	WITH(RESOLVE_IN_ROOT, O_RDONLY), WITH(RESOLVE_NO_SYMLINKS, O_RDONLY),
	WITH(RESOLVE_NO_MAGICLINKS, O_RDONLY), WITH(RESOLVE_NO_XDEV, O_RDONLY),
	WITH(RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH, O_WRONLY),
	{ "RESOLVE_BENEATH create", OPENAT2, O_RDWR | O_CREAT, 0600, RESOLVE_BENEATH, 0 },
	{ "RESOLVE_IN_ROOT create", OPENAT2, O_RDWR | O_CREAT, 0600, RESOLVE_IN_ROOT, 0 },
	{ "RESOLVE_NO_SYMLINKS create", OPENAT2, O_RDWR | O_CREAT, 0600, RESOLVE_NO_SYMLINKS, 0 },
	{ "RESOLVE_CACHED create", OPENAT2, O_RDWR | O_CREAT, 0600, RESOLVE_CACHED, 0 },
	{ "bad flags", OPENAT2, 1ULL << 40, 0, 0, 0 },
	{ "bad low flags", OPENAT2, 0x40000000, 0, 0, 0 },
	{ "bad mode", OPENAT2, O_RDWR | O_CREAT, 0200000, 0, 0 },
	{ "bad mode without create", OPENAT2, O_RDONLY, 0644, 0, 0 },
	{ "bad resolve", OPENAT2, O_RDONLY, 0, 1ULL << 20, 0 },
	{ "beneath and in root", OPENAT2, O_RDONLY, 0, RESOLVE_BENEATH | RESOLVE_IN_ROOT, 0 },
	{ "path with write", OPENAT2, O_PATH | O_WRONLY, 0, 0, 0 },
	{ "size 0", OPENAT2, O_RDONLY, 0, 0, 1 }, { "size 23", OPENAT2, O_RDONLY, 0, 0, 23 },
	{ "size 32", OPENAT2, O_RDONLY, 0, 0, 32 }, { "size 5000", OPENAT2, O_RDONLY, 0, 0, 5000 },
};

struct object {
	const char *name;
	const char *path;	/* NULL = made by number below */
	void (*make)(void);
	int dirfd;		/* AT_FDCWD, or one of DIR_* */
	bool waits;		/* gets O_NONBLOCK: a FIFO without another end */
};

enum { DIR_CWD = AT_FDCWD, DIR_FOLDER = -1000, DIR_FILE, DIR_PATH, DIR_GONE, DIR_BAD, DIR_MINUS };

static char long_path[4][5000];

static void reg(void) { put_file("reg", 0644, "hello"); }
static void read_only(void) { put_file("ro", 0444, "hello"); }
static void write_only(void) { put_file("wo", 0222, "hello"); }
static void nothing(void) { put_file("no", 0, "hello"); }
static void dir(void) { mkdir("dir", 0755); put_file("dir/f", 0644, "hello"); }
static void empty(void) { mkdir("empty", 0755); }
static void closed(void) { dir(); chmod("dir", 0); }
static void unwritable(void) { dir(); chmod("dir", 0555); }
static void to_file(void) { reg(); (void)!symlink("reg", "link"); }
static void to_file_absolute(void)
{
	char here[4096], there[4200];

	reg();
	if (!getcwd(here, sizeof(here)))
		die("getcwd");
	snprintf(there, sizeof(there), "%s/reg", here);
	(void)!symlink(there, "link");
}
static void to_dir(void) { dir(); (void)!symlink("dir", "link"); }
static void to_missing(void) { (void)!symlink("new", "link"); }
static void to_nowhere(void) { (void)!symlink("nodir/new", "link"); }
static void to_slash(void) { (void)!symlink("new/", "link"); }
static void to_file_slash(void) { reg(); (void)!symlink("reg/", "link"); }
static void to_link_slash(void) { to_file_slash(); (void)!symlink("link", "link2"); }
static void to_outside(void) { (void)!symlink("../out/file", "link"); }
static void to_new_outside(void) { (void)!symlink("../out/new", "link"); }
static void loop_slash(void) { (void)!symlink("loop/", "loop"); }
static void loop(void) { (void)!symlink("loop", "loop"); }
static void growing(void)
{
	char text[300] = "grow/";

	memset(text + 5, 'g', 250);
	(void)!symlink(text, "grow");
}
static void fifo(void) { mkfifo("fifo", 0644); }
static void sock(void) { mknod("sock", S_IFSOCK | 0644, 0); }
static void chain(int n)
{
	char a[16], b[16];
	int i;

	put_file("c0", 0644, "hello");
	for (i = 1; i <= n; i++) {
		snprintf(a, sizeof(a), "c%d", i - 1);
		snprintf(b, sizeof(b), "c%d", i);
		if (symlink(a, b) < 0)
			die("chain");
	}
}
static void chain40(void) { chain(40); }
static void chain41(void) { chain(41); }
static void shut_sock(void) { mknod("sock", S_IFSOCK, 0); }
static void not_there(void) { }

#define HERE(n, p, m) { n, p, m, DIR_CWD, false }
static const struct object objects[] = {
	HERE("missing", "missing", not_there), HERE("regular", "reg", reg),
	HERE("read-only", "ro", read_only), HERE("write-only", "wo", write_only),
	HERE("no mode", "no", nothing), HERE("folder", "dir", dir), HERE("in folder", "dir/f", dir),
	HERE("empty folder", "empty", empty), HERE("closed folder", "dir", closed),
	HERE("in closed folder", "dir/f", closed), HERE("new in closed", "dir/g", closed),
	HERE("new in unwritable", "dir/g", unwritable), HERE("in unwritable", "dir/f", unwritable),
	HERE("link to file", "link", to_file), HERE("absolute link", "link", to_file_absolute),
	HERE("link to folder", "link", to_dir), HERE("through link", "link/f", to_dir),
	HERE("new through link", "link/g", to_dir), HERE("dangling", "link", to_missing),
	HERE("dangling far", "link", to_nowhere), HERE("dangling slash", "link", to_slash),
	HERE("file slash", "link", to_file_slash), HERE("link to file slash", "link2", to_link_slash),
	HERE("link outside", "link", to_outside), HERE("dangling outside", "link", to_new_outside),
	HERE("growing loop", "grow", growing), HERE("loop", "loop", loop),
	HERE("loop slash", "loop", loop_slash), HERE("chain of 40", "c40", chain40),
	HERE("chain of 41", "c41", chain41),
	{ "fifo", "fifo", fifo, DIR_CWD, true }, HERE("socket", "sock", sock),
	HERE("shut socket", "sock", shut_sock),
	HERE("/dev/null", "/dev/null", not_there), HERE("/dev/null/", "/dev/null/", not_there),
	HERE("file/", "reg/", reg), HERE("folder/", "dir/", dir), HERE("missing/", "missing/", not_there),
	HERE("link to file/", "link/", to_file), HERE("link to folder/", "link/", to_dir),
	HERE("dangling/", "link/", to_missing), HERE("empty name", "", not_there),
	HERE("dot", ".", reg), HERE("dots", "..", reg), HERE("folder/.", "dir/.", dir),
	HERE("folder/..", "dir/..", dir), HERE("many slashes", ".//dir///f", dir),
	HERE("below a file", "reg/x", reg), HERE("dot below a file", "reg/.", reg),
	HERE("below nothing", "missing/x", not_there), HERE("up from nothing", "missing/../reg", reg),
	HERE("255 bytes", long_path[0], not_there), HERE("256 bytes", long_path[1], not_there),
	HERE("4095 bytes", long_path[2], reg), HERE("4096 bytes", long_path[3], reg),
	{ "at folder", "f", dir, DIR_FOLDER, false }, { "new at folder", "g", dir, DIR_FOLDER, false },
	{ "up at folder", "../reg", to_file, DIR_FOLDER, false },
	{ "empty at folder", "", dir, DIR_FOLDER, false },
	{ "dot at folder", ".", dir, DIR_FOLDER, false },
	{ "at file", "x", dir, DIR_FILE, false }, { "at path", "f", dir, DIR_PATH, false },
	{ "new at path", "g", dir, DIR_PATH, false }, { "in gone", "f", empty, DIR_GONE, false },
	{ "dot in gone", ".", empty, DIR_GONE, false }, { "up in gone", "..", empty, DIR_GONE, false },
	{ "at bad", "f", dir, DIR_BAD, false }, { "at -1", "f", dir, DIR_MINUS, false },
	{ "absolute at bad", "/dev/null", not_there, DIR_BAD, false },
	{ "no pointer", NULL, not_there, DIR_CWD, false },
	{ "/", "/", not_there, DIR_CWD, false },
};

static int start_of(const struct object *o)
{
	int fd;

	switch (o->dirfd) {
	case DIR_FOLDER: return open("dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case DIR_FILE: return open("dir/f", O_RDONLY | O_CLOEXEC);
	case DIR_PATH: return open("dir", O_PATH | O_CLOEXEC);
	case DIR_GONE:
		fd = open("empty", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		rmdir("empty");
		return fd;
	case DIR_BAD: return 777;
	case DIR_MINUS: return -1;
	default: return AT_FDCWD;
	}
}

static long do_call(const struct how *h, const struct object *o, int start)
{
	static struct { struct open_how how; char more[6000]; } how;
	const uint64_t flags = h->flags | (o->waits ? O_NONBLOCK : 0);

	switch (h->call) {
	case OPEN:
		return syscall(SYS_open, o->path, flags, h->mode);
	case CREAT:
		return syscall(SYS_creat, o->path, h->mode);
	case OPENAT:
		return syscall(SYS_openat, start, o->path, flags, h->mode);
	case OPENAT2:
		how.how = (struct open_how){ .flags = h->flags & O_PATH ? h->flags : flags,
					     .mode = h->mode, .resolve = h->resolve };
		return syscall(SYS_openat2, start, o->path, &how,
			       h->size == 1 ? 0 : h->size ? h->size : sizeof(how.how));
	}
	return -1;
}

static void one(const struct how *h, const struct object *o)
{
	int start, fd, err, keep = -1;
	struct stat st;

	empty_folder("../out");
	put_file("../out/file", 0644, "outside");
	empty_folder(".");
	o->make();
	start = start_of(o);
	/* so that a write-only opening finds a reader, and creat does not wait */
	if (o->waits)
		keep = open(o->path, O_RDWR | O_CLOEXEC);
	printf("%s\t%s\t", h->name, o->name);
	fd = (int)do_call(h, o, start);
	err = errno;
	if (fd < 0)
		printf("%s", err_name(err));
	else if (fstat(fd, &st) < 0)
		printf("fstat %s", err_name(errno));
	else
		printf("%c %o %ld flags=%o cloexec=%d", type_of(st.st_mode), st.st_mode & 07777,
		       S_ISREG(st.st_mode) ? (long)st.st_size : 0L, fcntl(fd, F_GETFL),
		       fcntl(fd, F_GETFD));
	if (fd >= 0)
		close(fd);
	if (keep >= 0)
		close(keep);
	if (start >= 0 && start != 777)
		close(start);
	if (o->dirfd == DIR_CWD && !strncmp(o->name, "chain", 5)) {
		printf("\n");
		return;
	}
	printf("\t");
	chmod("dir", 0755);
	list_folder(stdout, ".", false);
	printf(" +");
	list_folder(stdout, "../out", false);
	printf("\n");
}

static void fill(char *buf, size_t n, const char *end)
{
	size_t i;

	for (i = 0; i + 1 < n - strlen(end); i += 2)
		memcpy(buf + i, "./", 2);
	if (i < n - strlen(end))
		buf[i++] = '/';
	strcpy(buf + i, end);
}

int main(int argc, char **argv)
{
	size_t h, o;

	if (argc != 2 || mkdir(argv[1], 0755) < 0 || chdir(argv[1]) < 0 || mkdir("w", 0755) < 0 ||
	    mkdir("out", 0755) < 0 || chdir("w") < 0)
		die("start");
	memset(long_path[0], 'n', 255);
	memset(long_path[1], 'n', 256);
	fill(long_path[2], 4095, "reg");
	fill(long_path[3], 4096, "reg");
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	umask(027);
	for (h = 0; h < COUNT(hows); h++)
		for (o = 0; o < COUNT(objects); o++)
			if (hows[h].call == OPENAT || hows[h].call == OPENAT2 ||
			    objects[o].dirfd == DIR_CWD)
				one(&hows[h], &objects[o]);
	return fflush(stdout) ? 1 : 0;
}
