/* twin.c - random file operations, a line each:
 *
 *   epoch.number, call and arguments, what came back
 *
 * What is done depends on the seed and the number alone, and on what a line
 * told: natively and supervised the same sequence runs. After EPOCH operations
 * the tree is told and made anew, so that one difference is no more than that.
 *
 * usage: twin FOLDER SEED OPERATIONS [UID [turns]]   (FOLDER is there and empty)
 *
 * With UID (for root) everything is done as that user, with turns only at times. */
#include "twin_tree.h"

#include <grp.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <utime.h>

enum { EPOCH = 250, SLOTS = 8, NR_fchmodat2 = 452 };

static uint64_t state;
static int slots[SLOTS];
static unsigned other;		/* the effective identity changes between root's and this */
static bool over;		/* this epoch ends here: what came may differ */
static char *edge;		/* the last bytes before nothing */
static char n255[256], n256[257];
static int tree_fd;

static uint64_t next(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static unsigned below(unsigned n) { return (unsigned)(next() % n); }
static bool chance(unsigned percent) { return below(100) < percent; }

#define PICK(array) ((array)[below(COUNT(array))])

/* Names. */

static const char *component(unsigned *ups)
{
	static const char *const common[] = {
		"a", "b", "c", "d", "e", "f", "g", "h", "a", "b", "p", "s", "st", "sg", "no", "new",
	};
	static const char *const odd[] = {
		"n\nl", " sp ", "\xff\xfe", "#x", "...", "\\", "-f", "*", n255, n256,
		"\xe2\x82\xac", "a:b", "..a", "a (deleted)", " (deleted)",
	};

	if (chance(5))
		return ".";
	if (*ups < 2 && chance(7)) {
		++*ups;
		return "..";
	}
	return chance(8) ? PICK(odd) : PICK(common);
}

static void plain_path(char *buf, size_t cap, unsigned ups)
{
	unsigned n = 1 + (chance(45) ? 1 + below(2) : 0) + (chance(7) ? 1 : 0), i;

	buf[0] = 0;
	if (chance(15))
		snprintf(buf, cap, "%s/", tree);
	for (i = 0; i < n; i++) {
		strcat(buf, component(&ups));
		if (i + 1 < n)
			strcat(buf, chance(4) ? "//" : "/");
	}
	if (chance(7))
		strcat(buf, chance(20) ? "//" : "/");
	else if (chance(2))
		strcat(buf, chance(50) ? "/." : "/..");
}

static void long_path(char *buf)
{
	static const unsigned sizes[] = { 1000, 4090, 4094, 4095, 4096, 4097, 4900 };
	const unsigned n = PICK(sizes);
	const char *end = chance(50) ? "b" : "new";
	unsigned i = 0;

	while (i + 2 + strlen(end) <= n) {
		memcpy(buf + i, "./", 2);
		i += 2;
	}
	if (i + strlen(end) < n)
		buf[i++] = '/';
	strcpy(buf + i, end);
}

/* One's own descriptors by name. */
static void magic_path(char *buf, size_t cap)
{
	static const char *const ends[] = { "", "", "", "/", "/a", "/..", "/new" };
	static const char *const starts[] = { "/proc/self", "/proc/thread-self", "/dev" };

	snprintf(buf, cap, "%s/fd/%d%s", PICK(starts), slots[below(SLOTS)], PICK(ends));
}

struct name {
	const char *p;
	char buf[5000];
};

/* A path argument, and its part of the line. */
static const char *path(struct name *n)
{
	const unsigned what = below(1000);

	n->p = n->buf;
	n->buf[0] = 0;
	say(" ");
	if (what < 4)
		n->p = NULL;
	else if (what < 7)
		n->p = (const char *)16;
	else if (what < 9)
		n->p = (const char *)0xffffffff80000000u;
	else if (what < 12)
		n->p = edge;
	else if (what < 20)
		long_path(n->buf);
	else if (what < 30)
		magic_path(n->buf, sizeof(n->buf));
	else if (what >= 40)
		plain_path(n->buf, sizeof(n->buf), 0);
	if (n->p == n->buf)
		say_name(*n->buf ? n->buf : "(empty)");
	else
		say(n->p ? n->p == edge ? "(edge)" : "(bad)" : "(null)");
	return n->p;
}

static int slot(void)
{
	const unsigned i = below(SLOTS);

	say(" [%d]", slots[i]);
	return slots[i];
}

static int dirfd_of(void)
{
	static const int bad[] = { 777, -1, -99, -101, 1 << 30 };

	if (chance(40))
		return slot();
	if (chance(4)) {
		int fd = PICK(bad);

		say(" [%d]", fd);
		return fd;
	}
	return AT_FDCWD;
}

/* Results. */

static void say_result(long rc)
{
	const int err = errno;

	say("\t%ld %s", rc, rc < 0 ? err_name(err) : "ok");
}

static bool outside(int fd)
{
	char self[64], text[4097];
	ssize_t k;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	k = readlink(self, text, sizeof(text) - 1);
	if (k < 0)
		return true;
	text[k] = 0;
	return strncmp(text, tree, tree_len) || (text[tree_len] != '/' && text[tree_len] != 0);
}

/* What was opened, and into a slot, where it may stay. */
static void keep(long fd, bool stays)
{
	const unsigned i = below(SLOTS);
	struct stat st;

	say_result(fd);
	if (fd < 0)
		return;
	if (fstat((int)fd, &st) < 0)
		die("fstat");
	say_stat(&st);
	/* a descriptor that was opened again cannot carry O_NOFOLLOW */
	say(" %o %d", fcntl((int)fd, F_GETFL) & ~O_NOFOLLOW, fcntl((int)fd, F_GETFD));
	if (!stays || outside((int)fd)) {
		close((int)fd);
		return;
	}
	if (slots[i] >= 0)
		close(slots[i]);
	slots[i] = (int)fd;
}

/* Opening. */

static uint64_t open_flags(void)
{
	static const struct { uint64_t flag; unsigned percent; } more[] = {
		{ O_CREAT, 35 }, { O_EXCL, 12 }, { O_TRUNC, 15 }, { O_APPEND, 8 },
		{ O_NOFOLLOW, 12 }, { O_DIRECTORY, 12 }, { O_PATH, 8 }, { O_TMPFILE, 4 },
		{ O_CLOEXEC, 30 }, { O_NONBLOCK, 25 }, { O_DIRECT, 1 }, { O_SYNC, 1 },
		{ O_NOATIME, 2 }, { O_ASYNC, 1 }, { O_NOCTTY, 2 }, { 0x40000000, 1 },
	};
	static const uint64_t access[] = { O_RDONLY, O_RDONLY, O_WRONLY, O_RDWR, O_RDWR };
	uint64_t flags = chance(1) ? 3 : PICK(access);
	size_t i;

	for (i = 0; i < COUNT(more); i++)
		if (chance(more[i].percent))
			flags |= more[i].flag;
	return flags;
}

static unsigned some_mode(void)
{
	static const unsigned modes[] = {
		0644, 0666, 0600, 0755, 0777, 0, 0400, 0200, 0111, 07777, 04755, 02755, 01777, 0300,
		0500, 0170644,
	};

	return chance(10) ? (unsigned)below(010000) : PICK(modes);
}

static uint64_t some_resolve(void)
{
	static const uint64_t each[] = {
		RESOLVE_NO_XDEV, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH,
		RESOLVE_IN_ROOT, 0x40,
	};
	uint64_t r = 0;

	if (chance(50))
		return 0;
	r = each[below(chance(3) ? 6 : 5)];
	return chance(20) ? r | each[below(5)] : r;
}

/* A FIFO waits for its other end, unless it is told not to. */
static bool waits(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, 0) == 0 && S_ISFIFO(st.st_mode);
}

