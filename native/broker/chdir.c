/* chdir.c - folders that are in a rule's tree alone, as working folder and by O_PATH.
 *
 * No name that the caller has leads the kernel there, and its working folder is nobody
 * else's to set: it is lent a descriptor of the pinned folder, and its call is issued again
 * as fchdir and close. All else goes on, as a folder gives no right. */
#include "broker/reopen.h"
#include "broker/shadow.h"
#include "effect/respond.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* Pins name[0] where it lies in a tree. 1 = it does, 0 = it does not, or
 * -errno. */
static int pin_there(struct sv_work *w, int how)
{
	char called[SV_PATH_MAX];
	int natively, rc;

	if (!w->sh->steers || w->sh->observe)
		return 0;
	natively = sv_pin(&w->paths, &w->t, &w->in.name[0], how, 0, &w->place[0]);
	rc = sv_shadow_pin(w, how, natively, called);
	w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	if (!called[0])
		return natively == -ENOENT && sv_shadow_fails(rc) ? rc : 0;
	return rc < 0 ? rc : 1;
}

static void go_to(struct sv_work *w, int folder)
{
	struct sv_exec_plan *plan = sv_exec_plan_new();
	int n = sv_lend(w->sh->listener, w->call.id, folder);

	if (!plan || n < 0) {
		sv_exec_plan_free(plan);
		return sv_fail_call(w, n < 0 ? -n : ENOMEM);
	}
	plan->kind = SV_PLAN_REWRITE;
	plan->id = w->call.id;
	plan->tid = w->call.tid;
	plan->nr = w->call.nr;
	memcpy(plan->args, w->call.args, sizeof(plan->args));
	plan->new_nr = SYS_fchdir;
	plan->new_args[0] = (uint64_t)n;
	plan->close_fd = n;
	sv_tracer_submit(w->sh->tracer, plan);
}

void sv_do_chdir(struct sv_work *w)
{
	const struct sv_place *p = &w->place[0];
	const int rc = pin_there(w, 0);
	char n[16];
	int fd;

	if (rc == 0)
		return sv_let_go(w);
	if (rc < 0)
		return sv_fail_call(w, -rc);
	if (!S_ISDIR(p->st.st_mode))
		return sv_fail_call(w, ENOTDIR);
	snprintf(n, sizeof(n), "%d", p->fd);
	fd = openat(w->paths.self_fd, n, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return sv_fail_call(w, errno);
	go_to(w, fd);
}

bool sv_shadow_open_path(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];
	const int rc = w->in.resolve ? 0 : pin_there(w, w->in.flags & O_NOFOLLOW ? SV_PIN_NOFOLLOW : 0);

	if (rc < 0)
		sv_fail_call(w, -rc);
	else if (rc && w->in.flags & O_DIRECTORY && !S_ISDIR(p->st.st_mode))
		sv_fail_call(w, ENOTDIR);
	else if (rc && !S_ISDIR(p->st.st_mode) && !S_ISREG(p->st.st_mode))
		sv_refuse_why(w, EOPNOTSUPP, "O_PATH of what another tree holds, and no file or folder");
	else if (rc)
		sv_reopen_and_give(w, p, O_RDONLY | (w->in.flags & (O_CLOEXEC | O_DIRECTORY)));
	else
		sv_place_close(p);
	return rc != 0;
}
