/* copyup.c - O_TMPFILE, copy_file_range, linkat: a copy that appears whole. */
#include "broker/copyup.h"

#include "base/fd.h"
#include "effect/creds.h"
#include "effect/respond.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct job {
	int listener;
	uint64_t id;
	uint64_t flags;
	int src;		/* owned */
	int dir;		/* owned */
	struct stat orig;
	bool has_creds;
	struct sv_creds creds;
	bool changes;		/* instead of being opened */
	struct sv_change change;	/* its attribute owned */
	char last[256];
};

static void free_job(struct job *j)
{
	if (!j)
		return;
	sv_close_fd(&j->src);
	sv_close_fd(&j->dir);
	sv_attr_free(&j->change.attr);
	free(j);
}

int sv_copy_bytes(int from, int to)
{
	char buf[65536];

	for (;;) {
		ssize_t k = copy_file_range(from, NULL, to, NULL, 1 << 30, 0), at = 0;

		if (k == 0)
			return 0;
		if (k > 0 || (errno == EINTR && !sv_side_cancelled()))
			continue;
		if (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS)
			return -errno;
		k = read(from, buf, sizeof(buf));
		if (k <= 0)
			return k < 0 ? -errno : 0;
		while (at < k) {
			ssize_t n = write(to, buf + at, (size_t)(k - at));

			if (n < 0)
				return -errno;
			at += n;
		}
		if (sv_side_cancelled())
			return -EINTR;
	}
}

/* Somebody was faster: what has the name now is what is changed. */
static int change_present(const struct job *j)
{
	cleanup_fd int fd = openat(j->dir, j->last, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : sv_change_apply(fd, &j->change);
}

static int make_copy(const struct job *j)
{
	const struct timespec times[2] = { j->orig.st_atim, j->orig.st_mtim };
	cleanup_fd int tmp = openat(j->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC,
				    (j->orig.st_mode & 0777) | 0200);
	char self[32];
	int rc;

	if (tmp < 0)
		return -errno;
	rc = sv_copy_bytes(j->src, tmp);
	if (rc == 0 && futimens(tmp, times) < 0)
		rc = -errno;
	if (rc == 0 && j->changes)
		rc = sv_change_apply(tmp, &j->change);
	if (rc < 0)
		return rc;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", tmp);
	if (linkat(AT_FDCWD, self, j->dir, j->last, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	return j->changes ? change_present(j) : 0;
}

static int open_copy(const struct job *j)
{
	struct open_how how = {
		.flags = (j->flags & ~(uint64_t)(O_CREAT | O_EXCL)) | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, j->dir, j->last, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int do_job(struct job *j)
{
	bool switched = false;
	int rc = j->has_creds ? sv_creds_enter(&j->creds, &switched) : 0;

	if (rc == 0)
		rc = make_copy(j);
	if (rc == 0 && !j->changes)
		rc = open_copy(j);
	if (switched)
		sv_creds_leave();
	return rc;
}

static void run(void *arg)
{
	struct job *j = arg;
	int rc = do_job(j);

	if (!sv_side_claim()) {
		if (rc >= 0 && !j->changes)
			close(rc);
	} else {
		if (rc == 0 && j->changes)
			sv_answer_value(j->listener, j->id, 0);
		else if (rc >= 0)
			rc = sv_inject(j->listener, j->id, rc, j->flags & O_CLOEXEC, true);
		if (rc < 0 && rc != -ENOENT)
			sv_answer_errno(j->listener, j->id, -rc);
	}
	free_job(j);
}

/* Takes dir; -errno: nothing was begun, and all was freed. */
static int begin(struct sv_work *w, const struct sv_place *orig, int dir, const char *last,
		 struct job *j)
{
	char n[16];

	if (!j) {
		close(dir);
		return -ENOMEM;
	}
	sv_attr_init(&j->change.attr);
	j->listener = w->sh->listener;
	j->id = w->call.id;
	j->flags = w->in.flags;
	j->dir = dir;
	j->orig = orig->st;
	j->has_creds = w->switched;
	j->src = -1;
	if (strlen(last) >= sizeof(j->last))
		return -ENAMETOOLONG;
	strcpy(j->last, last);
	if (j->has_creds && sv_tracee_creds(&w->t, &j->creds) < 0)
		return -EACCES;
	snprintf(n, sizeof(n), "%d", orig->fd);
	j->src = openat(w->paths.self_fd, n, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return j->src < 0 ? -errno : 0;
}

static void start(struct sv_work *w, struct job *j)
{
	sv_tell(w, SV_EFFECT_BROKER, 0, (struct sv_str){ NULL, 0 });
	if (sv_side_run(w->sh->side, &w->call, run, j) == 0)
		return;
	free_job(j);
	sv_answer_errno(w->sh->listener, w->call.id, ENFILE);
}

void sv_copy_up(struct sv_work *w, const struct sv_place *orig, int dir, const char *last)
{
	struct job *j = calloc(1, sizeof(*j));
	int rc = begin(w, orig, dir, last, j);

	if (rc == 0)
		return start(w, j);
	free_job(j);
	sv_fail_call(w, -rc);
}

void sv_copy_up_changed(struct sv_work *w, const struct sv_place *orig, int dir, const char *last,
			struct sv_change *c)
{
	struct job *j = calloc(1, sizeof(*j));
	int rc = begin(w, orig, dir, last, j);

	if (rc < 0) {
		free_job(j);
		return sv_fail_call(w, -rc);
	}
	j->changes = true;
	j->change = *c;
	sv_attr_init(&c->attr);
	start(w, j);
}
