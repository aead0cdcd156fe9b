/* walk.c - the walk through /proc as the target sees it.
 *
 * In the supervisor "/proc/self" would be the supervisor. So names that lead
 * there are walked component by component: each step is one openat2 of one
 * name, "self" and "thread-self" are replaced by the caller's, and a magic
 * link is followed only below a process of the tree. */
#include "decode/path.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { LINKS_MAX = 40, PROC_ROOT_INO = 1 };

struct walk {
	struct sv_paths *p;
	const struct sv_tracee *t;
	int cur;		/* owned */
	int links;
	int pin;
	int via;
	char rest[2 * SV_PATH_MAX];
};

static int step_open(int dir, const char *name, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags, .resolve = resolve };
	long fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static void move_to(struct walk *w, int fd)
{
	sv_close_fd(&w->cur);
	w->cur = fd;
}

/* Put text in front of what is left to walk. */
static int prepend(struct walk *w, const char *text)
{
	char joined[2 * SV_PATH_MAX];
	int n = snprintf(joined, sizeof(joined), "%s/%s", text, w->rest);

	if (n < 0 || n >= (int)sizeof(joined))
		return -ELOOP;	/* only links make it this long */
	if (w->rest[0] == 0)
		joined[n - 1] = 0;
	strcpy(w->rest, joined);
	if (text[0] == '/') {
		int root = step_open(AT_FDCWD, "/", O_DIRECTORY, 0);

		if (root < 0)
			return root;
		move_to(w, root);
	}
	return 0;
}

/* "self" and "thread-self" in the root of a procfs. */
static int replace_self(struct walk *w, const char *name)
{
	char text[64];
	pid_t tgid;
	int rc = sv_tracee_tgid(w->t, &tgid);

	if (rc < 0)
		return rc;
	if (!strcmp(name, "self"))
		snprintf(text, sizeof(text), "%d", (int)tgid);
	else
		snprintf(text, sizeof(text), "%d/task/%d", (int)tgid, (int)w->t->call->tid);
	return prepend(w, text);
}

/* True path of cur, for the decision whether a link in it is a magic one. */
static int current_path(const struct walk *w, char *buf, size_t cap)
{
	char n[16];
	ssize_t k;

	snprintf(n, sizeof(n), "%d", w->cur);
	k = readlinkat(w->p->self_fd, n, buf, cap - 1);
	if (k < 0)
		return -errno;
	buf[k] = 0;
	return 0;
}

/* Is NAME in this procfs folder a magic link, and of which process? Folders
 * are /proc/PID[/task/TID] with cwd root exe, and below it fd, map_files, ns. */
static bool magic_of(const char *dir, const char *name, pid_t *pid, bool *is_fd)
{
	char *end;
	long n;

	if (strncmp(dir, "/proc/", 6))
		return false;
	n = strtol(dir + 6, &end, 10);
	if (n <= 0)
		return false;
	*pid = (pid_t)n;
	if (!strncmp(end, "/task/", 6))
		strtol(end + 6, &end, 10);
	*is_fd = !strcmp(end, "/fd");
	if (*is_fd || !strcmp(end, "/map_files") || !strcmp(end, "/ns"))
		return true;
	return *end == 0 && (!strcmp(name, "cwd") || !strcmp(name, "root") || !strcmp(name, "exe"));
}

/* Open flags of descriptor NAME, from the fdinfo folder beside this fd folder:
 * an O_PATH descriptor is held by anybody and gives nothing. */
static int fd_flags(const struct walk *w, const char *name)
{
	char text[512], path[64];
	cleanup_fd int fd = -1;
	const char *p;
	ssize_t k;

	snprintf(path, sizeof(path), "../fdinfo/%.20s", name);
	fd = openat(w->cur, path, O_RDONLY | O_CLOEXEC);
	k = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (k <= 0)
		return -EACCES;
	text[k] = 0;
	p = strstr(text, "flags:");
	return p ? (int)strtol(p + 6, NULL, 8) : -EACCES;
}

