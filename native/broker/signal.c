/* signal.c - signals, where the policy has rules about them or the kernel does not bound them.
 *
 * Registers say all, so what is allowed goes on, and what is steered is issued again by the
 * caller itself: the sender is who it was. Numbers of processes may be given anew between
 * the decision and the kernel's look at them; then it is still within the tree. A pidfd is
 * looked at here, once, and the call that goes on names the process by its number: nobody
 * can put another pidfd in its place. */
#include "broker/work.h"

#include "decode/pidfd.h"
#include "match/signal.h"
#include "syscalls/nr.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BOUNDED = 2 };	/* sv_assume(): by a Landlock scope */
enum { TO_THREAD = 1, TO_PROCESS = 2, TO_GROUP = 4 };	/* pidfd_send_signal(2) */
enum { SETXID = 33, CANCEL = 32 };	/* the C library's own, between threads */

/* A signal on its way. */
struct aim {
	int sig;
	pid_t pid;		/* as in kill(2): > 0 a task, else processes of a group, or all */
	uint32_t who;		/* 0 = nobody of the tree */
	int nr;			/* the call that goes on, */
	uint64_t args[SV_ARGS];	/*   which names its target by number, */
	int at;			/*   and where the signal stands in it */
};

/* Without rules: where no scope does it, processes are verified by number. */
static void go_on(struct sv_work *w)
{
	if (sv_assume(-1) & BOUNDED)
		sv_let_go(w);
	else if (w->in.pid > 0)
		sv_verify_pid(w, w->in.pid);
	else
		sv_refuse_why(w, EPERM, "a process group reaches beyond the tree on this kernel");
}

/* Who is pid? 0 or -errno. */
static int find(struct sv_work *w, pid_t pid, uint32_t *who, pid_t *tgid)
{
	const struct sv_call call = { .tid = pid };
	const struct sv_tracee t = { .proc_fd = w->paths.proc_fd, .call = &call, .cwd = -1 };
	pid_t own, parent;
	int rc = sv_tracee_tgid(&w->t, &own);

	if (rc == 0)
		rc = sv_tracee_tgid(&t, tgid);
	if (rc == 0)
		rc = sv_tracee_parent(&t, &parent);
	if (rc < 0)
		return rc == -ENOENT ? -ESRCH : rc;
	if (*tgid == own)
		*who = SV_WHO_SELF;
	else if (!sv_pid_inside(w, *tgid))
		*who = 0;
	else
		*who = parent == own ? SV_WHO_CHILD : SV_WHO_OTHERS;
	return 0;
}

/* Members come and go, so everybody who could be one counts; but the caller is in one
 * group only, and is left out where all are meant. */
static int find_group(struct sv_work *w, struct aim *a)
{
	pid_t own;

	a->who = SV_WHO_CHILD | SV_WHO_OTHERS;
	if (a->pid == -1)
		return 0;
	if (a->pid == INT_MIN || (a->pid && kill(a->pid, 0) < 0 && errno == ESRCH))
		return -ESRCH;
	own = getpgid(w->call.tid);
	if (!a->pid || own < 0 || own == -a->pid)
		a->who |= SV_WHO_SELF;
	return 0;
}

/* What the call says by itself. */
static int by_number(struct sv_work *w, struct aim *a)
{
	pid_t tgid;

	if (a->pid > 0)
		return find(w, a->pid, &a->who, &tgid);
	if (a->nr == __NR_kill)
		return find_group(w, a);
	return a->nr == __NR_rt_sigqueueinfo ? -ESRCH : -EINVAL;
}

static int check_info(const struct sv_work *w, uint64_t info, int sig)
{
	int said;
	int rc = sv_read_mem(&w->t, info, &said, sizeof(said));

	return rc < 0 ? rc : said == sig ? 0 : -EINVAL;
}

static void put_call(struct aim *a, int nr, pid_t first, pid_t second, uint64_t info)
{
	int n = 0;

	a->nr = nr;
	memset(a->args, 0, sizeof(a->args));
	a->args[n++] = (uint64_t)first;
	if (second)
		a->args[n++] = (uint64_t)second;
	a->at = n;
	a->args[n++] = (uint64_t)a->sig;
	a->args[n] = info;
}

/* The same call by number: the kernel makes of it what it makes of the pidfd. */
static int by_pidfd(struct sv_work *w, struct aim *a)
{
	const uint64_t info = w->call.args[2];
	const uint32_t how = (uint32_t)w->call.args[3];
	struct sv_pidfd p;
	pid_t tgid;
	int rc;

	if (how & ~7u || how & (how - 1))
		return -EINVAL;
	rc = sv_tracee_pidfd(&w->t, (int)w->call.args[0], &p);
	if (rc == 0 && info)
		rc = check_info(w, info, a->sig);
	if (rc == 0)
		rc = find(w, p.pid, &a->who, &tgid);
	if (rc < 0)
		return rc;
	a->pid = p.pid;
	if (how == TO_GROUP) {
		if (info || p.pid == 1)
			return -EXDEV;
		a->pid = -p.pid;
		put_call(a, __NR_kill, a->pid, 0, 0);
		return a->who ? find_group(w, a) : 0;
	}
	if (how ? how == TO_THREAD : p.thread)
		put_call(a, info ? __NR_rt_tgsigqueueinfo : __NR_tgkill, tgid, p.pid, info);
	else
		put_call(a, info ? __NR_rt_sigqueueinfo : __NR_kill, p.pid, 0, info);
	return 0;
}

