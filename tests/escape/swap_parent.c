/* swap_parent.c - a change is asked for below a link that is exchanged between
 * the allowed and the forbidden folder. A call that succeeds and left no mark
 * in the allowed folder left it in the forbidden one: a hit. */
#include "swap.h"

#include <sys/inotify.h>
#include <sys/xattr.h>

static char through[RACE_BUF + 16];	/* WORK/link/NAME */
static char allowed[RACE_BUF];		/* ALLOWED_DIR/NAME */
static char forbidden[RACE_BUF];	/* FORBIDDEN_DIR/NAME */
static char other[RACE_BUF];		/* WORK/other */
static int watcher = -1, watched;

struct op {
	const char *name;
	void (*prepare)(void);
	int (*call)(void);
	bool (*landed)(void);	/* in the allowed folder; undoes it there */
	void (*restore)(void);	/* after a hit, so that another can follow */
};

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	if (write(fd, text, 1) != 1)
		race_fail(path);
	close(fd);
}

static bool there(const char *path)
{
	return access(path, F_OK) == 0;
}

static void nothing(void)
{
}

static int create(void)
{
	int fd = open(through, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static bool created(void)
{
	return unlink(allowed) == 0;
}

/* By renameat2, the one call that the naive supervisor does not watch here. */
static void uncreate(void)
{
	syscall(SYS_renameat2, AT_FDCWD, forbidden, AT_FDCWD, other, 0);
}

static int make_folder(void)
{
	return mkdir(through, 0700);
}

static bool made_folder(void)
{
	return rmdir(allowed) == 0;
}

static void unmake_folder(void)
{
	rmdir(forbidden);
}

static int make_link(void)
{
	return symlink("anywhere", through);
}

static void victims(void)
{
	put(allowed, "A");
	put(forbidden, "F");
}

static int remove_it(void)
{
	return unlink(through);
}

static bool removed(void)
{
	if (there(allowed))
		return false;
	put(allowed, "A");
	return true;
}

static void source(void)
{
	put(other, "A");
}

static int move_in(void)
{
	return rename(other, through);
}

static bool moved_in(void)
{
	bool ok = unlink(allowed) == 0;

	source();
	return ok;
}

static int link_out(void)
{
	return link(through, other);
}

static bool linked_allowed(void)
{
	char c = 0;
	int fd = open(other, O_RDONLY | O_CLOEXEC);
	bool ok = fd < 0 || read(fd, &c, 1) != 1 || c != 'F';

	if (fd >= 0)
		close(fd);
	unlink(other);
	return ok;
}

static int change_mode(void)
{
	return chmod(through, 0640);
}

static bool mode_changed(void)
{
	struct stat st;

	if (stat(allowed, &st) || (st.st_mode & 0777) != 0640)
		return false;
	return chmod(allowed, 0600) == 0;
}

static int cut(void)
{
	return truncate(through, 0);
}

static bool was_cut(void)
{
	struct stat st;

	if (stat(allowed, &st) || st.st_size != 0)
		return false;
	put(allowed, "A");
	return true;
}

static int set_attribute(void)
{
	return setxattr(through, "user.raced", "1", 1, 0);
}

static bool attribute_set(void)
{
	return removexattr(allowed, "user.raced") == 0;
}

static int watch_it(void)
{
	if (watcher < 0)
		watcher = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	watched = inotify_add_watch(watcher, through, IN_ATTRIB);
	return watched < 0 ? -1 : 0;
}

/* The watch tells of the allowed file, or it is on the other one. */
static bool tells_of_allowed(void)
{
	char events[1024];
	bool ok = utimensat(AT_FDCWD, allowed, NULL, 0) == 0 &&
		  read(watcher, events, sizeof(events)) > 0;

	inotify_rm_watch(watcher, watched);
	while (read(watcher, events, sizeof(events)) > 0)
		;
	return ok;
}

static const struct op ops[] = {
	{ "create", nothing, create, created, uncreate },
	{ "mkdir", nothing, make_folder, made_folder, unmake_folder },
	{ "symlink", nothing, make_link, created, uncreate },
	{ "unlink", victims, remove_it, removed, victims },
	{ "rename", source, move_in, moved_in, uncreate },
	{ "link", victims, link_out, linked_allowed, nothing },
	{ "chmod", victims, change_mode, mode_changed, nothing },
	{ "truncate", victims, cut, was_cut, victims },
	{ "setxattr", victims, set_attribute, attribute_set, nothing },
	{ "watch", victims, watch_it, tells_of_allowed, nothing },
};

static const struct op *find(const char *name)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strcmp(ops[i].name, name) == 0)
			return &ops[i];
	errno = EINVAL;
	race_fail(name);
	return NULL;
}

int main(int argc, char **argv)
{
	struct race r;
	struct swap *s = malloc(sizeof(*s));
	const struct op *op;
	const char *name;
	pthread_t t;

	race_usage(argc, 6, "swap_parent TRIES ALLOWED_DIR FORBIDDEN_DIR WORK OPERATION");
	race_begin(&r, argv[1]);
	op = find(argv[5]);
	if (!s)
		race_fail("malloc");
	swap_init(s, argv[4], argv[2], argv[3], false);
	name = op->prepare == victims ? "victim" : "raced";
	snprintf(through, sizeof(through), "%s/%s", s->link, name);
	swap_path(allowed, argv[2], name);
	swap_path(forbidden, argv[3], name);
	swap_path(other, argv[4], "other");
	op->prepare();
	t = race_thread(swap_run, s);
	while (race_more(&r)) {
		if (op->call()) {
			r.other++;
		} else if (!op->landed()) {
			r.hits++;
			op->restore();
		}
	}
	swap_end(s, t);
	unlink(other);
	return race_end(&r);
}
