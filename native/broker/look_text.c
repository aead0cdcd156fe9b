/* look_text.c - link texts, extended attributes and inode flags of pinned objects. */
#include "broker/look.h"

#include "broker/object.h"
#include "decode/lexical.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "syscalls/nr.h"

enum { FILEATTR_LEAST = 24, FILEATTR_MOST = 4096 };

/* These two links are about who asks. 0 = it is none of them; else the length. */
static int text_of_self(const struct sv_work *w, char *text, size_t cap)
{
	const struct sv_place *p = &w->place[0];
	const bool thread = !strcmp(p->path, "/proc/thread-self");
	pid_t tgid;
	int rc;

	if (p->st.st_dev != w->paths.proc_dev || (!thread && strcmp(p->path, "/proc/self")))
		return 0;
	rc = sv_tracee_tgid(&w->t, &tgid);
	if (rc < 0)
		return rc;
	if (!thread)
		return snprintf(text, cap, "%d", (int)tgid);
	return snprintf(text, cap, "%d/task/%d", (int)tgid, (int)w->call.tid);
}

void sv_do_readlink(struct sv_work *w)
{
	const struct sv_pathname *name = &w->in.name[0];
	const struct sv_place *p = &w->place[0];
	const int room = (int)(uint32_t)w->in.bufsize;
	char text[SV_PATH_MAX];
	ssize_t k;

	if (room <= 0)
		return sv_look_fail(w, EINVAL);
	w->in.flags |= AT_EMPTY_PATH;	/* readlinkat knows no flags, and takes an empty name */
	if (!sv_look_pin(w, true))
		return;
	k = text_of_self(w, text, sizeof(text));
	if (k == 0) {
		k = readlinkat(p->fd, "", text, sizeof(text));
		if (k < 0 && errno == EACCES && sv_look_as_ourselves(w))
			k = readlinkat(p->fd, "", text, sizeof(text));
		k = k < 0 ? -errno : k;
	}
	if (k == -ENOENT && name->len && !S_ISLNK(p->st.st_mode))
		k = -EINVAL;	/* the kernel's word for the nameless form */
	if (k < 0)
		return sv_look_fail(w, (int)-k);
	k = k > room ? room : k;
	sv_look_give(w, text, (size_t)k, k);
}

/* A name of the pinned object, or NULL: an empty name means a descriptor, and one of
 * O_PATH is none to these calls, nor to some of them (cwd) the working folder. */
static const char *pin_for_name(struct sv_work *w, bool cwd, char *self, size_t cap)
{
	const struct sv_pathname *name = &w->in.name[0];

	if (sv_names_start(name, w->in.flags) &&
	    (name->dirfd >= 0 ? sv_tracee_fd_is_path(&w->t, name->dirfd) : !cwd)) {
		sv_look_fail(w, EBADF);
		return NULL;
	}
	if (!sv_look_pin(w, true))
		return NULL;
	sv_object_name(&w->place[0], self, cap);
	return self;
}

void sv_do_getxattr(struct sv_work *w)
{
	const bool one = w->in.attr.name[0] != 0;
	const size_t most = one ? XATTR_SIZE_MAX : XATTR_LIST_MAX;
	const size_t room = w->in.bufsize < most ? (size_t)w->in.bufsize : most;
	const char *self;
	char name[32];
	ssize_t k = -1;
	void *buf;

	if (w->in.flags & ~(uint64_t)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return sv_look_fail(w, EINVAL);
	self = pin_for_name(w, one, name, sizeof(name));
	if (!self)
		return;
	buf = malloc(room ? room : 1);
	if (buf)
		k = one ? getxattr(self, w->in.attr.name, buf, room) : listxattr(self, buf, room);
	if (k < 0)
		sv_look_fail(w, buf ? errno : ENOMEM);
	else
		sv_look_give(w, buf, room ? (size_t)k : 0, k);
	free(buf);
}

void sv_do_fileattr(struct sv_work *w)
{
	char buf[FILEATTR_MOST] = { 0 };
	const size_t size = (size_t)w->in.bufsize;
	const char *self;
	char name[32];

	if (w->in.flags & ~(uint64_t)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return sv_look_fail(w, EINVAL);
	if (size < FILEATTR_LEAST || size > FILEATTR_MOST)
		return sv_look_fail(w, size < FILEATTR_LEAST ? EINVAL : E2BIG);
	self = pin_for_name(w, true, name, sizeof(name));
	if (!self)
		return;
	if (syscall(__NR_file_getattr, AT_FDCWD, self, buf, size, 0) < 0)
		return sv_look_fail(w, errno);
	sv_look_give(w, buf, size, 0);
}
