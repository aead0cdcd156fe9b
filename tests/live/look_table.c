/* look_table.c - every call that looks times every kind of object, name and buffer: a
 * line of call, object and outcome each. The outcome is the errno or what was
 * returned and all bytes of the buffer, so run it twice in one folder.
 *
 * usage: look_table FOLDER SCRATCH [ids]   (made by test_look.py; ids: as root, with
 * real ids that are not the effective ones) */
#include "table.h"

#include <linux/stat.h>
#include <sys/mman.h>
#include <sys/vfs.h>

enum { ROOM = 8192, AA = 0xaa };
#define NR_getxattrat 464
#define NR_listxattrat 465
#define NR_file_getattr 468

static char *page;		/* a page, with nothing behind it */
static char *readonly;		/* a page that may be read only */
static unsigned char buf[ROOM];

struct object {
	const char *name;
	int how;		/* WHOLE: all bytes are the same twice; PART: only some */
};

enum { WHOLE, PART };

static char name256[300], name4096[4200], name4095[4200], absolute[4096];

static struct object objects[] = {
	{ "file", 0 }, { "folder", 0 }, { "fifo", 0 }, { "socket", 0 }, { "to-file", 0 },
	{ "to-folder", 0 }, { "dangling", 0 }, { "loop", 0 }, { "file/", 0 }, { "folder/", 0 },
	{ "to-file/", 0 }, { "to-folder/", 0 }, { "to-folder/.", 0 }, { "missing", 0 },
	{ "missing/x", 0 }, { "file/x", 0 }, { "", 0 }, { ".", 0 }, { "..", 0 }, { "/", 0 },
	{ "mode0", 0 }, { "mode111", 0 }, { "closed/inside", 0 }, { "closed", 0 },
	{ "closed/missing", 0 }, { "folder/../file", 0 }, { "./file", 0 }, { "folder//inner", 0 },
	{ "to-closed", 0 }, { "to-slash", 0 }, { "caps", 0 }, { "script", 0 },
	{ name256, 0 }, { name4096, 0 }, { name4095, 0 }, { absolute, 0 }, { "/dev/null", 0 },
	{ "/etc/passwd", 0 },
	{ "/proc/self", PART }, { "/proc/thread-self", PART }, { "/proc/self/", PART },
	{ "/proc/self/exe", PART }, { "/proc/self/cwd", PART }, { "/proc/self/cwd/file", PART },
	{ "/proc/self/root", PART }, { "/proc/self/fd", PART }, { "/proc/self/fd/0", PART },
	{ "/proc/self/fd/3", PART }, { "/proc/self/fd/4", PART }, { "/proc/self/fd/99", PART },
	{ "/proc/self/fd/7", PART }, { "/proc/self/fd/8", PART },
	{ "/proc/self/fd/3/inner", PART }, { "/proc/self/ns/mnt", PART }, { "/dev/fd/3", PART },
	{ "/dev/fd", PART }, { "/dev/stdin", PART }, { "/proc/1", PART }, { "/proc/1/", PART },
	{ "/proc/1/stat", PART }, { "/proc/mounts", PART }, { "/proc/sys/kernel/ostype", PART },
	{ "/proc/999999999", PART }, { "/proc/self/task", PART }, { "/proc/self/missing", PART },
	{ "/proc/self/map_files", PART }, { "/proc/self/fdinfo/3", PART },
};

static void hex(const unsigned char *p, size_t n)
{
	size_t end = n;

	while (end && p[end - 1] == AA)
		end--;
	for (size_t i = 0; i < end; i++)
		printf("%02x", p[i]);
}

/* Numbers of processes differ between two runs. */
static void text(const unsigned char *p, long n)
{
	for (long i = 0; i < n; i++) {
		if (p[i] >= '0' && p[i] <= '9')
			putchar('#');
		else if (i == 0 || p[i] != p[i - 1] || p[i] != '#')
			putchar(p[i]);
	}
}

static void head(const char *call, const char *object)
{
	size_t n = strlen(object);

	printf("%s\t%.40s%s\t", call, object, n > 40 ? "..." : "");
	memset(buf, AA, sizeof(buf));
}

