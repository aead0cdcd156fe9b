/* exec_over.c - what the tracer calls back: the outcome of an exec is told and counted. */
#include "broker/exec_over.h"

#include "broker/digest.h"
#include "effect/respond.h"

#include <stdlib.h>
#include <string.h>

static bool may_map(void *ctx, const struct sv_exec_plan *plan, struct sv_str path)
{
	struct sv_shared *sh = ctx;
	struct sv_match m;

	/* the loader is part of the start, so the caller's blocks decide */
	sv_match_path_in(sh->policy, plan->blocks, path, SV_OP_EXEC, &m);
	/* Nobody keeps writers from a loader once it is mapped: no digest holds for it. */
	return sh->observe || (m.action == SV_ALLOW && !m.pin);
}

static void told(struct sv_shared *sh, const struct sv_exec_plan *plan,
		 const struct sv_exec_result *r, enum sv_event_kind kind, enum sv_effect effect)
{
	const struct sv_exec_memo *m = plan->user;
	struct sv_str why = { (const uint8_t *)r->why, r->why ? strlen(r->why) : 0 };
	struct sv_event e = {
		.kind = kind, .tid = r->tgid ? r->tgid : plan->tid, .nr = plan->nr,
		.ops = SV_OP_EXEC, .action = plan->action, .effect = effect, .rule = plan->rule,
		.err = r->err, .detail = kind == SV_EVENT_EXEC ? r->argv : why,
	};
	struct sv_call call = { .tid = e.tid };
	struct sv_tracee t = { .proc_fd = sh->proc_fd, .call = &call, .cwd = -1 };
	char comm[64];

	if (m) {
		e.ops = m->ops;
		e.path = (struct sv_str){ (const uint8_t *)m->path, m->path_len };
	}
	if (plan->new_path)
		e.path2 = (struct sv_str){ (const uint8_t *)plan->new_path, plan->new_path_len };
	sv_tracee_comm(&t, comm, sizeof(comm));
	e.comm = (struct sv_str){ (const uint8_t *)comm, strlen(comm) };
	sv_record(sh, &e);
}

static void give_back(struct sv_shared *sh, const struct sv_exec_plan *plan)
{
	const struct sv_exec_memo *m = plan->user;

	if (m && m->counted)
		sv_give_back_exec(sh);
}

void sv_exec_over(struct sv_shared *sh, struct sv_exec_plan *plan, int err, const char *why)
{
	struct sv_exec_result r = { .outcome = SV_EXEC_REFUSED, .err = err, .why = why };

	give_back(sh, plan);
	if (err) {
		plan->action = SV_DENY;
		sv_count_denied(sh, plan->tid);
		told(sh, plan, &r, SV_EVENT_FAULT, SV_EFFECT_ERRNO);
		sv_answer_errno(sh->listener, plan->id, err);
	} else {
		if (sh->record != SV_RECORD_DENIALS)
			told(sh, plan, &r, SV_EVENT_CALL, SV_EFFECT_CONTINUE);
		sv_answer_continue(sh->listener, plan->id);
	}
	free(plan->user);
	sv_exec_plan_free(plan);
}

static void done(void *ctx, const struct sv_exec_plan *plan, const struct sv_exec_result *r)
{
	struct sv_shared *sh = ctx;

	switch (r->outcome) {
	case SV_EXEC_RAN: case SV_EXEC_UNSEEN:
		if (plan->kind != SV_PLAN_REWRITE && sh->record != SV_RECORD_DENIALS)
			told(sh, plan, r, SV_EVENT_EXEC, plan->kind == SV_PLAN_STEER ?
							  SV_EFFECT_REWRITE : SV_EFFECT_CONTINUE);
		break;
	case SV_EXEC_KILLED:
		sv_count_denied(sh, plan->tid);
		told(sh, plan, r, SV_EVENT_FAULT, SV_EFFECT_KILL);
		break;
	case SV_EXEC_REFUSED:
		give_back(sh, plan);
		sv_count_denied(sh, plan->tid);
		told(sh, plan, r, SV_EVENT_FAULT, SV_EFFECT_ERRNO);
		break;
	case SV_EXEC_FAILED:
		give_back(sh, plan);
		if (plan->asked && (plan->action != SV_ALLOW || sh->record == SV_RECORD_ALL))
			told(sh, plan, r, SV_EVENT_CALL, SV_EFFECT_REWRITE);
		break;
	case SV_EXEC_GONE: case SV_EXEC_AGAIN:
		give_back(sh, plan);
		break;
	}
	free(plan->user);
}

static void child_ended(void *ctx, pid_t pid, int wstatus)
{
	struct sv_shared *sh = ctx;

	sh->on_child(sh->on_child_arg, pid, wstatus);
}

const struct sv_tracer_ops sv_exec_ops = { .may_map = may_map, .done = done, .child = child_ended };
