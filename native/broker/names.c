/* names.c - calls that make or remove one name: mkdir mknod symlink unlink rmdir.
 *
 * The folder is pinned, the decision is about its true path plus the last
 * component, and the kernel does the call on that folder and that component,
 * so a swapped parent changes nothing. */
#include "broker/shadow.h"
#include "broker/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The new name goes to a tree; moot: what ends that where it was asked for. */
static bool place_there(struct sv_work *w, int moot)
{
	struct sv_place *p = &w->place[0];
	int rc = moot && !sv_shadow_only(w, p) ? -moot : sv_steer_name(w, p);

	if (rc == 0 && sv_steer_denied(w, p->parent, p->last, SV_OP_CREATE)) {
		sv_refuse(w);
		return false;
	}
	if (rc < 0)
		sv_fail_call(w, -rc);
	return rc == 0;
}

/* Pin the folder, judge the new name. True = go on. */
static bool place_new(struct sv_work *w, bool folder)
{
	struct sv_place *p = &w->place[0];
	int rc = sv_pin_parent(&w->paths, &w->t, &w->in.name[0], 0, p);
	bool elsewhere = false, allowed;

	if (rc == 0 && sv_place_is_dots(p))
		rc = -EEXIST;
	if (rc == -ENOENT && w->sh->steers && !w->sh->observe)
		elsewhere = sv_pin_missing(&w->paths, &w->t, &w->in.name[0], p) == 0;
	if (rc < 0 && !elsewhere) {
		sv_fail_call(w, -rc);
		return false;
	}
	allowed = sv_decide_call(w, SV_OP_CREATE, p);
	if (elsewhere && w->match.action != SV_STEER) {
		/* the folder is missing, and no rule put it elsewhere */
		w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
		sv_fail_call(w, ENOENT);
		return false;
	}
	if (allowed)
		return true;
	if (w->match.action != SV_STEER) {
		sv_refuse_unless(w, sv_moot_new(p, folder));
		return false;
	}
	return place_there(w, elsewhere ? 0 : sv_moot_new(p, folder));
}

void sv_do_mkdir(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];
	mode_t mode;
	int rc;

	if (!place_new(w, true))
		return;
	if (sv_new_mode(w, p, (mode_t)w->in.mode & 01777, &mode) < 0)
		return sv_refuse_why(w, EACCES, "the caller's umask cannot be read");
	if (sv_still_valid(&w->t) < 0)
		return;
	pthread_rwlock_rdlock(&w->sh->names);
	rc = sv_take_new(w, p, true);
	if (rc == 0 && mkdirat(p->parent, p->last, mode) < 0)
		rc = -errno;
	pthread_rwlock_unlock(&w->sh->names);
	sv_give_result(w, rc);
}

/* As may_mknod(): what can never be a node is refused before any name is looked at. */
static int node_errno(mode_t type)
{
	switch (type) {
	case 0: case S_IFREG: case S_IFCHR: case S_IFBLK: case S_IFIFO: case S_IFSOCK:
		return 0;
	case S_IFDIR:
		return EPERM;
	default:
		return EINVAL;
	}
}

void sv_do_mknod(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];
	const mode_t type = (mode_t)w->in.mode & S_IFMT;
	mode_t mode;
	int rc;

	if (node_errno(type))
		return sv_fail_call(w, node_errno(type));
	if (!place_new(w, false))
		return;
	if (type == S_IFCHR || type == S_IFBLK)
		return sv_refuse_why(w, EPERM, "a device node would go round every path rule");
	if (sv_new_mode(w, p, (mode_t)w->in.mode & 07777, &mode) < 0)
		return sv_refuse_why(w, EACCES, "the caller's umask cannot be read");
	if (sv_still_valid(&w->t) < 0)
		return;
	rc = sv_take_new(w, p, false);
	if (rc == 0 && mknodat(p->parent, p->last, mode | type, 0) < 0)
		rc = -errno;
	sv_give_result(w, rc);
}

void sv_do_symlink(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];
	int rc;

	if (w->in.symlink[0] == 0)
		return sv_fail_call(w, ENOENT);
	if (!place_new(w, false))
		return;
	if (sv_still_valid(&w->t) < 0)
		return;
	rc = sv_take_new(w, p, false);
	if (rc == 0 && symlinkat(w->in.symlink, p->parent, p->last) < 0)
		rc = -errno;
	sv_give_result(w, rc);
}

void sv_do_unlink(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];
	int rc;

	if (w->in.flags & ~(uint64_t)AT_REMOVEDIR)
		return sv_fail_call(w, EINVAL);
	rc = sv_pin_parent(&w->paths, &w->t, &w->in.name[0], 0, p);
	if (sv_shadow_unlink(w, rc))
		return;
	if (rc < 0)
		return sv_fail_call(w, -rc);
	if (sv_place_is_dots(p))	/* fails as it would natively, and changes nothing */
		return sv_give_result(w, unlinkat(p->parent, p->last, (int)w->in.flags) < 0 ?
						 -errno : -EBUSY);
	if (!sv_decide_call(w, SV_OP_DELETE, p))
		return w->match.action == SV_STEER ?
			       sv_trash_unlink(w) :
			       sv_refuse_unless(w, sv_moot_old(p, w->in.flags & AT_REMOVEDIR));
	if (sv_still_valid(&w->t) < 0)
		return;
	rc = sv_take_old(w, p, w->in.flags & AT_REMOVEDIR);
	if (rc == 0 && unlinkat(p->parent, p->last, (int)w->in.flags) < 0)
		rc = -errno;
	sv_give_result(w, rc);
}