static void tail(long rc)
{
	if (rc < 0)
		printf("%s", err_name(errno));
	else
		printf("%ld", rc);
}

static void whole(long rc, size_t n)
{
	tail(rc);
	putchar(' ');
	hex(buf, n);
	putchar('\n');
}

static void stat_part(long rc)
{
	const struct stat *st = (const void *)buf;

	tail(rc);
	if (rc == 0)
		printf(" %o %u %u %lx", st->st_mode, st->st_uid, st->st_gid, (long)st->st_rdev);
	putchar('\n');
}

static void put_stat(const struct object *o, long rc)
{
	if (o->how == WHOLE)
		whole(rc, 512);
	else
		stat_part(rc);
}

static void put_statx(const struct object *o, long rc)
{
	const struct statx *st = (const void *)buf;

	if (o->how == WHOLE)
		return whole(rc, 512);
	tail(rc);
	if (rc == 0)
		printf(" %x %o %u %llx", st->stx_mask, st->stx_mode, st->stx_uid,
		       (unsigned long long)st->stx_attributes);
	putchar('\n');
}

static void stats(const struct object *o)
{
	static const int flags[] = { 0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, AT_NO_AUTOMOUNT,
				     AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, 0x2000, 0x6000,
				     0x40000000, AT_EACCESS, AT_SYMLINK_FOLLOW };
	char call[64];

	head("stat", o->name);
	put_stat(o, syscall(SYS_stat, o->name, buf));
	head("lstat", o->name);
	put_stat(o, syscall(SYS_lstat, o->name, buf));
	for (size_t i = 0; i < COUNT(flags); i++) {
		snprintf(call, sizeof(call), "newfstatat %x", flags[i]);
		head(call, o->name);
		put_stat(o, syscall(SYS_newfstatat, AT_FDCWD, o->name, buf, flags[i]));
		snprintf(call, sizeof(call), "statx %x", flags[i]);
		head(call, o->name);
		put_statx(o, syscall(SYS_statx, AT_FDCWD, o->name, flags[i], 0xfff, buf));
	}
	head("statx 0", o->name);
	put_statx(o, syscall(SYS_statx, AT_FDCWD, o->name, 0, 0, buf));
	head("statx reserved", o->name);
	put_statx(o, syscall(SYS_statx, AT_FDCWD, o->name, 0x40000000, 0x80000000u, buf));
	head("statfs", o->name);
	tail(syscall(SYS_statfs, o->name, buf));
	printf(" %lx %ld\n", (long)((struct statfs *)buf)->f_type, (long)((struct statfs *)buf)->f_flags);
}

static void accesses(const struct object *o)
{
	static const int flags[] = { 0, AT_EACCESS, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, 0x40000000,
				     AT_EACCESS | AT_SYMLINK_NOFOLLOW };
	static const int modes[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x10004, -1 };
	char call[64];

	for (size_t m = 0; m < COUNT(modes); m++) {
		snprintf(call, sizeof(call), "access %x", modes[m]);
		head(call, o->name);
		whole(syscall(SYS_access, o->name, modes[m]), 0);
		head("faccessat", o->name);
		whole(syscall(SYS_faccessat, AT_FDCWD, o->name, modes[m]), 0);
		for (size_t i = 0; i < COUNT(flags); i++) {
			snprintf(call, sizeof(call), "faccessat2 %x %x", modes[m], flags[i]);
			head(call, o->name);
			whole(syscall(SYS_faccessat2, AT_FDCWD, o->name, modes[m], flags[i]), 0);
		}
	}
}

static void put_text(const struct object *o, long rc, size_t n)
{
	if (o->how == WHOLE)
		return whole(rc, n);
	tail(rc < 0 ? rc : 0);
	putchar(' ');
	if (rc > 0)
		text(buf, rc);
	putchar('\n');
}

