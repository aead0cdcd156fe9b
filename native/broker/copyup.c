/* copyup.c - O_TMPFILE, copy_file_range, linkat: a copy that appears whole. */
#include "broker/copyup.h"

#include "base/fd.h"
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
	mode_t mode;
	char last[256];
};

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

static int make_copy(const struct job *j)
{
	cleanup_fd int tmp = openat(j->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, j->mode);
	char self[32];
	int rc;

	if (tmp < 0)
		return -errno;
	rc = sv_copy_bytes(j->src, tmp);
	if (rc < 0)
		return rc;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", tmp);
	if (linkat(AT_FDCWD, self, j->dir, j->last, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
		return -errno;
	return 0;
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

static void run(void *arg)
{
	struct job *j = arg;
	int rc = make_copy(j);

	if (rc == 0)
		rc = open_copy(j);
	if (!sv_side_claim()) {
		if (rc >= 0)
			close(rc);
	} else {
		if (rc >= 0)
			rc = sv_inject(j->listener, j->id, rc, j->flags & O_CLOEXEC, true);
		if (rc < 0 && rc != -ENOENT)
			sv_answer_errno(j->listener, j->id, -rc);
	}
	close(j->src);
	close(j->dir);
	free(j);
}

void sv_copy_up(struct sv_work *w, const struct sv_place *orig, int dir, const char *last)
{
	struct job *j = calloc(1, sizeof(*j));
	char n[16];

	if (!j || strlen(last) >= sizeof(j->last)) {
		close(dir);
		free(j);
		return sv_fail_call(w, j ? ENAMETOOLONG : ENOMEM);
	}
	*j = (struct job){ .listener = w->sh->listener, .id = w->call.id, .flags = w->in.flags,
			   .dir = dir, .mode = (orig->st.st_mode & 0777) | 0200 };
	strcpy(j->last, last);
	snprintf(n, sizeof(n), "%d", orig->fd);
	j->src = openat(w->paths.self_fd, n, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (j->src < 0) {
		int code = errno;

		close(dir);
		free(j);
		return sv_fail_call(w, code);
	}
	sv_tell(w, SV_EFFECT_BROKER, 0, (struct sv_str){ NULL, 0 });
	if (sv_side_run(w->sh->side, &w->call, run, j) < 0) {
		close(j->src);
		close(dir);
		free(j);
		sv_answer_errno(w->sh->listener, w->call.id, ENFILE);
	}
}
