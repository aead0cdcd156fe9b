/* debug.c - programs of the tree that look into each other and change each other. */
#include "broker/debug.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>

/* The domain bounds it to the tree. What an exec was judged by lies in the new
 * program's memory, where only itself may change it as long as rules look there. */
void sv_do_memory(struct sv_work *w)
{
	const struct sv_policy *p = w->sh->policy;
	uint32_t i;

	if (sv_blocks_in(w))
		return sv_do_domain(w);
	for (i = 0; i < p->nrules && !w->sh->observe; i++)
		if (p->rules[i].has_argv)
			return sv_refuse_why(w, EPERM, "rules look at arguments, and it could change them "
						       "after the exec was judged");
	sv_let_go(w);
}

/* Whose tracer is its process? 0 = nobody's, or it cannot be read. */
static pid_t tracing_group(const struct sv_work *w, pid_t tid)
{
	struct sv_call theirs = { .tid = tid }, its = { 0 };
	struct sv_tracee other = { .proc_fd = w->t.proc_fd, .call = &theirs, .cwd = -1 };
	struct sv_tracee tracer = { .proc_fd = w->t.proc_fd, .call = &its, .cwd = -1 };
	pid_t group = 0;

	if (sv_tracee_tracer(&other, &its.tid) < 0 || its.tid <= 0 ||
	    sv_tracee_tgid(&tracer, &group) < 0)
		return 0;
	return group;
}

/* A program that starts is in our hands for a moment, and has one tracer. */
static void wait_for_exec(const struct sv_work *w, pid_t tid)
{
	const struct timespec tick = { 0, 2 * 1000 * 1000 };

	for (int i = 0; i < 100 && tracing_group(w, tid) == w->sh->self; i++)
		nanosleep(&tick, NULL);
}

static void attach(struct sv_work *w)
{
	wait_for_exec(w, w->in.pid);
	sv_let_go(w);
}

/* Where debuggers may work, three requests come here: who attaches waits for an exec,
 * and PTRACE_TRACEME has its tracer checked, which is the parent and which the domain
 * does not bound where it stands outside of it. */
void sv_do_ptrace(struct sv_work *w)
{
	pid_t parent;

	if (!(w->sh->policy->flags & SV_POLICY_DEBUG))
		sv_refuse_why(w, EPERM, "a debugger would start programs past the rules about programs; "
					"'supervise policy show --merged' names what stands in its way");
	else if (w->call.args[0] != PTRACE_TRACEME)
		attach(w);
	else if (sv_tracee_parent(&w->t, &parent) < 0 || !sv_in_tree(w->paths.proc_fd, parent))
		sv_refuse_why(w, EPERM, "the parent, who would be the tracer, is outside the tree");
	else
		sv_let_go(w);
}

/* The task of "/proc/PID/mem" or "/proc/PID/task/TID/mem", 0 where it is none. */
static pid_t whose_memory(const struct sv_place *p)
{
	const char *last = strrchr(p->path, '/');
	const char *task = strstr(p->path, "/task/");
	char *end = NULL;
	long pid;

	if (!last || strcmp(last, "/mem") != 0 || strncmp(p->path, "/proc/", 6) != 0)
		return 0;
	pid = strtol(task ? task + 6 : p->path + 6, &end, 10);
	return end == last && pid > 0 ? (pid_t)pid : 0;
}

/* As ptrace would have it: one's own, or of the task that one traces. */
static bool debugs(const struct sv_work *w, pid_t tid)
{
	struct sv_call theirs = { .tid = tid };
	struct sv_tracee other = { .proc_fd = w->t.proc_fd, .call = &theirs, .cwd = -1 };
	pid_t own, group;

	if (sv_tracee_tgid(&w->t, &own) < 0 || sv_tracee_tgid(&other, &group) < 0)
		return false;
	return own == group || tracing_group(w, tid) == own;
}

bool sv_foreign_memory(struct sv_work *w, const struct sv_place *p)
{
	const char *last = strrchr(p->path, '/');
	pid_t tid;

	if ((w->in.flags & O_ACCMODE) == O_RDONLY || !last || strcmp(last, "/mem") != 0 ||
	    sv_fs_kind(&w->paths, p->fd, p->st.st_dev) != SV_FS_PROC)
		return false;
	tid = whose_memory(p);
	return !(w->sh->policy->flags & SV_POLICY_DEBUG) || tid == 0 || !debugs(w, tid);
}