static void texts(const struct object *o)
{
	static const int sizes[] = { 0, -1, 1, 5, 4096 };
	static const char *const names[] = { "user.x", "user.none", "security.capability", "", "bad",
					     "system.posix_acl_access", "trusted.x" };
	char call[64];

	for (size_t i = 0; i < COUNT(sizes); i++) {
		snprintf(call, sizeof(call), "readlink %d", sizes[i]);
		head(call, o->name);
		if (o->how == PART && sizes[i] < 4096 && sizes[i] > 0)
			tail(syscall(SYS_readlink, o->name, buf, sizes[i]) < 0 ? -1 : 0), putchar('\n');
		else
			put_text(o, syscall(SYS_readlink, o->name, buf, sizes[i]), 4096);
	}
	head("readlinkat", o->name);
	put_text(o, syscall(SYS_readlinkat, AT_FDCWD, o->name, buf, 4096), 4096);
	for (size_t i = 0; i < COUNT(names); i++) {
		for (size_t s = 0; s < COUNT(sizes); s++) {
			snprintf(call, sizeof(call), "getxattr %s %d", names[i], sizes[s]);
			head(call, o->name);
			whole(syscall(SYS_getxattr, o->name, names[i], buf, (size_t)sizes[s]), 4096);
		}
		head("lgetxattr", o->name);
		whole(syscall(SYS_lgetxattr, o->name, names[i], buf, 100), 4096);
	}
	for (size_t s = 0; s < COUNT(sizes); s++) {
		head("listxattr", o->name);
		whole(syscall(SYS_listxattr, o->name, buf, (size_t)sizes[s]), 4096);
		head("llistxattr", o->name);
		whole(syscall(SYS_llistxattr, o->name, buf, (size_t)sizes[s]), 4096);
	}
}

/* The calls that libraries do not know yet; a kernel without them says so twice. */
static void newer(const struct object *o)
{
	static const int flags[] = { 0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, 0x40000000 };
	static const unsigned sizes[] = { 0, 8, 16, 24, 64, 4096, 5000 };
	struct { uint64_t value; uint32_t size, flags; uint64_t more; } args;

	for (size_t i = 0; i < COUNT(flags); i++) {
		head("listxattrat", o->name);
		whole(syscall(NR_listxattrat, AT_FDCWD, o->name, flags[i], buf, 4096), 4096);
		for (unsigned bad = 0; bad < 3; bad++) {
			memset(&args, 0, sizeof(args));
			args.value = (uint64_t)(uintptr_t)buf;
			args.size = 100;
			args.flags = bad == 1;
			args.more = bad == 2;
			head("getxattrat", o->name);
			whole(syscall(NR_getxattrat, AT_FDCWD, o->name, flags[i], "user.x", &args,
				      bad == 2 ? 24 : 16), 4096);
		}
		for (size_t s = 0; s < COUNT(sizes); s++) {
			head("file_getattr", o->name);
			whole(syscall(NR_file_getattr, AT_FDCWD, o->name, buf, sizes[s], flags[i]), 0);
		}
	}
}

/* Starting folders and descriptors of all kinds, with and without a name. */
static void starts(void)
{
	static const int fds[] = { 0, 3, 4, 5, 6, 7, 8, 99, -1, AT_FDCWD, -3 };
	static const char *const names[] = { "inner", "", "../file", "/etc/passwd", "missing", NULL };
	static const int flags[] = { 0, AT_EMPTY_PATH, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, 0x40000000,
				     AT_EMPTY_PATH | 0x40000000 };
	char call[64];

	for (size_t f = 0; f < COUNT(fds); f++) {
		const struct object o = { "", fds[f] == 0 || fds[f] == 7 || fds[f] == 8 ? PART : WHOLE };

		snprintf(call, sizeof(call), "fstat %d", fds[f]);
		head(call, "");
		put_stat(&o, syscall(SYS_fstat, fds[f], buf));
		for (size_t n = 0; n < COUNT(names); n++) {
			for (size_t i = 0; i < COUNT(flags); i++) {
				snprintf(call, sizeof(call), "newfstatat %d %x", fds[f], flags[i]);
				head(call, names[n] ? names[n] : "NULL");
				put_stat(&o, syscall(SYS_newfstatat, fds[f], names[n], buf, flags[i]));
				head("statx", "");
				put_statx(&o, syscall(SYS_statx, fds[f], names[n], flags[i], 0xfff, buf));
				put_text(&o, syscall(SYS_faccessat2, fds[f], names[n], 5, flags[i]), 0);
				head("listxattrat", "");
				whole(syscall(NR_listxattrat, fds[f], names[n], flags[i], buf, 100), 4096);
				head("file_getattr", "");
				whole(syscall(NR_file_getattr, fds[f], names[n], buf, 24, flags[i]), 0);
			}
			snprintf(call, sizeof(call), "readlinkat %d", fds[f]);
			head(call, names[n] ? names[n] : "NULL");
			put_text(&o, syscall(SYS_readlinkat, fds[f], names[n], buf, 4096), 4096);
		}
	}
}

