/* terminal.c - controlling terminals and pseudo-terminals of the tree. */
#include "broker/terminal.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

enum { MAJOR_PTS = 136, MAJOR_PTS_LAST = 143 };

/* proc(5): minor in bits 31-20 and 7-0, major in 15-8. */
static dev_t tty_device(int tty)
{
	return makedev((unsigned)(tty >> 8) & 0xfff,
		       ((unsigned)tty & 0xff) | ((unsigned)tty >> 12 & 0xfff00));
}

static bool is_pts(dev_t dev)
{
	return major(dev) >= MAJOR_PTS && major(dev) <= MAJOR_PTS_LAST;
}

static unsigned pts_number(dev_t dev)
{
	return (major(dev) - MAJOR_PTS) * 256 + minor(dev);
}

int sv_open_own_tty(const struct sv_work *w, int flags)
{
	int tty = 0, own = 0, got;
	pid_t session;
	char name[32];
	dev_t dev;

	if (sv_tracee_tty(w->paths.proc_fd, w->call.tid, &tty, &session) < 0 || tty == 0)
		return -ENXIO;
	dev = tty_device(tty);
	if (sv_tracee_tty(w->paths.proc_fd, w->sh->self, &own, &session) == 0 && own == tty)
		snprintf(name, sizeof(name), "/dev/tty");
	else if (is_pts(dev))
		snprintf(name, sizeof(name), "/dev/pts/%u", pts_number(dev));
	else
		return -ENXIO;
	got = open(name, flags);
	return got < 0 ? -errno : got;
}

/* A master shows the number of its terminal in fdinfo. */
static bool holds_master(int pid_fd, unsigned number)
{
	cleanup_fd int dir = openat(pid_fd, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *e;
	bool found = false;

	if (!d)
		return false;
	while (!found && (e = readdir(d))) {
		char text[512];
		const char *p;
		int fd = openat(dir, e->d_name, O_RDONLY | O_CLOEXEC);
		ssize_t k = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

		if (fd >= 0)
			close(fd);
		if (k <= 0)
			continue;
		text[k] = 0;
		p = strstr(text, "\ntty-index:");
		found = p && strtoul(p + 11, NULL, 10) == number;
	}
	closedir(d);
	take_fd(&dir);
	return found;
}

static bool tree_holds_master(const struct sv_work *w, unsigned number)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d))) {
		int pid = atoi(e->d_name), fd;

		if (pid <= 0 || !sv_in_tree(w->paths.proc_fd, pid))
			continue;
		fd = openat(w->paths.proc_fd, e->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		found = fd >= 0 && holds_master(fd, number);
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
	return found;
}

bool sv_foreign_terminal(const struct sv_work *w, const struct sv_place *p)
{
	int tty = 0;
	pid_t session;

	if (!S_ISCHR(p->st.st_mode) || !is_pts(p->st.st_rdev))
		return false;
	if (sv_tracee_tty(w->paths.proc_fd, w->call.tid, &tty, &session) == 0 && tty != 0 &&
	    tty_device(tty) == p->st.st_rdev)
		return false;
	return !tree_holds_master(w, pts_number(p->st.st_rdev));
}
