/* attacks_watch.c - watches tell when somebody reads or changes what is watched. */
#include "attacks.h"

#include <sys/fanotify.h>
#include <sys/inotify.h>

static int watched(const char *path)
{
	return worked(inotify_add_watch(inotify_init1(IN_CLOEXEC), path, IN_ALL_EVENTS));
}

int at_watch(const struct tree *t)
{
	return watched(t->data);
}

int at_watch_folder(const struct tree *t)
{
	return watched(t->secret);
}

int at_watch_link(const struct tree *t)
{
	char path[PATH_MAX];
	int verdict;

	path_of(path, "%.4000s/watch-link", t->work);
	if (symlink(t->data, path))
		return ABSENT;
	verdict = watched(path);
	unlink(path);
	return verdict;
}

int at_watch_proc_fd(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/proc/self/fd/%d", open(t->data, O_PATH));
	return watched(path);
}

int at_watch_inner(const struct tree *t)
{
	return watched(t->inner);
}

int at_watch_allowed(const struct tree *t)
{
	return watched(t->work);
}

int at_watch_mount(const struct tree *t)
{
	int fd = fanotify_init(FAN_CLASS_NOTIF, O_RDONLY);

	return worked(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, t->data));
}