/* Names and results where memory ends, or must not be written. */
static void pointers(void)
{
	char *const places[] = { NULL, (char *)1, readonly, page + 4096 - 8, page + 4096, page,
				 (char *)~0UL, (char *)0xffff800000000000UL };
	struct object o = { "pointer", WHOLE };

	for (size_t i = 0; i < COUNT(places); i++) {
		char *p = places[i];

		memset(page, 'x', 4096);
		head("bad name", "");
		whole(syscall(SYS_stat, p == page ? NULL : p, buf), 512);
		whole(syscall(SYS_newfstatat, AT_FDCWD, p == page ? NULL : p, buf, 0x40000000), 0);
		whole(syscall(SYS_statx, AT_FDCWD, p == page ? NULL : p, 0x40000000, 0, buf), 0);
		whole(syscall(SYS_access, p, 8), 0);
		whole(syscall(SYS_access, p, 4), 0);
		whole(syscall(SYS_readlink, p, buf, 0), 0);
		whole(syscall(SYS_getxattr, "file", p, buf, 10), 0);
		head("bad result", "");
		whole(syscall(SYS_stat, "file", p), 0);
		whole(syscall(SYS_fstat, 4, p), 0);
		whole(syscall(SYS_stat, "missing", p), 0);
		whole(syscall(SYS_statx, AT_FDCWD, "file", 0, 0xfff, p), 0);
		whole(syscall(SYS_readlink, "to-file", p, 4), 0);
		whole(syscall(SYS_readlink, "to-file", p, 4096), 0);
		whole(syscall(SYS_getxattr, "file", "user.x", p, 3), 0);
		whole(syscall(SYS_getxattr, "file", "user.x", p, 0), 0);
		whole(syscall(SYS_listxattr, "file", p, 100), 0);
		whole(syscall(SYS_statfs, "file", p), 0);
		head("what arrived", "");
		for (size_t n = 4096 - 8; n < 4096; n++)
			printf("%02x", (unsigned char)page[n]);
		put_stat(&o, 0);
	}
}

struct entry {
	uint64_t ino;
	int64_t next;
	unsigned short len;
	unsigned char type;
	char name[];
} __attribute__((packed));

static void put_entries(long n)
{
	tail(n);
	for (long at = 0; at < n;) {
		const struct entry *e = (const void *)(buf + at);

		printf(" %llu:%lld:%u:%u:%s", (unsigned long long)e->ino, (long long)e->next, e->len,
		       e->type, e->name);
		at += e->len;
	}
	putchar('\n');
}

/* Of the old kind: no type in front of the name, but in the last byte. */
static void put_old_entries(long n)
{
	tail(n);
	for (long at = 0; at < n;) {
		const struct entry *e = (const void *)(buf + at);

		printf(" %llu:%lld:%u:%u:%s", (unsigned long long)e->ino, (long long)e->next, e->len,
		       buf[at + e->len - 1], (const char *)&e->type);
		at += e->len;
	}
	putchar('\n');
}

