/* reopen.c - /proc/self/fd reopening, devices and FIFOs. */
#include "broker/reopen.h"

#include "base/fd.h"
#include "broker/terminal.h"
#include "effect/creds.h"
#include "effect/respond.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

enum { MAJOR_MEM = 1, MAJOR_TTY = 5, MINOR_TTY = 0 };

/* Names were settled when the object was pinned, so flags about names go; a
 * terminal never becomes the supervisor's. */
int sv_settled_flags(uint64_t flags)
{
	return (int)(flags & ~(uint64_t)(O_CREAT | O_EXCL | O_NOFOLLOW)) | O_CLOEXEC | O_NOCTTY;
}

static int reopen(int self_fd, int fd, uint64_t flags)
{
	char n[16];
	int got;

	snprintf(n, sizeof(n), "%d", fd);
	got = openat(self_fd, n, sv_settled_flags(flags));
	return got < 0 ? -errno : got;
}

struct slow_open {
	int listener;
	int self_fd;
	int fd;			/* owned */
	uint64_t id;
	uint64_t flags;
	bool has_creds;
	struct sv_creds creds;
};

static void slow_open_run(void *arg)
{
	struct slow_open *j = arg;
	bool switched = false;
	int got = j->has_creds ? sv_creds_enter(&j->creds, &switched) : 0;

	if (got == 0)
		got = reopen(j->self_fd, j->fd, j->flags);
	if (switched)
		sv_creds_leave();
	close(j->fd);
	if (!sv_side_claim()) {
		if (got >= 0)
			close(got);
	} else if (got < 0) {
		sv_answer_errno(j->listener, j->id, got == -EINTR ? SV_RESTART : -got);
	} else {
		int rc = sv_inject(j->listener, j->id, got, j->flags & O_CLOEXEC,
				   (j->flags & O_ACCMODE) != O_RDONLY);

		if (rc < 0 && rc != -ENOENT)
			sv_answer_errno(j->listener, j->id, -rc);
	}
	free(j);
}

/* A FIFO waits for its other end, a device for its hardware. */
static bool may_block(const struct sv_place *p, uint64_t flags)
{
	if (S_ISFIFO(p->st.st_mode))
		return !(flags & O_NONBLOCK) && (flags & O_ACCMODE) != O_RDWR;
	if (S_ISBLK(p->st.st_mode))
		return true;
	return S_ISCHR(p->st.st_mode) && major(p->st.st_rdev) != MAJOR_MEM;
}

static void give_slowly(struct sv_work *w, struct sv_place *p, uint64_t flags)
{
	struct slow_open *j = calloc(1, sizeof(*j));

	if (!j)
		return sv_fail_call(w, ENOMEM);
	j->listener = w->sh->listener;
	j->self_fd = w->paths.self_fd;
	j->id = w->call.id;
	j->flags = flags;
	if (w->switched && sv_tracee_creds(&w->t, &j->creds) < 0) {
		free(j);
		return sv_fail_call(w, EACCES);
	}
	j->has_creds = w->switched;
	j->fd = take_fd(&p->fd);
	sv_tell(w, SV_EFFECT_BROKER, 0, (struct sv_str){ NULL, 0 });
	if (sv_side_run(w->sh->side, &w->call, slow_open_run, j) < 0) {
		close(j->fd);
		free(j);
		sv_answer_errno(w->sh->listener, w->call.id, ENFILE);
	}
}

int sv_make_blocking(int fd, uint64_t flags)
{
	const uint64_t kept = O_APPEND | O_DIRECT | O_NOATIME | O_ASYNC;

	return fcntl(fd, F_SETFL, (int)(flags & kept)) < 0 ? -errno : 0;
}

/* A lease on a file makes its open wait, up to 45 s, for a program that may be the
 * tree's own: -EAGAIN instead. The flag is taken off again. */
static int reopen_at_once(int self_fd, int fd, uint64_t flags)
{
	int got = reopen(self_fd, fd, flags | O_NONBLOCK);

	if (got >= 0 && sv_make_blocking(got, flags) < 0) {
		close(got);
		return -EAGAIN;
	}
	return got;
}

void sv_reopen_and_give(struct sv_work *w, struct sv_place *p, uint64_t flags)
{
	const bool writable = (flags & O_ACCMODE) != O_RDONLY;
	int got;

	if (S_ISCHR(p->st.st_mode) && p->st.st_rdev == makedev(MAJOR_TTY, MINOR_TTY))
		got = sv_open_own_tty(w, sv_settled_flags(flags));
	else if (may_block(p, flags))
		return give_slowly(w, p, flags);
	else if (flags & O_TRUNC && sv_still_valid(&w->t) < 0)
		return;
	else if (S_ISREG(p->st.st_mode) && !(flags & O_NONBLOCK))
		got = reopen_at_once(w->paths.self_fd, p->fd, flags);
	else
		got = reopen(w->paths.self_fd, p->fd, flags);
	if (got == -EAGAIN && S_ISREG(p->st.st_mode) && !(flags & O_NONBLOCK))
		give_slowly(w, p, flags);
	else if (got < 0)
		sv_fail_call(w, got == -EMFILE ? ENFILE : -got);
	else
		sv_give_fd(w, got, flags & O_CLOEXEC, writable);
}
