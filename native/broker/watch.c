/* watch.c - inotify_add_watch.
 *
 * To see that an object is read or changed is decided like reading it. The watch
 * is put on the pinned object, in a duplicate of the caller's inotify instance. */
#include "broker/object.h"

#include "base/fd.h"

#include <errno.h>
#include <sys/inotify.h>
#include <sys/stat.h>

void sv_do_watch(struct sv_work *w)
{
	const uint32_t mask = (uint32_t)w->in.flags;
	const int how = (mask & IN_DONT_FOLLOW ? SV_PIN_NOFOLLOW : 0) |
			(mask & IN_ONLYDIR ? SV_PIN_DIRECTORY : 0);
	struct sv_place *p = &w->place[0];
	char self[32];
	int wd;

	if (w->in.watcher < 0)
		return sv_refuse_why(w, EACCES, "no watches here: this machine does not let an inotify "
						"descriptor be duplicated (pidfd_getfd)");
	wd = sv_pin(&w->paths, &w->t, &w->in.name[0], how, 0, p);
	if (wd < 0)
		return sv_fail_call(w, -wd);
	if (!sv_object_judge(w, S_ISDIR(p->st.st_mode) ? SV_OP_LIST : SV_OP_READ))
		return;
	sv_object_name(p, self, sizeof(self));
	/* IN_UNMOUNT is always in force: it keeps a mask of IN_DONT_FOLLOW alone valid */
	wd = inotify_add_watch(w->in.watcher, self, (mask & ~(uint32_t)IN_DONT_FOLLOW) | IN_UNMOUNT);
	if (wd < 0)
		wd = -errno;
	/* a copy of ours must not keep an instance alive that the caller then closes */
	sv_close_fd(&w->in.watcher);
	if (wd < 0)
		sv_fail_call(w, -wd);
	else
		sv_give_value(w, wd);
}
