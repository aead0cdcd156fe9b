/* ptrace.c - debuggers of the tree.
 *
 * Whom they may trace is the Landlock domain's matter. What counts here is that
 * an exec of a traced task stops, and that nothing resumes it unverified. */
#include "broker/work.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>

enum { OLDSETOPTIONS = 21 };
#define SUSPEND_SECCOMP (1ULL << 21)

/* Its parent becomes the tracer, which must not be the supervisor. */
static bool parent_inside(struct sv_work *w)
{
	pid_t parent;

	return sv_tracee_parent(&w->t, &parent) == 0 && parent != w->sh->self &&
	       sv_in_tree(w->paths.proc_fd, parent);
}

/* What the calls so far say of a task. Nothing is ever taken back, as a call that
 * would take it back may fail: a number that comes again finds more doubt than due. */
enum mark {
	SEIZED = 1,	/* somebody called PTRACE_SEIZE for it */
	WEAK = 2,	/* without PTRACE_O_TRACEEXEC */
	AUTO = 4	/* a tracer whose seized tasks have theirs seized, too */
};
enum { TIDS = 1 << 22 };	/* PID_MAX_LIMIT */
#define AUTO_ATTACH ((uint64_t)PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

static bool mark(struct sv_shared *sh, pid_t tid, unsigned marks)
{
	atomic_uchar *all = atomic_load(&sh->traced), *none = NULL;

	if (tid <= 0 || tid >= TIDS)
		return true;	/* no task has it */
	if (!all) {
		all = calloc(TIDS, sizeof(*all));
		if (!all)
			return false;
		if (!atomic_compare_exchange_strong(&sh->traced, &none, all)) {
			free(all);
			all = none;
		}
	}
	atomic_fetch_or(&all[tid], (unsigned char)marks);
	return true;
}

static bool marked(struct sv_shared *sh, pid_t tid, unsigned marks)
{
	atomic_uchar *all = atomic_load(&sh->traced);

	return all && tid > 0 && tid < TIDS && (atomic_load(&all[tid]) & marks);
}

bool sv_seized_weakly(struct sv_shared *sh, pid_t tid)
{
	return marked(sh, tid, WEAK);
}

static const char no_stop[] = "without PTRACE_O_TRACEEXEC an exec could not be verified";
static const char no_memory[] = "no memory to remember it";

static const char *seize(struct sv_work *w, uint64_t options)
{
	const bool weak = !(options & PTRACE_O_TRACEEXEC), autos = options & AUTO_ATTACH;

	if (weak && autos)
		return no_stop;
	if (!mark(w->sh, w->in.pid, SEIZED | (weak ? WEAK : 0)) ||
	    (autos && !mark(w->sh, w->call.tid, AUTO)))
		return no_memory;
	return NULL;
}

/* A seized task keeps PTRACE_O_TRACEEXEC; of another the exec stops without it. */
static const char *set_options(struct sv_work *w, uint64_t options)
{
	const bool seized = marked(w->sh, w->in.pid, SEIZED) || marked(w->sh, w->call.tid, AUTO);

	if (!seized)
		return NULL;
	if (!(options & PTRACE_O_TRACEEXEC))
		return no_stop;
	return options & AUTO_ATTACH && !mark(w->sh, w->call.tid, AUTO) ? no_memory : NULL;
}

static const char *objection(struct sv_work *w, int request, uint64_t options)
{
	switch (request) {
	case PTRACE_TRACEME:
		return parent_inside(w) ? NULL : "the program that would trace it is outside the tree";
	case PTRACE_SEIZE:
		return options & SUSPEND_SECCOMP ? "would take the filter away" : seize(w, options);
	case PTRACE_SETOPTIONS:
	case OLDSETOPTIONS:
		return options & SUSPEND_SECCOMP ? "would take the filter away" :
						   set_options(w, options);
	default:
		return NULL;
	}
}

/* The kernel takes these for a task that is not stopped. */
static bool needs_no_stop(int request)
{
	return request == PTRACE_TRACEME || request == PTRACE_ATTACH || request == PTRACE_SEIZE ||
	       request == PTRACE_INTERRUPT || request == PTRACE_KILL;
}

void sv_do_ptrace(struct sv_work *w)
{
	const int request = (int)w->call.args[0];
	const char *why = objection(w, request, w->call.args[3]);

	if (why)
		return sv_refuse_why(w, EPERM, why);
	sv_tracer_settle(w->sh->tracer, w->in.pid, false);
	/* Else a call that is let go now could come late, and resume the task from the
	 * stop of an exec that began after this look. One that is held stays so. */
	if (!needs_no_stop(request) && !sv_held_by(w->paths.proc_fd, w->in.pid, w->call.tid))
		return sv_fail_call(w, ESRCH);
	sv_let_go(w);
}
