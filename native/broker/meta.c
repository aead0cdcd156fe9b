/* meta.c - metadata that changes: chmod chown utimes truncate.
 *
 * The object is pinned and changed through that descriptor, never by name. */
#include "broker/terminal.h"
#include "broker/work.h"

#include "base/fd.h"
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

/* The descriptor itself is changed, which one of O_PATH cannot be. */
static int pin_open_fd(struct sv_work *w, int fd)
{
	if (fd >= 0 && sv_tracee_fd_is_path(&w->t, fd))
		return -EBADF;
	return sv_pin_fd(&w->paths, &w->t, fd, &w->place[0]);
}

/* utimensat(2) and futimesat(2) without a name mean the descriptor. */
static int pin_nameless(struct sv_work *w)
{
	const int fd = w->in.name[0].dirfd;

	if (fd == AT_FDCWD)
		return -EFAULT;
	return w->in.flags ? -EINVAL : pin_open_fd(w, fd);
}

/* Pin what the call means: a descriptor, the starting folder itself, or a name.
 * False = failed and answered. */
static bool pin_object(struct sv_work *w, uint64_t known_flags)
{
	struct sv_place *p = &w->place[0];
	const struct sv_pathname *name = &w->in.name[0];
	const int pin = w->in.flags & AT_SYMLINK_NOFOLLOW ? SV_PIN_NOFOLLOW : 0;
	int rc;

	if (w->in.flags & ~known_flags) {
		sv_fail_call(w, EINVAL);
		return false;
	}
	if (w->row->roles[0] == SV_ROLE_FD)
		rc = pin_open_fd(w, w->in.fd);
	else if (name->null)
		rc = pin_nameless(w);
	else if (name->len == 0 && w->in.flags & AT_EMPTY_PATH)
		rc = name->dirfd == AT_FDCWD ?
			     sv_place_adopt(&w->paths, &w->t, sv_tracee_cwd(&w->t), false, p) :
			     sv_pin_fd(&w->paths, &w->t, name->dirfd, p);
	else
		rc = sv_pin(&w->paths, &w->t, name, pin, 0, p);
	if (rc < 0)
		sv_fail_call(w, -rc);
	return rc == 0;
}

/* Judge the pinned object; false = refused and answered. */
static bool judge(struct sv_work *w, uint32_t ops)
{
	if (w->place[0].held) {
		w->ops |= ops;
		w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	} else if (!sv_decide_call(w, ops, &w->place[0])) {
		if (w->match.action == SV_STEER)
			w->match = (struct sv_match){ .action = SV_DENY, .rule = w->match.rule,
						      .err = EOPNOTSUPP };
		sv_refuse(w);
		return false;
	}
	if (!w->sh->observe && sv_foreign_terminal(w, &w->place[0])) {
		sv_refuse_why(w, EACCES, "the terminal of a program outside the tree");
		return false;
	}
	return sv_still_valid(&w->t) == 0;
}

static void self_name(const struct sv_place *p, char *buf, size_t cap)
{
	snprintf(buf, cap, "/proc/self/fd/%d", p->fd);
}

void sv_do_chmod(struct sv_work *w)
{
	const struct sv_place *p = &w->place[0];
	const mode_t mode = (mode_t)w->in.mode & 07777;
	char self[32];
	int rc;

	if (!pin_object(w, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) || !judge(w, SV_OP_METADATA))
		return;
	self_name(p, self, sizeof(self));
	if (S_ISLNK(p->st.st_mode))
		rc = -EOPNOTSUPP;
	else
		rc = chmod(self, mode) < 0 ? -errno : 0;
	sv_give_result(w, rc);
}

void sv_do_chown(struct sv_work *w)
{
	const struct sv_place *p = &w->place[0];

	if (!pin_object(w, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) || !judge(w, SV_OP_METADATA))
		return;
	sv_give_result(w, fchownat(p->fd, "", w->in.owner, w->in.group, AT_EMPTY_PATH) < 0 ?
			      -errno : 0);
}

void sv_do_utime(struct sv_work *w)
{
	const struct sv_place *p = &w->place[0];
	const struct timespec *times = w->in.times_null ? NULL : w->in.times;
	char self[32];
	int rc;

	if (times && times[0].tv_nsec == UTIME_OMIT && times[1].tv_nsec == UTIME_OMIT)
		return sv_give_value(w, 0);	/* the kernel looks at nothing else then */
	if (!pin_object(w, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) || !judge(w, SV_OP_METADATA))
		return;
	self_name(p, self, sizeof(self));
	if (S_ISLNK(p->st.st_mode))
		rc = utimensat(p->fd, "", times, AT_EMPTY_PATH);
	else
		rc = utimensat(AT_FDCWD, self, times, 0);
	sv_give_result(w, rc < 0 ? -errno : 0);
}

struct slow_truncate {
	int listener;
	int fd;			/* owned, O_PATH */
	uint64_t id;
	int64_t length;
};

static void slow_truncate_run(void *arg)
{
	struct slow_truncate *j = arg;
	char self[32];
	int rc;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", j->fd);
	rc = truncate(self, j->length) < 0 ? errno : 0;
	if (!sv_side_claim())
		rc = -1;
	if (rc > 0)
		sv_answer_errno(j->listener, j->id, rc);
	else if (rc == 0)
		sv_answer_value(j->listener, j->id, 0);
	close(j->fd);
	free(j);
}

/* Somebody holds a lease: breaking it may take 45 s, and not of a worker. */
static void truncate_slowly(struct sv_work *w)
{
	struct slow_truncate *j = w->switched ? NULL : calloc(1, sizeof(*j));

	if (!j)
		return sv_fail_call(w, EAGAIN);
	*j = (struct slow_truncate){ .listener = w->sh->listener, .id = w->call.id,
				     .fd = take_fd(&w->place[0].fd), .length = w->in.length };
	sv_tell(w, SV_EFFECT_BROKER, 0, (struct sv_str){ NULL, 0 });
	if (sv_side_run(w->sh->side, &w->call, slow_truncate_run, j) < 0) {
		close(j->fd);
		free(j);
		sv_answer_errno(w->sh->listener, w->call.id, ENFILE);
	}
}

void sv_do_truncate(struct sv_work *w)
{
	const struct sv_place *p = &w->place[0];
	cleanup_fd int fd = -1;
	char n[16];

	if (w->in.length < 0)
		return sv_fail_call(w, EINVAL);
	if (!pin_object(w, 0))
		return;
	if (S_ISDIR(p->st.st_mode))
		return sv_fail_call(w, EISDIR);
	if (!S_ISREG(p->st.st_mode))
		return sv_fail_call(w, EINVAL);
	if (!judge(w, SV_OP_WRITE))
		return;
	snprintf(n, sizeof(n), "%d", p->fd);
	fd = openat(w->paths.self_fd, n, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == EAGAIN)
		return truncate_slowly(w);
	if (fd < 0)
		return sv_fail_call(w, errno);
	sv_give_result(w, ftruncate(fd, w->in.length) < 0 ? -errno : 0);
}
