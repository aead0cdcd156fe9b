/* process.c - calls whose registers say everything: other processes and
 * changes of identity. */
#include "broker/work.h"

#include "syscalls/nr.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

enum { IOPRIO_WHO_PROCESS = 1 };

static const uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
				   CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

bool sv_pid_inside(const struct sv_work *w, pid_t pid)
{
	return pid == 0 || pid == w->call.tid || sv_in_tree(w->paths.proc_fd, pid);
}

/* A number below zero is nobody's, and the kernel says so in each call's own way.
 * One that nobody has now may be somebody's later: that is said here. */
void sv_verify_pid(struct sv_work *w, pid_t pid)
{
	if (pid < 0 || sv_pid_inside(w, pid))
		sv_let_go(w);
	else if (kill(pid, 0) < 0 && errno == ESRCH)
		sv_fail_call(w, ESRCH);
	else
		sv_refuse_why(w, EPERM, "a process outside the tree");
}

void sv_do_pid(struct sv_work *w)
{
	sv_verify_pid(w, w->in.pid);
}

/* A block that could be left by setting a limit would be none. */
void sv_do_rlimit(struct sv_work *w)
{
	const bool own = w->call.nr == __NR_setrlimit;
	const uint32_t what = (uint32_t)w->call.args[own ? 0 : 1];

	if (w->sh->policy->nblocks && what == RLIMIT_MSGQUEUE && (own || w->call.args[2]))
		sv_refuse_why(w, EPERM, "this limit says in which blocks of the policy a process is");
	else if (own)
		sv_let_go(w);
	else
		sv_verify_pid(w, w->in.pid);
}

/* A group or a user would take the supervisor along. */
void sv_do_which(struct sv_work *w)
{
	const int process = w->call.nr == __NR_ioprio_set ? IOPRIO_WHO_PROCESS : PRIO_PROCESS;

	if (w->in.which == process)
		sv_verify_pid(w, w->in.pid);
	else
		sv_refuse_why(w, EPERM, "a process group or a user reaches beyond the tree");
}

/* The call itself is harmless; from here on the broker must ask whose
 * identity it acts with. Set first: the task may run on at once. */
void sv_do_creds(struct sv_work *w)
{
	atomic_store(&w->sh->creds_changed, true);
	sv_let_go(w);
}

/* The domain bounds it to the tree, but not to a block; asked only where there are some. */
void sv_do_domain(struct sv_work *w)
{
	if (sv_blocks_in(w))
		sv_refuse_why(w, EPERM, "a process in a block does not reach into others, which may "
					"be outside of it");
	else
		sv_let_go(w);
}

/* The row says it all. */
void sv_do_refuse(struct sv_work *w)
{
	sv_refuse_why(w, w->row->err, w->row->note);
}

/* Also notified: a process that shares its descriptors with its parent. */
void sv_do_namespaces(struct sv_work *w)
{
	const uint64_t sharing = CLONE_FILES | CLONE_THREAD;

	if (w->call.nr == __NR_clone && (w->call.args[0] & sharing) == CLONE_FILES &&
	    !(w->call.args[0] & namespaces)) {
		atomic_store(&w->sh->files_shared, true);
		return sv_let_go(w);
	}
	sv_refuse_why(w, EPERM, "new namespaces, which bwrap, unshare and browsers' own sandboxes "
				"make, would change what paths and ids mean");
}