static void op_open(void)
{
	struct name n;
	uint64_t flags = open_flags();
	const unsigned mode = some_mode();
	const int dir = chance(25) ? AT_FDCWD : dirfd_of();
	const char *p = path(&n);

	if (waits(dir, p))
		flags |= O_NONBLOCK;
	say(" 0%lo 0%o", (unsigned long)flags, mode);
	if (dir == AT_FDCWD && chance(30))
		keep(syscall(SYS_open, p, flags, mode), true);
	else
		keep(syscall(SYS_openat, dir, p, flags, mode), true);
}

static void op_creat(void)
{
	struct name n;
	const unsigned mode = some_mode();
	const char *p = path(&n);

	say(" 0%o", mode);
	if (waits(AT_FDCWD, p))
		say("\tfifo");
	else
		keep(syscall(SYS_creat, p, mode), true);
}

/* The kernel may ask to try again where somebody else's rename ran meanwhile. */
static long openat2_patiently(int dir, const char *p, const void *how, size_t size)
{
	long fd = -1;
	int i;

	for (i = 0; i < 50; i++) {
		fd = syscall(SYS_openat2, dir, p, how, size);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd;
}

static void op_openat2(void)
{
	static union { struct open_how how; char room[6000]; } u;
	static const size_t sizes[] = { 0, 8, 23, 25, 32, 64, 4096, 4097, 5000 };
	size_t size = chance(4) ? PICK(sizes) : sizeof(u.how);
	const void *how = chance(99) ? (void *)&u : chance(50) ? NULL : edge - 8;
	struct name n;
	int dir;
	const char *p;

	memset(&u, 0, sizeof(u));
	u.how.flags = open_flags();
	if (u.how.flags & O_PATH)
		u.how.flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	u.how.resolve = some_resolve();
	if (u.how.flags & O_CREAT || (u.how.flags & O_TMPFILE) == O_TMPFILE || chance(3))
		u.how.mode = some_mode();
	if (chance(30))
		u.room[sizeof(u.how) + below(40)] = 1;
	dir = dirfd_of();
	p = path(&n);
	/* limits may lead it to another object than stat finds */
	if (!(u.how.flags & O_PATH) && (u.how.resolve || waits(dir, p)))
		u.how.flags |= O_NONBLOCK;
	say(" 0%llo 0%llo resolve=%llx %zu%s", u.how.flags, u.how.mode, u.how.resolve, size,
	    how == &u ? "" : " bad how");
	keep(openat2_patiently(dir, p, how, size), !(u.how.flags & O_PATH && u.how.resolve));
}

/* Names made and removed. */

static void op_mkdir(void)
{
	struct name n;
	const unsigned mode = some_mode();
	const bool at = chance(60);
	const int dir = at ? dirfd_of() : AT_FDCWD;
	const char *p = path(&n);

	say(" 0%o", mode);
	say_result(at ? syscall(SYS_mkdirat, dir, p, mode) : syscall(SYS_mkdir, p, mode));
}

static void op_mknod(void)
{
	static const unsigned types[] = {
		S_IFIFO, S_IFREG, S_IFSOCK, 0, S_IFIFO, S_IFREG, S_IFDIR, S_IFLNK, 0070000,
	};
	struct name n;
	const unsigned mode = (some_mode() & 07777) | PICK(types);
	const bool at = chance(60);
	const int dir = at ? dirfd_of() : AT_FDCWD;
	const char *p = path(&n);

	say(" 0%o", mode);
	say_result(at ? syscall(SYS_mknodat, dir, p, mode, 0) : syscall(SYS_mknod, p, mode, 0));
}

static void op_unlink(void)
{
	static const int flags[] = { 0, 0, 0, AT_REMOVEDIR, AT_REMOVEDIR, 1, AT_EMPTY_PATH };
	struct name n;
	const int how = (int)below(3), flag = PICK(flags);
	const int dir = how == 2 ? dirfd_of() : AT_FDCWD;
	const char *p = path(&n);

	if (how == 2)
		say(" %x", flag);
	else
		say(how ? " unlink" : " rmdir");
	say_result(how == 0 ? syscall(SYS_rmdir, p) : how == 1 ? syscall(SYS_unlink, p) :
		   syscall(SYS_unlinkat, dir, p, flag));
}

static void op_rename(void)
{
	static const unsigned odd[] = { 3, 4, 6, 7, 8, 16, 0x80000000 };
	struct name a, b;
	const int how = (int)below(4);
	const int from = how > 0 ? dirfd_of() : AT_FDCWD;
	const char *p = path(&a);
	const int to = how > 0 ? dirfd_of() : AT_FDCWD;
	const char *q = path(&b);
	const unsigned flags = how < 2 ? 0 : chance(4) ? PICK(odd) : below(3);

	say(" %x", flags);
	over = flags & 4;
	if (how == 0)
		say_result(syscall(SYS_rename, p, q));
	else if (how == 1)
		say_result(syscall(SYS_renameat, from, p, to, q));
	else
		say_result(syscall(SYS_renameat2, from, p, to, q, flags));
}

static void op_link(void)
{
	static const int flags[] = {
		0, 0, 0, AT_SYMLINK_FOLLOW, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH, AT_EMPTY_PATH,
		AT_SYMLINK_FOLLOW | AT_EMPTY_PATH, 1, AT_SYMLINK_NOFOLLOW,
	};
	struct name a, b;
	const bool at = chance(70);
	const int flag = at ? PICK(flags) : 0;
	const int from = at ? dirfd_of() : AT_FDCWD;
	const bool empty = flag & AT_EMPTY_PATH && chance(60);
	const char *p = empty ? "" : path(&a);
	const int to = at ? dirfd_of() : AT_FDCWD;
	const char *q = path(&b);

	say(" %x%s", flag, empty ? " (empty)" : "");
	say_result(at ? syscall(SYS_linkat, from, p, to, q, flag) : syscall(SYS_link, p, q));
}

static void op_symlink(void)
{
	struct name a, b;
	const bool at = chance(60);
	const char *p = a.buf;
	int dir;
	const char *q;

	if (chance(90)) {
		plain_path(a.buf, sizeof(a.buf), 1);
		say(" ");
		say_name(a.buf);
	} else {
		p = path(&a);
	}
	dir = at ? dirfd_of() : AT_FDCWD;
	q = path(&b);
	say_result(at ? syscall(SYS_symlinkat, p, dir, q) : syscall(SYS_symlink, p, q));
}

/* Metadata. */

static int meta_flags(void)
{
	static const int flags[] = {
		0, 0, AT_SYMLINK_NOFOLLOW, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH,
		AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, 1, AT_SYMLINK_FOLLOW,
	};
	const int flag = PICK(flags);

	say(" %x", flag);
	return flag;
}

static void op_chmod(void)
{
	struct name n;
	const unsigned mode = some_mode();
	const int how = (int)below(4);
	const int fd = how == 0 ? slot() : how == 1 ? AT_FDCWD : dirfd_of();
	const char *p = how == 0 ? "" : path(&n);

	say(" 0%o %d", mode, how);
	if (how == 0)
		say_result(syscall(SYS_fchmod, fd, mode));
	else if (how == 1)
		say_result(syscall(SYS_chmod, p, mode));
	else if (how == 2)
		say_result(syscall(SYS_fchmodat, fd, p, mode));
	else
		say_result(syscall(NR_fchmodat2, fd, p, mode, meta_flags()));
}

static unsigned some_id(unsigned own)
{
	static const unsigned ids[] = { (unsigned)-1, (unsigned)-1, 0, 12345, 1 };

	return chance(40) ? own : PICK(ids);
}

static void op_chown(void)
{
	struct name n;
	const unsigned uid = some_id(getuid()), gid = some_id(getgid());
	const int how = (int)below(4);
	const int fd = how == 0 ? slot() : how < 3 ? AT_FDCWD : dirfd_of();
	const char *p = how == 0 ? "" : path(&n);

	say(" %d %d %d", (int)uid, (int)gid, how);
	if (how == 0)
		say_result(syscall(SYS_fchown, fd, uid, gid));
	else if (how == 1)
		say_result(syscall(SYS_chown, p, uid, gid));
	else if (how == 2)
		say_result(syscall(SYS_lchown, p, uid, gid));
	else
		say_result(syscall(SYS_fchownat, fd, p, uid, gid, meta_flags()));
}

static struct timespec some_time(void)
{
	static const long nsecs[] = {
		0, 999999999, 1000000000, -1, UTIME_NOW, UTIME_NOW, UTIME_OMIT, UTIME_OMIT,
	};
	struct timespec t = { (long)below(1000000) - (chance(10) ? 1000000 : 0), 0 };

	t.tv_nsec = chance(50) ? (long)below(1000000000) : PICK(nsecs);
	say(" %ld.%ld", t.tv_sec, t.tv_nsec);
	return t;
}

static void op_utimens(void)
{
	struct name n;
	struct timespec ts[2];
	const int fd = dirfd_of();
	const char *p = chance(25) ? NULL : path(&n);
	const int flag = meta_flags();
	const void *t = ts;

	ts[0] = some_time();
	ts[1] = some_time();
	if (chance(12))
		t = chance(80) ? NULL : (void *)8;
	say(t ? t == ts ? "" : " bad" : " null");
	say_result(syscall(SYS_utimensat, fd, p, t, flag));
}

static void op_utimes(void)
{
	struct name n;
	struct timeval tv[2];
	struct utimbuf buf;
	const int how = (int)below(3);
	const int fd = how == 2 ? dirfd_of() : AT_FDCWD;
	const char *p = path(&n);
	const bool none = chance(15);
	int i;

	for (i = 0; i < 2; i++) {
		tv[i].tv_sec = below(1000000);
		tv[i].tv_usec = chance(95) ? (long)below(1000000) : chance(50) ? -1 : 1000000;
		say(" %ld.%ld", tv[i].tv_sec, tv[i].tv_usec);
	}
	buf.actime = tv[0].tv_sec;
	buf.modtime = tv[1].tv_sec;
	say(" %d%s", how, none ? " null" : "");
	if (how == 0)
		say_result(syscall(SYS_utime, p, none ? NULL : &buf));
	else if (how == 1)
		say_result(syscall(SYS_utimes, p, none ? NULL : tv));
	else
		say_result(syscall(SYS_futimesat, fd, p, none ? NULL : tv));
}

static void op_truncate(void)
{
	static const long lengths[] = { 0, 1, 3, 100, 5000, -1, 1L << 62 };
	struct name n;
	const long length = PICK(lengths);
	const bool held = chance(25);
	const int fd = held ? slot() : -1;
	const char *p = held ? "" : path(&n);

	say(" %ld", length);
	say_result(held ? syscall(SYS_ftruncate, fd, length) : syscall(SYS_truncate, p, length));
}

/* What stays in the kernel, so that states are compared, and where one is. */

static void op_read(void)
{
	char buf[300];
	const int fd = slot();
	const size_t n = below(sizeof(buf));
	const long rc = syscall(SYS_read, fd, buf, n);

	say(" %zu", n);
	say_result(rc);
	if (rc > 0)
		say(" %08x", sum_of(2166136261u, buf, (size_t)rc));
}

static void op_write(void)
{
	char buf[300];
	const int fd = slot();
	const size_t n = below(sizeof(buf));

	memset(buf, 'a' + (int)below(26), n);
	say(" %zu", n);
	say_result(syscall(SYS_write, fd, buf, n));
}

static void op_stat(void)
{
	struct name n;
	struct stat st;
	const int fd = dirfd_of();
	const char *p = path(&n);
	const int flag = meta_flags();
	const long rc = syscall(SYS_newfstatat, fd, p, &st, flag);

	say_result(rc);
	if (rc == 0)
		say_stat(&st);
}

static void op_access(void)
{
	struct name n;
	const int fd = dirfd_of();
	const char *p = path(&n);
	const unsigned mode = below(9);

	say(" %u", mode);
	say_result(syscall(SYS_faccessat, fd, p, mode));
}

static void op_readlink(void)
{
	struct name n;
	char buf[4097];
	const int fd = dirfd_of();
	const char *p = path(&n);
	const long rc = syscall(SYS_readlinkat, fd, p, buf, sizeof(buf) - 1);

	/* an absolute one is as long as the twins' own names */
	say_result(rc);
	if (rc >= 0) {
		buf[rc] = 0;
		say(" ");
		say_name(buf);
	}
}

static void op_list(void)
{
	struct name n;
	char **all = NULL;
	const int fd = dirfd_of();
	const char *p = path(&n);
	const int dir = openat(fd, p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int i, count;

	say_result(dir);
	if (dir < 0)
		return;
	count = outside(dir) ? 0 : names_of(dir, &all);
	for (i = 0; i < count; i++) {
		say(" ");
		say_name(all[i]);
		free(all[i]);
	}
	free(all);
	close(dir);
}

static void op_umask(void)
{
	static const unsigned masks[] = { 0, 022, 077, 027, 0777, 0200 };
	const unsigned mask = PICK(masks);

	say(" 0%o", mask);
	say_result(umask(mask));
}

static void take_identity(unsigned id)
{
	if (seteuid(0) < 0 || setegid(id) < 0 || seteuid(id) < 0)
		die("identity");
}

/* Whoever owns the tree by now and whatever its mode. */
static void go_home(void)
{
	if (fchdir(tree_fd) < 0 && other)
		take_identity(0);
	if (fchdir(tree_fd) < 0 && (fchmod(tree_fd, 0755) < 0 || fchdir(tree_fd) < 0))
		die("home");
}

static void op_chdir(void)
{
	struct name n;
	const bool held = chance(40);
	const int fd = held ? slot() : -1;
	const char *p = held ? "" : path(&n);

	say_result(held ? syscall(SYS_fchdir, fd) : syscall(SYS_chdir, p));
	if (chance(50))
		go_home();
}

static void op_close(void)
{
	const unsigned i = below(SLOTS);

	say(" [%d]", slots[i]);
	say_result(close(slots[i]));
	slots[i] = -1;
}

static const struct { const char *name; void (*run)(void); unsigned weight; } ops[] = {
	{ "open", op_open, 22 }, { "creat", op_creat, 3 }, { "openat2", op_openat2, 10 },
	{ "mkdir", op_mkdir, 6 }, { "mknod", op_mknod, 4 }, { "unlink", op_unlink, 6 },
	{ "rename", op_rename, 8 }, { "link", op_link, 7 }, { "symlink", op_symlink, 6 },
	{ "chmod", op_chmod, 6 }, { "chown", op_chown, 5 }, { "utimens", op_utimens, 4 },
	{ "utimes", op_utimes, 3 }, { "truncate", op_truncate, 3 }, { "read", op_read, 2 },
	{ "write", op_write, 3 }, { "stat", op_stat, 4 }, { "access", op_access, 1 },
	{ "readlink", op_readlink, 2 }, { "list", op_list, 2 }, { "umask", op_umask, 1 },
	{ "chdir", op_chdir, 3 }, { "close", op_close, 1 },
};

/* Removed, or called so? In a folder that may not be searched nobody can tell. */
static bool doubtful(const char *self)
{
	static const char tail[] = " (deleted)";
	const ssize_t n = sizeof(tail) - 1;
	char text[4097];
	struct stat st;
	const ssize_t k = readlink(self, text, sizeof(text) - 1);

	text[k < 0 ? 0 : k] = 0;
	return k > n && !strcmp(text + k - n, tail) && lstat(text, &st) < 0 && errno == EACCES;
}

static bool any_doubtful(void)
{
	char self[64];
	bool any = doubtful("/proc/self/cwd");
	int i;

	for (i = 0; i < SLOTS && !any; i++) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", slots[i]);
		any = doubtful(self);
	}
	return any;
}

static void one(unsigned long seed, unsigned long epoch, unsigned long number)
{
	unsigned total = 0, at;
	size_t i;

	state = seed * 1000003 + number;
	for (i = 0; i < COUNT(ops); i++)
		total += ops[i].weight;
	at = below(total);
	for (i = 0; at >= ops[i].weight; i++)
		at -= ops[i].weight;
	say("%lu.%lu\t%s", epoch, number, ops[i].name);
	if (other && chance(10))
		take_identity(geteuid() ? 0 : other);
	if (any_doubtful())
		say(" doubtful");
	errno = 0;
	ops[i].run();
	end_line();
}

/* Work goes on in the tree; in a folder that was removed it may. */
static void stay_inside(void)
{
	char here[4097];

	if (getcwd(here, sizeof(here)) &&
	    (strncmp(here, tree, tree_len) || (here[tree_len] != '/' && here[tree_len])))
		go_home();
}

static void first_slots(void)
{
	static const struct { const char *name; int flags; } first[] = {
		{ "a", O_RDONLY | O_DIRECTORY }, { "a", O_PATH }, { "st", O_RDONLY }, { "b", O_RDWR },
		{ "e", O_PATH | O_NOFOLLOW }, { "p", O_RDWR | O_NONBLOCK }, { "sg", O_PATH | O_DIRECTORY },
	};
	size_t i;

	for (i = 0; i < COUNT(first); i++) {
		slots[i] = open(first[i].name, first[i].flags | O_CLOEXEC);
		if (slots[i] < 0)
			die(first[i].name);
	}
}

static void close_slots(void)
{
	int i;

	for (i = 0; i < SLOTS; i++) {
		if (slots[i] >= 0)
			close(slots[i]);
		slots[i] = -1;
	}
}

static void run(int top, unsigned long seed, unsigned long count)
{
	unsigned long i = 0, epoch;

	for (epoch = 0; i < count; epoch++) {
		unsigned long end = i + EPOCH < count ? i + EPOCH : count;

		if (fchdir(top) < 0)
			die("top");
		wipe(top);
		make_tree(top);
		tree_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		first_slots();
		for (over = false; i < end && !over; i++) {
			stay_inside();
			one(seed, epoch, i);
		}
		close_slots();
		close(tree_fd);
		if (other)
			take_identity(0);
		if (fchdir(top) < 0)
			die("top");
		printf("%lu.tree\n", epoch);
		tell(top, 0);
		fflush(stdout);
	}
}

static void become(unsigned id, const char *folder)
{
	if (chown(folder, id, id) < 0 || setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 ||
	    setresuid(id, id, id) < 0)
		die("identity");
}

int main(int argc, char **argv)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int i, top;

	if (argc < 4)
		die("usage");
	if (argc == 5)
		become((unsigned)atoi(argv[4]), argv[1]);
	else if (argc > 5)
		other = (unsigned)atoi(argv[4]);
	signal(SIGPIPE, SIG_IGN);
	top = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		die(argv[1]);
	tree_len = (size_t)snprintf(tree, sizeof(tree), "%s/0/1/2/3/4/5/6/7", argv[1]);
	memset(n255, 'n', 255);
	memset(n256, 'n', 256);
	edge = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (edge == MAP_FAILED || munmap(edge + page, page) < 0)
		die("mmap");
	memset(edge, 'a', page);
	edge += page - 5;
	for (i = 0; i < SLOTS; i++)
		slots[i] = -1;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	run(top, strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	return fflush(stdout) ? 1 : 0;
}