/* False: no rule has anything to say of it. */
static bool take(const struct sv_work *w, struct aim *a)
{
	const bool second = w->call.nr == __NR_tgkill || w->call.nr == __NR_rt_tgsigqueueinfo;

	*a = (struct aim){ .nr = w->call.nr, .at = second ? 2 : 1 };
	memcpy(a->args, w->call.args, sizeof(a->args));
	a->pid = (pid_t)a->args[second ? 1 : 0];
	a->sig = (int)a->args[a->at];
	return a->sig >= 1 && a->sig <= SV_SIGNALS &&
	       sv_match_signal_asked(w->sh->policy, a->sig, SV_WHO_TREE);
}

static int show_target(const struct aim *a, char *out, size_t cap)
{
	if (a->pid == -1)
		return snprintf(out, cap, "all");
	if (a->pid == 0)
		return snprintf(out, cap, "its group");
	return snprintf(out, cap, a->pid < 0 ? "group %d" : "%d", a->pid < 0 ? -a->pid : a->pid);
}

/* What is told: "KILL child", and whom by number. */
static void name_it(struct sv_work *w, const struct aim *a)
{
	const char *who = a->who == SV_WHO_SELF ? "self" : a->who == SV_WHO_CHILD ? "child" :
			  a->who == SV_WHO_OTHERS ? "others" : a->who ? "group" : "outside";
	char sig[SV_SIGNAL_NAME];

	w->ops |= SV_OP_SIGNAL;
	w->place[0].len = snprintf(w->place[0].path, sizeof(w->place[0].path), "%s %s",
				   sv_signal_name(a->sig, sig), who);
	w->place[1].len = show_target(a, w->place[1].path, sizeof(w->place[1].path));
}

/* The caller itself makes the call again, with another signal. */
static void issue(struct sv_work *w, const struct aim *a, int sig)
{
	struct sv_exec_plan *plan = sv_exec_plan_new();
	char target[32], name[SV_SIGNAL_NAME];
	int n = -1;

	show_target(a, target, sizeof(target));
	if (plan)
		n = asprintf(&plan->new_path, "%s %s", sv_signal_name(sig, name), target);
	if (n < 0) {
		if (plan)
			plan->new_path = NULL;
		sv_exec_plan_free(plan);
		return sv_fail_call(w, ENOMEM);
	}
	plan->new_path_len = (size_t)n;
	sv_plan_call(w, plan);
	plan->kind = SV_PLAN_REWRITE;
	plan->asked = true;
	plan->new_nr = a->nr;
	memcpy(plan->new_args, a->args, sizeof(plan->new_args));
	plan->new_args[a->at] = (uint64_t)sig;
	if (w->match.action == SV_STEER)
		atomic_fetch_add_explicit(&w->sh->steered, 1, memory_order_relaxed);
	sv_tracer_submit(w->sh->tracer, plan);
}

/* What one member's steer makes of the call reaches them all: is it denied for another one?
 * For a single target that is an error of the policy. Then w->match is that rule. */
static bool denied_after(struct sv_work *w, const struct aim *a, int to)
{
	struct sv_match after;

	if (to == a->sig || to < 1)
		return false;
	sv_match_signal(w->sh->policy, to, a->who, &after);
	if (after.action != SV_DENY)
		return false;
	w->match = after;
	return true;
}

static void judge(struct sv_work *w, const struct aim *a)
{
	const int to = sv_match_signal(w->sh->policy, a->sig, a->who, &w->match);
	const bool same = to == a->sig && a->nr == w->call.nr;

	name_it(w, a);
	if (w->sh->observe)
		return go_on(w);
	if (w->match.action == SV_DENY || denied_after(w, a, to))
		return sv_refuse(w);
	if (to == SV_SIGNAL_TORN)
		return sv_refuse_why(w, EPERM, "rules steer this signal to different ones for the "
					       "members of a group");
	if (same || (a->pid <= 0 && !(sv_assume(-1) & BOUNDED)))
		return go_on(w);
	issue(w, a, to);
}

static void refuse_outside(struct sv_work *w, const struct aim *a)
{
	name_it(w, a);
	sv_refuse_why(w, EPERM, "a process outside the tree");
}

void sv_do_signal(struct sv_work *w)
{
	struct aim a;
	int rc;

	if (!take(w, &a))
		return go_on(w);
	rc = w->call.nr == __NR_pidfd_send_signal ? by_pidfd(w, &a) : by_number(w, &a);
	if (rc == -EISDIR)
		sv_refuse_why(w, EPERM, "signal rules know processes by pidfd, not by a folder");
	else if (rc == -EXDEV)
		sv_refuse_why(w, EPERM, "signal rules cannot hold for data sent to a group by pidfd");
	else if (rc < 0)
		sv_fail_call(w, -rc);
	else if (!a.who)
		refuse_outside(w, &a);
	else if (a.nr == w->call.nr && a.who == SV_WHO_SELF && (a.sig == CANCEL || a.sig == SETXID))
		go_on(w);
	else
		judge(w, &a);
}

/* A descriptor's signals, of which any may be chosen, go to its owner. */
void sv_do_owner(struct sv_work *w)
{
	const pid_t pid = (pid_t)w->call.args[2];
	uint32_t who = SV_WHO_TREE;
	pid_t tgid;
	int rc = 0;

	if (w->sh->observe || ((int)w->call.args[1] == F_SETOWN && !pid))
		return sv_let_go(w);
	if ((int)w->call.args[1] == F_SETOWN && pid > 0)
		rc = find(w, pid, &who, &tgid);
	if (rc < 0)
		sv_fail_call(w, -rc);
	else if (who == SV_WHO_SELF || !sv_match_signal_asked(w->sh->policy, 0, who))
		sv_let_go(w);
	else
		sv_refuse_why(w, EPERM, "signal rules speak of whom this descriptor's signals would "
					"go to");
}