static void listings(void)
{
	static const int sizes[] = { 0, 1, 23, 24, 32, 64, 100, 1000, ROOM };
	static const int fds[] = { 0, 3, 4, 5, 6, 7, 8, 99, -1, AT_FDCWD };
	int fd = open("many", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int64_t third;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		long n;

		lseek(fd, 0, SEEK_SET);
		do {
			head("getdents64", "many");
			n = syscall(SYS_getdents64, fd, buf, sizes[i]);
			put_entries(n);
		} while (n > 0);
		lseek(fd, 0, SEEK_SET);
		head("getdents", "many");
		put_old_entries(syscall(SYS_getdents, fd, buf, sizes[i]));
		printf("offset %lld\n", (long long)lseek(fd, 0, SEEK_CUR));
	}
	lseek(fd, 0, SEEK_SET);
	syscall(SYS_getdents64, fd, buf, 200);
	third = ((struct entry *)(buf + ((struct entry *)buf)->len))->next;
	printf("seek %lld\n", (long long)lseek(fd, third, SEEK_SET));
	put_entries(syscall(SYS_getdents64, fd, buf, 300));
	lseek(fd, third, SEEK_SET);
	whole(syscall(SYS_getdents64, fd, NULL, 300), 0);
	whole(syscall(SYS_getdents64, fd, readonly, 300), 0);
	printf("offset %d\n", lseek(fd, 0, SEEK_CUR) == third);
	close(fd);
	for (size_t i = 0; i < COUNT(fds); i++) {
		head("getdents64", "fd");
		whole(syscall(SYS_getdents64, fds[i], buf, 64) < 0 ? -1 : 0, 0);
	}
}

/* A working folder that is gone. */
static void gone(const char *scratch)
{
	const struct object o = { "gone", PART };
	int fd;

	if (chdir(scratch) < 0 || mkdir("gone", 0755) < 0 || chdir("gone") < 0)
		die("gone");
	fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rmdir("../gone");
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = { ".", "..", "x" };

		head("gone", names[i]);
		put_stat(&o, syscall(SYS_stat, names[i], buf));
		whole(syscall(SYS_access, names[i], 4), 0);
		head("gone readlink", names[i]);
		whole(syscall(SYS_readlink, names[i], buf, 100), 100);
	}
	put_stat(&o, syscall(SYS_newfstatat, AT_FDCWD, "", buf, AT_EMPTY_PATH));
	put_stat(&o, syscall(SYS_fstat, fd, buf));
	whole(syscall(SYS_getdents64, fd, buf, 1000), 0);
	close(fd);
	if (chdir("..") < 0)
		printf("%s\n", err_name(errno));
}

static void take(int number, int fd)
{
	if (fd < 0 || (fd != number && (dup2(fd, number) < 0 || close(fd) < 0)))
		die("descriptor");
}

static void prepare(char **argv)
{
	int ends[2];

	if (chdir(argv[1]) < 0)
		die(argv[1]);
	memset(name256, 'n', 256);
	for (int i = 0; i < 4096; i += 2)
		memcpy(name4096 + i, "./", 2);
	memcpy(name4095, name4096, 4091);
	memcpy(name4095 + 4091, "file", 5);
	snprintf(absolute, sizeof(absolute), "%s/file", argv[1]);
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	readonly = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || readonly == MAP_FAILED || munmap(page + 4096, 4096) < 0)
		die("mmap");
	closefrom(3);
	take(3, open("folder", O_RDONLY | O_DIRECTORY));
	take(4, open("file", O_RDONLY));
	take(5, open("folder", O_PATH | O_DIRECTORY));
	take(6, open("to-file", O_PATH | O_NOFOLLOW));
	if (pipe(ends) < 0)
		die("pipe");
	take(7, ends[0]);
	take(8, ends[1]);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 99;
	prepare(argv);
	if (argc > 3 && setresuid(54321, 0, 0) < 0)
		die("setresuid");
	for (size_t i = 0; i < COUNT(objects); i++) {
		stats(&objects[i]);
		accesses(&objects[i]);
		texts(&objects[i]);
		newer(&objects[i]);
	}
	starts();
	pointers();
	listings();
	gone(argv[2]);
	return fflush(stdout) ? 99 : 0;
}