static int follow_magic(struct walk *w, const char *name, pid_t pid, bool is_fd)
{
	pid_t tgid;
	int fd, flags = -1;

	if (pid == w->p->self)
		return -EACCES;
	if (pid != w->t->call->tid && (sv_tracee_tgid(w->t, &tgid) < 0 || tgid != pid) &&
	    !sv_in_tree(w->p->proc_fd, pid))
		return -EACCES;
	if (is_fd) {
		flags = fd_flags(w, name);
		if (flags < 0)
			return flags;
	}
	fd = openat(w->cur, name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	move_to(w, fd);
	w->via = flags;
	return 0;
}

/* The component is a symbolic link that has to be followed. */
static int follow(struct walk *w, int link, const char *name, dev_t dev, bool in_root)
{
	char dir[SV_PATH_MAX], text[SV_PATH_MAX];
	pid_t pid;
	bool is_fd;
	ssize_t k;

	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if (dev == w->p->proc_dev) {
		if (in_root && (!strcmp(name, "self") || !strcmp(name, "thread-self")))
			return replace_self(w, name);
		if (current_path(w, dir, sizeof(dir)) < 0)
			return -EACCES;
		if (magic_of(dir, name, &pid, &is_fd))
			return follow_magic(w, name, pid, is_fd);
	}
	k = readlinkat(link, "", text, sizeof(text) - 1);
	if (k < 0)
		return -errno;
	if (k == 0)
		return -ENOENT;
	text[k] = 0;
	return prepend(w, text);
}

/* Take the next component off rest; false at the end. *last = nothing but
 * slashes is left behind it, *dir = there was such a slash. */
static int next_component(struct walk *w, char *name, size_t cap, bool *last, bool *dir)
{
	char *p = w->rest;
	size_t n;

	while (*p == '/')
		p++;
	n = strcspn(p, "/");
	if (n >= cap)
		return -ENAMETOOLONG;
	memcpy(name, p, n);
	name[n] = 0;
	p += n;
	*dir = *p == '/';
	while (*p == '/')
		p++;
	*last = *p == 0;
	memmove(w->rest, p, strlen(p) + 1);
	return n > 0;
}

static int step(struct walk *w, const char *name, bool last)
{
	const bool nofollow = last && (w->pin & SV_PIN_NOFOLLOW);
	struct stat st, here;
	int fd, rc;

	if (fstat(w->cur, &here) < 0)
		return -errno;
	fd = step_open(w->cur, name, O_NOFOLLOW, RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0) {
		rc = -errno;
	} else if (!S_ISLNK(st.st_mode) || nofollow) {
		w->via = -1;
		move_to(w, fd);
		return 0;
	} else {
		rc = follow(w, fd, name, st.st_dev, here.st_ino == PROC_ROOT_INO);
	}
	close(fd);
	return rc;
}

int sv_walk(struct sv_paths *p, const struct sv_tracee *t, int start, const char *path, int pin,
	    int *via)
{
	struct walk w = { .p = p, .t = t, .cur = -1, .pin = pin, .via = -1 };
	char name[SV_PATH_MAX];
	bool last, dir;
	struct stat st;
	int rc;

	if (snprintf(w.rest, sizeof(w.rest), "%s", path) >= SV_PATH_MAX)
		return -ENAMETOOLONG;
	w.cur = path[0] == '/' ? step_open(AT_FDCWD, "/", O_DIRECTORY, 0) :
				 step_open(start, ".", O_DIRECTORY, 0);
	if (w.cur < 0)
		return w.cur;
	while ((rc = next_component(&w, name, sizeof(name), &last, &dir)) > 0) {
		if (last && dir) {
			w.pin |= SV_PIN_DIRECTORY;
			w.pin &= ~SV_PIN_NOFOLLOW;
		}
		rc = step(&w, name, last);
		if (rc < 0)
			break;
	}
	if (rc == 0 && (w.pin & SV_PIN_DIRECTORY) &&
	    (fstat(w.cur, &st) < 0 || !S_ISDIR(st.st_mode)))
		rc = -ENOTDIR;
	if (rc < 0) {
		sv_close_fd(&w.cur);
		return rc;
	}
	*via = w.via;
	return w.cur;
}
