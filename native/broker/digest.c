/* digest.c - the first look at a pinned program, for a clean errno. */
#include "broker/digest.h"

#include "base/fd.h"
#include "effect/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

struct job {
	struct sv_shared *sh;
	struct sv_exec_plan *plan;
	bool check_only;
	int fd;
};

static void drop(struct sv_exec_plan *plan)
{
	free(plan->user);
	sv_exec_plan_free(plan);
}

static void run(void *arg)
{
	struct job *j = arg;
	struct sv_exec_plan *plan = j->plan;
	char why[SV_HASH_WHY];
	bool good = sv_hash_is(j->fd, sv_side_stop_flag(), plan->digest, why);

	close(j->fd);
	if (!sv_side_claim()) {
		if (!j->check_only)
			sv_give_back_exec(j->sh);
		drop(plan);
	} else if (!good && !j->sh->observe) {
		sv_exec_over(j->sh, plan, EACCES, why);
	} else if (j->check_only) {
		sv_exec_over(j->sh, plan, 0, NULL);
	} else {
		/* Observing, other bytes are on record as what a rule denies, and run. */
		if (!good)
			plan->action = SV_DENY;
		plan->pinned = !j->sh->observe;
		sv_tracer_submit(j->sh->tracer, plan);
	}
	free(j);
}

static int open_pin(const struct sv_work *w, const struct sv_exec_plan *plan)
{
	char n[16];
	int fd;

	snprintf(n, sizeof(n), "%d", plan->pin_fd);
	fd = openat(w->paths.self_fd, n, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

void sv_digest_first(struct sv_work *w, struct sv_exec_plan *plan, bool check_only)
{
	struct job *j = malloc(sizeof(*j));
	int fd = j ? open_pin(w, plan) : -ENOMEM;

	if (fd >= 0) {
		*j = (struct job){ w->sh, plan, check_only, fd };
		if (sv_side_run(w->sh->side, &w->call, run, j) == 0)
			return;
		close(fd);
		fd = -ENFILE;
	}
	free(j);
	drop(plan);
	sv_fail_call(w, -fd);
}
