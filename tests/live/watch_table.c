/* watch_table.c - inotify watches: objects, masks, descriptors, and what the watches
 * then tell, a line of three fields between tabs each:
 *
 *   part, case, errno or the watch's number, and events
 *
 * usage: watch_table FOLDER   (there and empty) */
#include "table.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/xattr.h>

static char n256[257], p4096[4097];

static const char *const objects[] = {
	"reg", "ro", "shut", "dir", "lfile", "ldir", "dangling", "loop", "fifo", "new", "reg/",
	"dir/", "ldir/", "lfile/", ".", "..", "", "dir/f", "ldir/f", "reg/x", "missing/x", n256,
	p4096, "/dev/null", "/proc/self/status", "/proc/self/fd/0",
};

static void standard(void)
{
	empty_folder(".");
	put_file("reg", 0644, "hello");
	put_file("ro", 0400, "hello");
	put_file("shut", 0, "hello");
	mkdir("dir", 0755);
	put_file("dir/f", 0644, "in dir");
	(void)!symlink("reg", "lfile");
	(void)!symlink("dir", "ldir");
	(void)!symlink("none", "dangling");
	(void)!symlink("loop", "loop");
	mknod("fifo", S_IFIFO | 0644, 0);
}

static long watch(int fd, const char *path, uint32_t mask)
{
	return syscall(SYS_inotify_add_watch, fd, path, mask);
}

/* Everything that the instance has to tell, in order. */
static void tell(int fd)
{
	static char buf[65536] __attribute__((aligned(8)));
	ssize_t n = read(fd, buf, sizeof(buf)), at = 0;

	while (at < n) {
		const struct inotify_event *e = (const void *)(buf + at);

		printf(" %d:%x%s%s", e->wd, e->mask, e->len ? "=" : "", e->len ? e->name : "");
		at += (ssize_t)sizeof(*e) + e->len;
	}
}

static void say(const char *part, const char *what, long rc)
{
	const int err = errno;

	printf("%s\t%.40s\t", part, *what ? what : "(empty)");
	if (rc < 0)
		printf("%s", err_name(err));
	else
		printf("%ld", rc);
}

static int instance(void)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		die("inotify_init1");
	return fd;
}

/* One watch on each object in turn, and then a change of it. */
static void each_object(const char *part, uint32_t mask)
{
	size_t i;

	for (i = 0; i < COUNT(objects); i++) {
		int fd = instance();

		standard();
		say(part, objects[i], watch(fd, objects[i], mask));
		chmod("reg", 0600);
		chmod("dir", 0700);
		(void)!lchown("lfile", getuid(), -1);
		put_file("dir/made", 0600, "x");
		unlink("dir/f");
		tell(fd);
		printf("\n");
		close(fd);
	}
}

static void masks(void)
{
	char what[64];
	int bit, fd;

	for (bit = 0; bit < 32; bit++) {
		fd = instance();
		standard();
		snprintf(what, sizeof(what), "bit %d", bit);
		say("mask", what, watch(fd, "reg", 1u << bit));
		chmod("reg", 0600);
		unlink("reg");
		tell(fd);
		printf("\n");
		close(fd);
	}
	fd = instance();
	say("mask", "none", watch(fd, "reg", 0));
	say(" add and create", "reg", watch(fd, "dir", IN_MODIFY | IN_MASK_ADD | IN_MASK_CREATE));
	say(" first", "dir", watch(fd, "dir", IN_CREATE | IN_MASK_CREATE));
	say(" again", "dir", watch(fd, "dir", IN_CREATE | IN_MASK_CREATE));
	say(" more", "dir", watch(fd, "ldir", IN_DELETE | IN_MASK_ADD));
	say(" another", "dir/f", watch(fd, "dir/f", IN_ALL_EVENTS | IN_ONESHOT));
	chmod("dir/f", 0600);
	chmod("dir/f", 0640);
	put_file("dir/made", 0600, "x");
	unlink("dir/made");
	say(" gone", "1", syscall(SYS_inotify_rm_watch, fd, 1));
	put_file("dir/made", 0600, "x");
	tell(fd);
	printf("\n");
	close(fd);
}

/* Two things wrong: which of them counts? */
static void wrong(const char *what, int fd)
{
	const char *const bad = (const char *)8;

	standard();
	say("wrong", what, watch(fd, "reg", IN_MODIFY));
	say(" no mask", what, watch(fd, bad, 0));
	say(" odd mask", what, watch(fd, bad, 1u << 20));
	say(" two modes", what, watch(fd, bad, IN_MASK_ADD | IN_MASK_CREATE));
	say(" bad path", what, watch(fd, bad, IN_MODIFY));
	say(" no path", what, watch(fd, NULL, IN_MODIFY));
	say(" missing", what, watch(fd, "new", IN_MODIFY));
	say(" far bits", what, syscall(SYS_inotify_add_watch, (1UL << 32) | (unsigned)fd, "dir",
				      (1UL << 40) | IN_MODIFY));
	printf("\n");
	if (fd >= 0)
		close(fd);
}

