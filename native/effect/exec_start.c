/* exec_start.c - the list of tasks, and how a call is taken into hand. */
#include "effect/tracer.h"

#include <dirent.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

/* EXITKILL: when this process dies, what it holds at a stop dies too. */
enum { OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL };

int sv_task_answer(struct sv_tracer *t, uint64_t id, int error, uint32_t flags)
{
	struct seccomp_notif_resp resp = { .id = id, .error = error, .flags = flags };
	int rc;

	do {
		rc = ioctl(t->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	} while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

void sv_task_state_set(struct sv_tracer *t, struct sv_task *task, enum sv_task_state to)
{
	pthread_mutex_lock(&t->lock);
	if (task->state == SV_TASK_RETURNING)
		atomic_fetch_sub(&t->returning, 1);
	if (to == SV_TASK_RETURNING) {
		task->called = false;
		atomic_fetch_add(&t->returning, 1);
	}
	task->state = to;
	pthread_mutex_unlock(&t->lock);
}

static void add(struct sv_tracer *t, struct sv_task *task)
{
	pthread_mutex_lock(&t->lock);
	task->next = t->tasks;
	t->tasks = task;
	pthread_mutex_unlock(&t->lock);
}

struct sv_task *sv_task_find(struct sv_tracer *t, pid_t tid)
{
	struct sv_task *k = t->tasks;

	while (k && (k->plan.tid != tid || k->state == SV_TASK_QUEUED))
		k = k->next;
	return k;
}

struct sv_task *sv_task_of(struct sv_tracer *t, pid_t tgid)
{
	struct sv_task *k = t->tasks;

	while (k && (k->tgid != tgid || k->state == SV_TASK_QUEUED))
		k = k->next;
	return k;
}

void sv_task_report(struct sv_tracer *t, struct sv_task *task, enum sv_exec_outcome outcome,
		   int err, const char *why)
{
	struct sv_exec_result r = { .outcome = outcome, .err = err, .tgid = task->tgid,
				    .why = why };

	t->ops->done(t->ctx, &task->plan, &r);
}

void sv_task_queue(struct sv_tracer *t, struct sv_task *task)
{
	task->state = SV_TASK_QUEUED;
	add(t, task);
}

static void unlink_task(struct sv_tracer *t, struct sv_task *task)
{
	for (struct sv_task **p = &t->tasks; *p; p = &(*p)->next)
		if (*p == task) {
			*p = task->next;
			return;
		}
}

/* Takes the task off the list; the next exec of its process may begin. */
void sv_task_drop(struct sv_tracer *t, struct sv_task *task)
{
	struct sv_task *waiting = NULL;

	sv_hash_forget(task);
	sv_task_state_set(t, task, SV_TASK_LEAVING);
	pthread_mutex_lock(&t->lock);
	unlink_task(t, task);
	/* The oldest stands last. */
	for (struct sv_task *k = t->tasks; k; k = k->next)
		if (k->state == SV_TASK_QUEUED && k->tgid == task->tgid)
			waiting = k;
	if (waiting) {
		unlink_task(t, waiting);
		waiting->next = t->ready;
		t->ready = waiting;
	}
	pthread_mutex_unlock(&t->lock);
	sv_areas_give(&t->areas, &task->area);
	sv_exec_plan_free(&task->plan);
}

/* A number of /proc/TID/status; 0 where there is no such task, -1 where it cannot be read. */
static pid_t status_pid(pid_t tid, const char *key)
{
	const size_t n = strlen(key);
	char name[40], line[128];
	pid_t pid = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", tid);
	f = fopen(name, "re");
	if (!f)
		return errno == ENOENT ? 0 : -1;
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, key, n) == 0) {
			pid = (pid_t)strtol(line + n, NULL, 10);
			break;
		}
	if (ferror(f) && errno != ESRCH)
		pid = -1;
	fclose(f);
	return pid;
}

/* A leader vanishes without a status when another thread's exec takes its number, and
 * a debugger has that thread, so that its exec is in nobody's hand here. One that is
 * in its own exec changes its number as well: it has the old one or its process's. */
bool sv_task_vanished(const struct sv_task *task)
{
	const pid_t self = gettid();
	pid_t tracer = status_pid(task->plan.tid, "TracerPid:");

	if (tracer >= 0 && tracer != self)
		tracer = status_pid(task->tgid, "TracerPid:");
	return tracer >= 0 && tracer != self;
}

static struct sv_task *still_held(struct sv_tracer *t, struct sv_task *task)
{
	if (!task || !sv_task_vanished(task))
		return task;
	sv_task_report(t, task, SV_EXEC_GONE, 0, "another thread's exec ended it");
	sv_task_drop(t, task);
	return NULL;
}

static pid_t tgid_of(pid_t tid)
{
	/* True for a thread of that number in the group of that number. */
	if (syscall(SYS_tgkill, tid, tid, 0) == 0 || errno == EPERM)
		return tid;
	return status_pid(tid, "Tgid:");
}

static void refuse(struct sv_tracer *t, struct sv_task *task, int seize_err)
{
	int rc = sv_task_answer(t, task->plan.id, -EACCES, 0);

	if (rc == -ENOENT || seize_err == ESRCH)
		sv_task_report(t, task, SV_EXEC_GONE, 0, "the task ended before its exec was judged");
	else
		sv_task_report(t, task, SV_EXEC_REFUSED, EACCES,
		       "the task could not be traced (a debugger holds it, or it is protected)");
	sv_task_drop(t, task);
}

/* A debugger has the task. It starts nothing that rules refuse, whatever path it
 * finds at last: the plan says when that is so. */
