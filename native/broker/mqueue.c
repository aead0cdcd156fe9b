/* mqueue.c - POSIX message queues: mq_open and mq_unlink.
 *
 * A queue's name is one component of a file system of the kernel's own, which
 * has no links and no folders, so the name is all that leads there: it is decided
 * as the file /dev/mqueue/NAME, mounted or not. Whether it exists is asked in a
 * way that opens nothing. */
#include "broker/work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TRIES = 16 };

/* An access mode that the kernel refuses, but only once it has found the queue.
 * 0 = there is one, -ENOENT, or what is wrong with the name. */
static int probe(const char *name)
{
	const long fd = syscall(SYS_mq_open, name, O_ACCMODE, 0, NULL);

	if (fd >= 0)
		close((int)fd);
	return fd >= 0 || errno == EINVAL ? 0 : -errno;
}

/* Takes the name for a path, once the kernel took it for a name. As probe(). */
static int find(struct sv_work *w)
{
	const struct sv_pathname *name = &w->in.name[0];
	struct sv_place *p = &w->place[0];
	int rc;

	if (name->len == 0)
		return name->err ? name->err : -ENOENT;
	rc = probe(name->text);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	p->len = snprintf(p->path, sizeof(p->path), "/dev/mqueue/%s", name->text);
	if (p->len < (int)sizeof(p->path))
		return rc;
	p->len = 0;
	return -ENAMETOOLONG;
}

/* True = go on. moot: what the kernel would say all the same, 0 = nothing. */
static bool judge(struct sv_work *w, uint32_t ops, int moot)
{
	if (sv_decide_call(w, ops, &w->place[0]))
		return true;
	if (w->match.action == SV_STEER)
		w->match = (struct sv_match){ .action = SV_DENY, .rule = w->match.rule,
					      .err = EOPNOTSUPP };
	sv_refuse_unless(w, moot);
	return false;
}

static uint32_t ops_of(int flags)
{
	switch (flags & O_ACCMODE) {
	case O_RDONLY:
		return SV_OP_READ;
	case O_WRONLY:
		return SV_OP_WRITE;
	default:
		return SV_OP_READ | SV_OP_WRITE;
	}
}

/* True = answered; false = the queue was removed meanwhile. */
static bool open_existing(struct sv_work *w, int flags)
{
	const bool exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	const int err = exclusive ? EEXIST : (flags & O_ACCMODE) == O_ACCMODE ? EINVAL : 0;
	long fd;

	if (!judge(w, ops_of(flags), err))
		return true;
	if (err) {
		sv_fail_call(w, err);
		return true;
	}
	fd = syscall(SYS_mq_open, w->in.name[0].text, flags & ~(O_CREAT | O_EXCL), 0, NULL);
	if (fd >= 0)
		sv_give_fd(w, (int)fd, true, true);
	else if (errno == ENOENT && flags & O_CREAT)
		return false;
	else
		sv_fail_call(w, errno);
	return true;
}

/* True = answered; false = somebody else was faster. */
static bool create(struct sv_work *w, int flags)
{
	mode_t mask;
	long fd;

	if (!judge(w, SV_OP_CREATE | (ops_of(flags) & SV_OP_WRITE), 0))
		return true;
	if (sv_tracee_umask(&w->t, &mask) < 0) {
		sv_refuse_why(w, EACCES, "the caller's umask cannot be read");
		return true;
	}
	if (sv_still_valid(&w->t) < 0)
		return true;
	fd = sv_take(w, SV_LIMIT_FILES_CREATED);
	if (fd < 0) {
		sv_fail_call(w, (int)-fd);
		return true;
	}
	fd = syscall(SYS_mq_open, w->in.name[0].text, flags | O_CREAT | O_EXCL,
		     (mode_t)w->in.mode & ~mask, w->in.queue_null ? NULL : &w->in.queue);
	if (fd < 0)
		sv_give_back_one(w, SV_LIMIT_FILES_CREATED);
	if (fd >= 0)
		sv_give_fd(w, (int)fd, true, true);
	else if (errno == EEXIST && !(flags & O_EXCL))
		return false;
	else
		sv_fail_call(w, errno);
	return true;
}

void sv_do_mq_open(struct sv_work *w)
{
	const int flags = (int)w->in.flags;
	int rc, i;

	if (flags & O_PATH)
		return sv_fail_call(w, EINVAL);
	for (i = 0; i < TRIES; i++) {
		rc = find(w);
		if (rc < 0 && (rc != -ENOENT || !(flags & O_CREAT) || w->in.name[0].len == 0))
			return sv_fail_call(w, -rc);
		if (rc == 0 ? open_existing(w, flags) : create(w, flags))
			return;
	}
	sv_fail_call(w, EAGAIN);
}

void sv_do_mq_unlink(struct sv_work *w)
{
	int rc = find(w);

	if (rc < 0)
		return sv_fail_call(w, -rc);
	if (!judge(w, SV_OP_DELETE, 0) || sv_still_valid(&w->t) < 0)
		return;
	rc = sv_take(w, SV_LIMIT_FILES_DELETED);
	if (rc == 0 && syscall(SYS_mq_unlink, w->in.name[0].text) < 0)
		rc = -errno;
	sv_give_result(w, rc);
}
