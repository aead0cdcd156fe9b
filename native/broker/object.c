/* object.c - pins by descriptor, judges, names. */
#include "broker/object.h"

#include "broker/terminal.h"

#include <errno.h>
#include <stdio.h>

int sv_object_pin_fd(struct sv_work *w, int fd)
{
	if (fd >= 0 && sv_tracee_fd_is_path(&w->t, fd))
		return -EBADF;
	return sv_pin_fd(&w->paths, &w->t, fd, &w->place[0]);
}

bool sv_object_judge(struct sv_work *w, uint32_t ops)
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

void sv_object_name(const struct sv_place *p, char *buf, size_t cap)
{
	snprintf(buf, cap, "/proc/self/fd/%d", p->fd);
}
