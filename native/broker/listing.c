/* listing.c - getdents less the hidden names, and with those that a tree alone has.
 *
 * Read through a duplicate of the caller's descriptor, so that the offset is its own
 * and seekdir goes on working: an entry's offset is that of what comes next, whether
 * that is shown or not. */
#include "broker/look.h"

#include "base/fd.h"
#include "broker/tree_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "syscalls/nr.h"

enum { ROOM = 1 << 16, RECLEN_AT = 16, NAME_AT = 18, NAME64_AT = 19 };

/* What entries are judged by: the folder's true path, a slash, room for a name. */
struct folder {
	char path[SV_PATH_MAX + 256];
	size_t len;
};

static void set_folder(struct folder *f, const struct sv_place *p)
{
	f->len = (size_t)p->len;
	memcpy(f->path, p->path, f->len);
	if (f->len > 1)
		f->path[f->len++] = '/';
}

static bool is_hidden(const struct sv_work *w, struct folder *f, const char *name)
{
	const size_t n = strlen(name);
	struct sv_match m;

	if (!strcmp(name, ".") || !strcmp(name, "..") || f->len + n >= sizeof(f->path))
		return false;
	memcpy(f->path + f->len, name, n + 1);
	return sv_look_hidden(w, f->path, (int)(f->len + n), &m);
}

/* Behind a name the kernel leaves what was there before: of ours nothing goes out. */
static void clear_padding(char *entry, size_t name_at, size_t step)
{
	const size_t end = name_at == NAME_AT ? step - 1 : step;
	const size_t from = name_at + strnlen(entry + name_at, end - name_at);

	memset(entry + from, 0, end - from);
}

/* Closes the gaps; returns what is left of the n bytes. */
static size_t keep_visible(const struct sv_work *w, struct folder *f, char *buf, size_t n)
{
	const size_t name_at = w->call.nr == __NR_getdents64 ? NAME64_AT : NAME_AT;
	size_t at = 0, kept = 0;
	uint16_t step;

	while (at + name_at < n) {
		memcpy(&step, buf + at + RECLEN_AT, sizeof(step));
		if (step <= name_at || step > n - at)
			break;
		clear_padding(buf + at, name_at, step);
		if (!is_hidden(w, f, buf + at + name_at)) {
			memmove(buf + kept, buf + at, step);
			kept += step;
		}
		at += step;
	}
	return kept;
}

/* Nothing left of a full buffer is no end of the folder. Returns bytes or -errno. */
static ssize_t read_visible(const struct sv_work *w, struct folder *f, char *buf, size_t room)
{
	for (;;) {
		const long n = syscall(w->call.nr, w->place[0].fd, buf, room);
		size_t kept;

		if (n <= 0)
			return n < 0 ? -errno : 0;
		kept = keep_visible(w, f, buf, (size_t)n);
		if (kept)
			return (ssize_t)kept;
		if (sv_still_valid(&w->t) < 0)
			return -EINTR;
	}
}

/* What the tree alone has comes behind the folder's own entries. */
static ssize_t read_both(struct sv_work *w, struct folder *f, char *buf, size_t room, off_t start)
{
	const bool second = w->sh->steers && sv_tree_list_at(start);
	ssize_t n = second ? 0 : read_visible(w, f, buf, room);
	int64_t next;

	if (n != 0)
		return n;
	n = sv_tree_list(w, w->call.nr != __NR_getdents64, second ? start : sv_tree_list_start(), buf,
			 room, &next);
	if (n > 0 && lseek(w->place[0].fd, next, SEEK_SET) < 0)
		return 0;	/* a file system that does not remember where it is: its own alone */
	return n;
}

/* The offset moves with what was read, so it moves back where nothing arrived. */
static void give(struct sv_work *w, const char *buf, size_t n, off_t start)
{
	const int rc = sv_look_put(w, buf, n);

	if (rc < 0)
		lseek(w->place[0].fd, start, SEEK_SET);
	sv_look_answer(w, rc, (int64_t)n);
}

void sv_do_getdents(struct sv_work *w)
{
	const size_t asked = (uint32_t)w->in.bufsize, room = asked < ROOM ? asked : ROOM;
	struct sv_place *p = &w->place[0];
	struct folder f;
	off_t start;
	ssize_t n;
	char *buf;
	int rc;

	if (w->in.watcher < 0)
		return sv_refuse_why(w, EACCES, "no listing here: names are hidden or elsewhere, and this "
						"machine does not let a descriptor be duplicated (pidfd_getfd)");
	rc = sv_place_adopt(&w->paths, &w->t, take_fd(&w->in.watcher), true, p);
	if (rc < 0 && rc != -EACCES)	/* of whose /proc folder it is was asked when it was opened */
		return sv_look_fail(w, -rc);
	if (!S_ISDIR(p->st.st_mode))
		return sv_look_fail(w, ENOTDIR);
	set_folder(&f, p);
	buf = malloc(room ? room : 1);
	if (!buf)
		return sv_look_fail(w, ENOMEM);
	start = lseek(p->fd, 0, SEEK_CUR);
	n = read_both(w, &f, buf, room, start);
	if (n < 0)
		sv_look_fail(w, (int)-n);
	else
		give(w, buf, (size_t)n, start);
	free(buf);
}