static void go_on_unseen(struct sv_tracer *t, struct sv_task *task)
{
	t->unseen = true;
	if (sv_task_answer(t, task->plan.id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE) < 0)
		sv_task_report(t, task, SV_EXEC_GONE, 0, "the task ended before its exec was judged");
	else
		sv_task_report(t, task, SV_EXEC_UNSEEN, 0, NULL);
	sv_task_drop(t, task);
}

/* An exec that went on unseen holds the lock that SEIZE needs, until the debugger has
 * taken note of every thread that it ended: perhaps never. So where a debugger has
 * any thread of a process, none of them is seized. */
static bool beside_debugged(const struct sv_tracer *t, const struct sv_task *task)
{
	bool found = false;
	struct dirent *e;
	char name[40];
	DIR *d;

	if (!t->unseen || !task->plan.unwatched)
		return false;
	snprintf(name, sizeof(name), "/proc/%d/task", task->tgid);
	d = opendir(name);
	while (d && !found && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			found = status_pid((pid_t)strtol(e->d_name, NULL, 10), "TracerPid:") > 0;
	if (d)
		closedir(d);
	return found;
}

/* 0, or why it cannot be held; SEIZE itself is the only sure word on who has it. */
static int seize(struct sv_task *task, bool *debugged)
{
	int rc;

	*debugged = false;
	for (int tries = 0; tries < 2; tries++) {
		if (ptrace(PTRACE_SEIZE, task->plan.tid, 0, OPTIONS) == 0)
			return 0;
		rc = errno;
		*debugged = rc == EPERM && status_pid(task->plan.tid, "TracerPid:") > 0;
		if (*debugged || rc != EPERM)
			break;	/* else the debugger may have left just now */
	}
	return rc;
}

/* Lets the call into the kernel. With a killable wait the interrupt can only
 * take effect after the call, which makes a failed exec visible; with another
 * it would cancel the notification, so it comes second and may be late. A
 * rewritten call needs none: it is on its way from its entry to its exit stop. */
static void let_go(struct sv_tracer *t, struct sv_task *task, uint64_t id)
{
	int rc;

	if (t->killable && !task->moved)
		ptrace(PTRACE_INTERRUPT, task->plan.tid, 0, 0);
	sv_task_state_set(t, task, SV_TASK_RUNNING);
	rc = sv_task_answer(t, id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
	if (!t->killable && !task->moved)
		ptrace(PTRACE_INTERRUPT, task->plan.tid, 0, 0);
	if (rc < 0)
		sv_task_state_set(t, task, SV_TASK_LEAVING);
}

static void park(struct sv_tracer *t, struct sv_task *task, uint64_t id)
{
	int rc;

	ptrace(PTRACE_INTERRUPT, task->plan.tid, 0, 0);
	rc = sv_task_answer(t, id, -SV_ERESTARTNOINTR, 0);
	/* Without a killable wait the interrupt alone parks it, in the same way. */
	sv_task_state_set(t, task, rc < 0 && t->killable ? SV_TASK_LEAVING : SV_TASK_PARKING);
}

/* A plan for a task that is in hand already. Nearly always its notification is
 * history: a signal or our own interrupt ended it (only without a killable wait).
 * Else the rewritten call never came, because the program's code was changed
 * under it: nothing is let go, the task gets its signals back and calls again. */
static void second_plan(struct sv_tracer *t, struct sv_task *old, struct sv_task *task)
{
	if (old->state == SV_TASK_RETURNING && old->entered &&
	    ioctl(t->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &task->plan.id) == 0) {
		ptrace(PTRACE_INTERRUPT, old->plan.tid, 0, 0);
		sv_task_answer(t, task->plan.id, -SV_ERESTARTNOINTR, 0);
		sv_task_state_set(t, old, SV_TASK_LEAVING);
		old->strayed = true;
	}
	sv_task_report(t, task, SV_EXEC_AGAIN, 0, "the task was still in an earlier call");
	sv_exec_plan_free(&task->plan);
}

void sv_step_start(struct sv_tracer *t, struct sv_task *task)
{
	struct sv_task *old = still_held(t, sv_task_find(t, task->plan.tid));
	bool debugged;
	int rc;

	if (old) {
		second_plan(t, old, task);
		return;
	}
	/* One that waited may be dead by now, but its process still has a queue. */
	if (task->tgid <= 0)
		task->tgid = tgid_of(task->plan.tid);
	if (task->tgid > 0 && still_held(t, sv_task_of(t, task->tgid))) {
		/* Two at a time would deadlock: the one that succeeds waits, with
		 * the lock that SEIZE needs, until this thread reaps the other. */
		sv_task_queue(t, task);
		return;
	}
	task->state = SV_TASK_LEAVING;
	add(t, task);
	if (task->tgid <= 0) {
		refuse(t, task, 0);
		return;
	}
	if (ioctl(t->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &task->plan.id) < 0) {
		refuse(t, task, ESRCH);
		return;
	}
	if (beside_debugged(t, task)) {
		go_on_unseen(t, task);
		return;
	}
	rc = seize(task, &debugged);
	if (rc && debugged && task->plan.unwatched)
		go_on_unseen(t, task);
	else if (rc)
		refuse(t, task, rc);
	else if (task->plan.kind == SV_PLAN_VERIFY)
		let_go(t, task, task->plan.id);
	else
		park(t, task, task->plan.id);
}

void sv_step_called(struct sv_tracer *t, struct sv_task *task)
{
	let_go(t, task, task->call_id);
}