static int through_proc(void)
{
	char name[40];
	int fd = instance(), again;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	again = open(name, O_PATH | O_CLOEXEC);
	close(fd);
	return again;
}

static int moved(void)
{
	int fd = instance(), to = fcntl(fd, F_DUPFD_CLOEXEC, 700);

	close(fd);
	return to;
}

static int a_pipe(void)
{
	int p[2] = { -1, -1 };

	if (pipe(p) == 0)
		close(p[1]);
	return p[0];
}

static void descriptors(void)
{
	wrong("instance", instance());
	wrong("moved", moved());
	wrong("instance path", through_proc());
	wrong("reg", open("reg", O_RDONLY));
	wrong("reg path", open("reg", O_PATH));
	wrong("dir", open(".", O_RDONLY));
	wrong("pipe", a_pipe());
	wrong("eventfd", eventfd(0, 0));
	wrong("socket", socket(AF_UNIX, SOCK_STREAM, 0));
	wrong("no fd", 555);
	wrong("fd -1", -1);
	wrong("AT_FDCWD", AT_FDCWD);
}

static void each_event(int fd)
{
	int file, to;

	file = open("dir/f", O_RDWR | O_CLOEXEC);
	(void)!write(file, "12", 2);
	(void)!pread(file, n256 + 200, 2, 0);
	close(file);
	close(open("dir/made", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	close(open("dir/f", O_RDONLY | O_CLOEXEC));
	close(open("dir", O_RDONLY | O_CLOEXEC));
	to = open("dir/f", O_WRONLY | O_TRUNC | O_CLOEXEC);
	close(to);
	chmod("dir/f", 0600);
	(void)!chown("dir/f", getuid(), -1);
	utimensat(AT_FDCWD, "dir/f", NULL, 0);
	setxattr("dir/f", "user.a", "1", 1, 0);
	removexattr("dir/f", "user.a");
	mkdir("dir/sub", 0700);
	(void)!symlink("x", "dir/link");
	(void)!link("dir/f", "dir/f2");
	mknod("dir/fifo", S_IFIFO | 0600, 0);
	rename("dir/f2", "dir/f3");
	rename("dir/f3", "f4");
	rename("f4", "dir/f");
	unlink("dir/link");
	rmdir("dir/sub");
	tell(fd);
}

/* Less the closing of what was read: our copy of such a descriptor goes a moment later. */
static void events(void)
{
	const uint32_t all = IN_ALL_EVENTS & ~(uint32_t)IN_CLOSE_NOWRITE;
	int fd = instance();

	standard();
	say("events", "dir", watch(fd, "dir", all));
	each_event(fd);
	printf("\n");
	standard();
	say("events", "dir/f", watch(fd, "dir/f", all | IN_EXCL_UNLINK));
	each_event(fd);
	printf("\n");
	close(fd);
}

/* A thread with descriptors of its own: its number means its own instance. */
static void *apart(void *arg)
{
	const int shared = *(const int *)arg;
	int own;

	if (unshare(CLONE_FILES))
		die("unshare");
	close(shared);
	own = instance();
	if (own != shared)
		die("another number");
	say("thread", "its own", watch(own, "dir", IN_CREATE));
	say(" again", "its own", watch(own, "reg", IN_ATTRIB));
	put_file("dir/made", 0600, "x");
	chmod("reg", 0600);
	printf(" thread:");
	tell(own);
	close(own);
	return NULL;
}

static void threads(void)
{
	int fd = instance();
	pthread_t t;

	standard();
	if (pthread_create(&t, NULL, apart, &fd))
		die("thread");
	pthread_join(t, NULL);
	printf(" leader:");
	tell(fd);
	printf("\n");
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]))
		die("start");
	memset(n256, 'n', 256);
	memset(p4096, '/', 4096);
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	umask(022);
	each_object("all", IN_ALL_EVENTS & ~(uint32_t)(IN_OPEN | IN_CLOSE | IN_ACCESS));
	each_object("link", IN_ATTRIB | IN_CREATE | IN_DONT_FOLLOW);
	each_object("folder", IN_ATTRIB | IN_CREATE | IN_ONLYDIR);
	each_object("folder, no link", IN_ATTRIB | IN_ONLYDIR | IN_DONT_FOLLOW);
	masks();
	descriptors();
	events();
	threads();
	return fflush(stdout) ? 1 : 0;
}
