/* change.c - changes through a pin, and where they go to a tree. */
#include "broker/change.h"

#include "base/fd.h"
#include "broker/copyup.h"
#include "broker/object.h"
#include "broker/shadow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool is_link(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

static int set_times(int fd, const char *self, const struct timespec *times)
{
	if (is_link(fd))
		return utimensat(fd, "", times, AT_EMPTY_PATH);
	return utimensat(AT_FDCWD, self, times, 0);
}

static int set_attr(const char *self, const struct sv_attr *a)
{
	if (a->set)
		return setxattr(self, a->name, a->value, a->size, a->flags);
	return removexattr(self, a->name);
}

int sv_change_apply(int fd, const struct sv_change *c)
{
	char self[32];
	int rc = -1;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	errno = EOPNOTSUPP;
	switch (c->kind) {
	case SV_CHANGE_MODE:
		rc = is_link(fd) ? -1 : chmod(self, c->mode);
		break;
	case SV_CHANGE_OWNER:
		rc = fchownat(fd, "", c->owner, c->group, AT_EMPTY_PATH);
		break;
	case SV_CHANGE_TIMES:
		rc = set_times(fd, self, c->now ? NULL : c->times);
		break;
	case SV_CHANGE_LENGTH:
		rc = truncate(self, c->length);
		break;
	case SV_CHANGE_ATTR:
		rc = set_attr(self, &c->attr);
		break;
	}
	return rc < 0 ? -errno : 0;
}

int sv_change_pin(struct sv_work *w, char *called)
{
	const int pin = w->in.flags & AT_SYMLINK_NOFOLLOW ? SV_PIN_NOFOLLOW : 0;
	int rc = sv_pin(&w->paths, &w->t, &w->in.name[0], pin, 0, &w->place[0]);

	return sv_shadow_pin(w, pin, rc, called);
}

/* What lies in the tree was decided when it was steered there; what rules deny about its
 * two names is denied. */
static bool judge_there(struct sv_work *w, uint32_t ops, const char *called)
{
	const struct sv_str name = { (const uint8_t *)called, strlen(called) };
	struct sv_place *p = w->place;

	/* told as it was asked for, and where that is */
	memcpy(p[1].path, p[0].path, sizeof(p[1].path));
	p[1].len = p[0].len;
	strcpy(p[0].path, called);
	p[0].len = (int)name.n;
	if (sv_shadow_refused(w, name, ops) || sv_steer_denied(w, w->place[0].fd, "", ops)) {
		sv_refuse(w);
		return false;
	}
	return sv_still_valid(&w->t) == 0;
}

static int copy_folder(struct sv_work *w, int dir, const char *last, const struct sv_change *c)
{
	const mode_t mode = w->place[0].st.st_mode & 07777;
	cleanup_fd int fd = -1;
	int rc = 0;

	pthread_rwlock_rdlock(&w->sh->names);
	if (strcmp(last, ".") && mkdirat(dir, last, mode) < 0 && errno != EEXIST)
		rc = -errno;
	pthread_rwlock_unlock(&w->sh->names);
	if (rc < 0)
		return rc;
	fd = sv_steer_find(w, &w->place[0], O_PATH | O_DIRECTORY);
	return fd < 0 ? fd : sv_change_apply(fd, c);
}

/* Not in the tree yet. */
static void change_copy(struct sv_work *w, uint32_t ops, struct sv_change *c)
{
	const struct sv_place *p = &w->place[0];
	const struct sv_match steer = w->match;
	char last[SV_PATH_MAX];
	int dir;

	if (!S_ISREG(p->st.st_mode) && !S_ISDIR(p->st.st_mode)) {
		w->match = (struct sv_match){ .action = SV_DENY, .rule = steer.rule, .err = EOPNOTSUPP };
		return sv_refuse(w);
	}
	if (S_ISREG(p->st.st_mode) && !sv_decide_call(w, SV_OP_READ, p))
		return sv_refuse_why(w, EACCES, "steered, but its present bytes may not be read");
	w->match = steer;
	if (sv_still_valid(&w->t) < 0)
		return;
	dir = sv_steer_folder(w, p, last);
	if (dir < 0)
		return sv_fail_call(w, -dir);
	if (sv_steer_denied(w, dir, last, ops | SV_OP_CREATE)) {
		close(dir);
		return sv_refuse(w);
	}
	atomic_fetch_add_explicit(&w->sh->steered, 1, memory_order_relaxed);
	if (S_ISREG(p->st.st_mode))
		return sv_copy_up_changed(w, p, dir, last, c);
	sv_give_result(w, copy_folder(w, dir, last, c));
	close(dir);
}

bool sv_change_judge(struct sv_work *w, uint32_t ops, const char *called, bool named,
		     struct sv_change *c)
{
	const struct sv_place *p = &w->place[0];

	if (called[0])
		return judge_there(w, ops, called);
	if (named && w->sh->steers && !w->sh->observe && !p->held && !sv_decide_call(w, ops, p) &&
	    sv_steer_goes_to_tree(w, &w->match)) {
		change_copy(w, ops, c);
		return false;
	}
	return sv_object_judge(w, ops);
}
