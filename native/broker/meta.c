/* meta.c - metadata that changes: chmod chown utimes truncate.
 *
 * The object is pinned and changed through that descriptor, never by name. */
#include "broker/change.h"
#include "broker/object.h"

#include "base/fd.h"
#include "decode/lexical.h"
#include "effect/creds.h"
#include "effect/respond.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "syscalls/nr.h"

/* utimensat(2) and futimesat(2) without a name mean the descriptor. */
static int pin_nameless(struct sv_work *w)
{
	const int fd = w->in.name[0].dirfd;

	if (fd == AT_FDCWD)
		return -EFAULT;
	return w->in.flags ? -EINVAL : sv_object_pin_fd(w, fd);
}

static bool by_name(const struct sv_work *w)
{
	const struct sv_pathname *name = &w->in.name[0];

	return w->row->roles[0] != SV_ROLE_FD && !name->null && !sv_names_start(name, w->in.flags);
}

/* Pin what the call means: a descriptor, the starting folder itself, or a name (called:
 * as sv_shadow_pin()). False = failed and answered. */
static bool pin_object(struct sv_work *w, uint64_t known_flags, char *called)
{
	const struct sv_pathname *name = &w->in.name[0];
	int rc;

	called[0] = 0;
	if (w->in.flags & ~known_flags) {
		sv_fail_call(w, EINVAL);
		return false;
	}
	if (w->row->roles[0] == SV_ROLE_FD)
		rc = sv_object_pin_fd(w, w->in.fd);
	else if (name->null)
		rc = pin_nameless(w);
	else if (by_name(w))
		rc = sv_change_pin(w, called);
	else
		rc = sv_pin_fd(&w->paths, &w->t, name->dirfd, &w->place[0]);
	if (rc < 0)
		sv_fail_call(w, -rc);
	return rc == 0;
}

static void change(struct sv_work *w, struct sv_change *c)
{
	char called[SV_PATH_MAX];

	if (pin_object(w, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, called) &&
	    sv_change_judge(w, SV_OP_METADATA, called, by_name(w), c))
		sv_give_result(w, sv_change_apply(w->place[0].fd, c));
}

void sv_do_chmod(struct sv_work *w)
{
	struct sv_change c = { .kind = SV_CHANGE_MODE, .mode = (mode_t)w->in.mode & 07777 };

	change(w, &c);
}

void sv_do_chown(struct sv_work *w)
{
	struct sv_change c = { .kind = SV_CHANGE_OWNER, .owner = w->in.owner, .group = w->in.group };

	change(w, &c);
}

void sv_do_utime(struct sv_work *w)
{
	struct sv_change c = { .kind = SV_CHANGE_TIMES, .now = w->in.times_null };

	memcpy(c.times, w->in.times, sizeof(c.times));
	if (!c.now && c.times[0].tv_nsec == UTIME_OMIT && c.times[1].tv_nsec == UTIME_OMIT)
		return sv_give_value(w, 0);	/* the kernel looks at nothing else then */
	change(w, &c);
}

struct slow_truncate {
	int listener;
	int fd;			/* owned, O_PATH */
	uint64_t id;
	int64_t length;
	bool has_creds;
	struct sv_creds creds;
};

static void slow_truncate_run(void *arg)
{
	struct slow_truncate *j = arg;
	bool switched = false;
	char self[32];
	int rc = j->has_creds ? -sv_creds_enter(&j->creds, &switched) : 0;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", j->fd);
	if (rc == 0)
		rc = truncate(self, j->length) < 0 ? errno : 0;
	if (switched)
		sv_creds_leave();
	if (!sv_side_claim())
		rc = -1;
	if (rc > 0)
		sv_answer_errno(j->listener, j->id, rc == EINTR ? SV_RESTART : rc);
	else if (rc == 0)
		sv_answer_value(j->listener, j->id, 0);
	close(j->fd);
	free(j);
}

/* Somebody holds a lease: breaking it may take 45 s, and not of a worker. */
static void truncate_slowly(struct sv_work *w)
{
	struct slow_truncate *j = calloc(1, sizeof(*j));

	if (!j)
		return sv_fail_call(w, ENOMEM);
	*j = (struct slow_truncate){ .listener = w->sh->listener, .id = w->call.id, .fd = -1,
				     .length = w->in.length, .has_creds = w->switched };
	if (w->switched && sv_tracee_creds(&w->t, &j->creds) < 0) {
		free(j);
		return sv_fail_call(w, EACCES);
	}
	j->fd = take_fd(&w->place[0].fd);
	sv_tell(w, SV_EFFECT_BROKER, 0, (struct sv_str){ NULL, 0 });
	if (sv_side_run(w->sh->side, &w->call, slow_truncate_run, j) < 0) {
		close(j->fd);
		free(j);
		sv_answer_errno(w->sh->listener, w->call.id, ENFILE);
	}
}

void sv_do_truncate(struct sv_work *w)
{
	struct sv_change c = { .kind = SV_CHANGE_LENGTH, .length = w->in.length };
	const struct sv_place *p = &w->place[0];
	char called[SV_PATH_MAX], n[16];
	cleanup_fd int fd = -1;

	if (w->in.length < 0)
		return sv_fail_call(w, EINVAL);
	if (!pin_object(w, 0, called) || sv_refuse_hidden(w, p))
		return;
	if (S_ISDIR(p->st.st_mode))
		return sv_fail_call(w, EISDIR);
	if (!S_ISREG(p->st.st_mode))
		return sv_fail_call(w, EINVAL);
	if (w->in.length > p->st.st_size &&
	    (uint64_t)w->in.length > w->sh->policy->limits[SV_LIMIT_FILE_SIZE].hard)
		return sv_fail_call(w, EFBIG);	/* the kernel would look at our own limit */
	if (!sv_change_judge(w, SV_OP_WRITE, called, by_name(w), &c))
		return;
	snprintf(n, sizeof(n), "%d", p->fd);
	fd = openat(w->paths.self_fd, n, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == EAGAIN)
		return truncate_slowly(w);
	if (fd < 0)
		return sv_fail_call(w, errno);
	sv_give_result(w, ftruncate(fd, w->in.length) < 0 ? -errno : 0);
}
