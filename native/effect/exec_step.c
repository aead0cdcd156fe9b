/* exec_step.c - what a stop means depends on what the task was told before it. */
#include "effect/label.h"
#include "effect/tracer.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Its fate goes to the caller first, then the task goes its way. */
static void leave(struct sv_tracer *t, struct sv_task *task, enum sv_exec_outcome outcome,
		  int err, const char *why, int sig)
{
	pid_t tid = task->plan.tid;

	sv_task_report(t, task, outcome, err, why);
	/* Fails only when it was killed; its status then comes as any other's. */
	ptrace(PTRACE_DETACH, tid, 0, (unsigned long)sig);
	sv_task_drop(t, task);
}

/* A task that cannot be put right must not go on. The kill is told at once, the
 * task stays on the list until it was reaped. */
static void end(struct sv_tracer *t, struct sv_task *task, const char *why,
		const struct sv_exec_seen *seen)
{
	struct sv_exec_result r = { .outcome = SV_EXEC_KILLED, .tgid = task->tgid, .why = why };

	if (seen)
		r.argv = (struct sv_str){ seen->argv, seen->n };
	kill(task->tgid, SIGKILL);
	sv_task_state_set(t, task, SV_TASK_KILLED);
	t->ops->done(t->ctx, &task->plan, &r);
}

/* Something could not be done to a task: when it is being killed anyway its
 * status will come, else it must not go on half changed. */
static void lost(struct sv_tracer *t, struct sv_task *task, int rc)
{
	if (rc == -ESRCH)
		sv_task_state_set(t, task, SV_TASK_LEAVING);
	else
		end(t, task, "the registers of a task could not be put back", NULL);
}

/* The call did not take place: the kernel is about to make it again. */
static bool restarting(const struct sv_task *task, const struct sv_regs *regs)
{
	const struct sv_exec_plan *p = &task->plan;
	int64_t res = sv_regs_result(regs);

	if (res <= -512 && res >= -516)
		return true;
	return sv_regs_parked(regs, task->moved ? task->now_nr : p->nr,
			      task->moved ? task->now_args : p->args);
}

/* In the stop after a call that did not become a program. */
static void left_call(struct sv_tracer *t, struct sv_task *task, int sig)
{
	bool ran = task->state == SV_TASK_RUNNING;
	struct sv_regs regs;
	int64_t res = 0;
	int rc = sv_regs_get(task->plan.tid, &regs);

	if (rc == 0) {
		res = sv_regs_result(&regs);
		ran = ran && !restarting(task, &regs);
		/* What is no errno means that it is far away already. */
		if (!ran || res >= 0 || res < -4095)
			res = 0;
		if (task->moved)
			rc = task->strayed ? sv_rewrite_unmask(task) :
			     sv_rewrite_undo(task, !ran, res);
	}
	if (rc < 0)
		lost(t, task, rc);
	else if (ran)
		leave(t, task, SV_EXEC_FAILED, (int)-res, NULL, sig);
	else
		leave(t, task, SV_EXEC_AGAIN, 0, "the call was interrupted and starts anew", sig);
}

static void resume(struct sv_task *task, enum __ptrace_request how)
{
	ptrace(how, task->plan.tid, 0, 0);
}

/* rc: 1 = all is in place, 0 = a call must run first, < 0 = it cannot be done. */
static void steered(struct sv_tracer *t, struct sv_task *task, int rc)
{
	if (rc == 1) {
		task->entered = false;
		sv_task_state_set(t, task, SV_TASK_RETURNING);
		resume(task, PTRACE_SYSCALL);
	} else if (rc == 0) {
		task->entered = false;
		sv_task_state_set(t, task, SV_TASK_MAPPING);
		resume(task, PTRACE_SYSCALL);
	} else {
		int undo = sv_rewrite_undo(task, false, rc);

		if (undo < 0)
			lost(t, task, undo);
		else
			leave(t, task, SV_EXEC_FAILED, -rc, NULL, 0);
	}
}

static void parked(struct sv_tracer *t, struct sv_task *task)
{
	const struct sv_exec_plan *p = &task->plan;
	int rc = sv_rewrite_park(task);

	if (rc < 0) {
		leave(t, task, SV_EXEC_AGAIN, 0, "the task was not in its call any more", 0);
		return;
	}
	if (p->kind == SV_PLAN_STEER) {
		steered(t, task, sv_steer_place(task, &t->areas));
		return;
	}
	rc = sv_rewrite_regs(task, p->new_nr, p->new_args);
	if (rc < 0 || p->asked) {
		steered(t, task, rc < 0 ? rc : 1);
		return;
	}
	sv_task_state_set(t, task, SV_TASK_REWRITTEN);
	resume(task, PTRACE_SYSCALL);
}

/* The descriptor that the call was given goes again, before the program runs on. */
static void close_given(struct sv_tracer *t, struct sv_task *task, int64_t res)
{
	const uint64_t args[SV_ARGS] = { (uint64_t)task->plan.close_fd };
	int rc;

	if (!task->closing) {
		task->closing = true;
		task->entered = false;
		task->result = res;
		rc = sv_rewrite_regs(task, SYS_close, args);
	} else {
		rc = sv_rewrite_undo(task, false, task->result);
	}
	if (rc < 0)
		lost(t, task, rc);
	else if (task->entered)
		leave(t, task, SV_EXEC_FAILED, task->result < 0 ? (int)-task->result : 0, NULL, 0);
	else
		resume(task, PTRACE_SYSCALL);
}

static void rewritten(struct sv_tracer *t, struct sv_task *task)
{
	struct sv_regs regs;
	int rc = sv_regs_get(task->plan.tid, &regs);
	int64_t res;

	if (rc == 0 && task->plan.close_fd >= 0) {
		close_given(t, task, sv_regs_result(&regs));
		return;
	}
	if (rc == 0)
		rc = sv_rewrite_disguise(task);
	if (rc < 0) {
		lost(t, task, rc);
		return;
	}
	res = sv_regs_result(&regs);
	leave(t, task, SV_EXEC_FAILED, res < 0 && res >= -4095 ? (int)-res : 0, NULL, 0);
}

/* The stop after a rewritten call that was notified and let go: it is over, whatever it
 * returned. Its signals come once the task is let go. */
static void asked_over(struct sv_tracer *t, struct sv_task *task)
{
	struct sv_regs regs;
	int rc = sv_regs_get(task->plan.tid, &regs);
	int64_t res = rc < 0 ? 0 : sv_regs_result(&regs);

	if (rc == 0)
		rc = sv_rewrite_undo(task, false, res);
	if (rc < 0)
		lost(t, task, rc);
	else
		leave(t, task, SV_EXEC_FAILED, res < 0 && res >= -4095 ? (int)-res : 0, NULL, 0);
}

static void syscall_stop(struct sv_tracer *t, struct sv_task *task)
{
	int rc = 0;

	if (!task->entered) {
		task->entered = true;
		/* Signals were held back until the rewritten call began; in it
		 * they count. */
		if (task->state == SV_TASK_REWRITTEN && task->plan.close_fd < 0)
			rc = sv_rewrite_unmask(task);
		if (rc < 0)
			lost(t, task, rc);
		else
			resume(task, PTRACE_SYSCALL);
	} else if (task->state == SV_TASK_MAPPING) {
		steered(t, task, sv_steer_mapped(task, &t->areas));
	} else if (task->state == SV_TASK_REWRITTEN) {
		rewritten(t, task);
	} else if (task->plan.asked && task->state == SV_TASK_RUNNING) {
		asked_over(t, task);
	} else {
		left_call(t, task, 0);
	}
}

/* At the exec stop, with all that was looked at as it should be, or why not. */
static void runs(struct sv_tracer *t, struct sv_task *task, const char *why,
		 const struct sv_exec_seen *seen)
{
	struct sv_exec_result r = { .outcome = SV_EXEC_RAN, .tgid = task->tgid };

	if (!why && task->moved && sv_rewrite_unmask(task) < 0)
		why = "the signals of a task could not be put back";
	if (!why && task->plan.starts && sv_label_add(task->tgid, task->plan.starts) < 0)
		why = "the blocks that the new program is in could not be put on it";
	if (why) {
		end(t, task, why, seen);
		return;
	}
	r.argv = (struct sv_str){ seen->argv, seen->n };
	t->ops->done(t->ctx, &task->plan, &r);
	ptrace(PTRACE_DETACH, task->tgid, 0, 0);
	sv_task_drop(t, task);
}

void sv_step_hashed(struct sv_tracer *t, const struct sv_hashing *h)
{
	if (h->task && h->task->state == SV_TASK_HASHING)
		runs(t, h->task, h->why[0] ? h->why : NULL, &h->seen);
}

static void ran(struct sv_tracer *t, struct sv_task *task)
{
	struct sv_exec_seen seen = { .n = 0 };
	const char *why = "a program was about to run that nobody let go";

	if (task->state == SV_TASK_RUNNING)
		why = sv_exec_verify(&task->plan, task->tgid, t->ops, t->ctx, &seen);
	if (!why && task->plan.pinned) {
		why = sv_hash_begin(t, task, &seen);
		if (!why)
			return;
	}
	runs(t, task, why, &seen);
}

/* From now on the thread that called execve bears its process's number. */
static struct sv_task *exec_event(struct sv_tracer *t, pid_t pid)
{
	unsigned long was = 0;
	struct sv_task *task;

	if (ptrace(PTRACE_GETEVENTMSG, pid, 0, &was) < 0)
		was = (unsigned long)pid;
	task = sv_task_find(t, (pid_t)was);
	if (task)
		task->plan.tid = pid;
	return task;
}

static void ended(struct sv_tracer *t, struct sv_task *task)
{
	if (task->plan.asked && task->state == SV_TASK_RUNNING)
		sv_task_report(t, task, SV_EXEC_FAILED, 0, NULL);	/* perhaps by that call */
	else if (task->state != SV_TASK_KILLED)
		sv_task_report(t, task, SV_EXEC_GONE, 0, "the task ended in its call");
	sv_task_drop(t, task);
}

static void stopped(struct sv_tracer *t, struct sv_task *task, int event, int sig)
{
	if (task->state == SV_TASK_KILLED || task->state == SV_TASK_HASHING)
		return;		/* a stop from before the kill took effect */
	if (event == PTRACE_EVENT_EXEC)
		ran(t, task);
	else if (event == 0 && sig == (SIGTRAP | 0x80))
		syscall_stop(t, task);
	else if (event == PTRACE_EVENT_STOP && sig == SIGTRAP && task->state == SV_TASK_PARKING)
		parked(t, task);
	else if (event == 0 || event == PTRACE_EVENT_STOP)
		/* The interrupt, a signal about to be taken, or a group stop: the
		 * call is over. Detached, the task takes the signal; one that is
		 * group-stopped stays so. */
		left_call(t, task, event == 0 ? sig : 0);
	else
		resume(task, PTRACE_CONT);
}

/* Is a thread of ours its tracer? Not so where a debugger of the tree is. */
static bool held_by_us(pid_t pid)
{
	char name[48], text[4096];
	cleanup_fd int fd = -1;
	const char *at;
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return fd >= 0;		/* gone */
	text[n] = 0;
	at = strstr(text, "\nTracerPid:");
	if (!at)
		return true;
	snprintf(name, sizeof(name), "/proc/self/task/%ld", strtol(at + 11, NULL, 10));
	return access(name, F_OK) == 0;
}

/* Let go. Another thread of ours becomes a tracer where a task's parent died after
 * its PTRACE_TRACEME was let pass: nobody would ever resume it. True = we do not
 * trace it: a child that job control stopped. */
static bool stray(pid_t pid, int status)
{
	const int event = status >> 16;

	if (ptrace(PTRACE_DETACH, pid, 0, event ? 0 : WSTOPSIG(status)) == 0)
		return false;
	if (event == 0 && !held_by_us(pid))
		return true;
	kill(pid, SIGKILL);
	return false;
}

/* A child's own stop: a task that waits for its turn is not traced yet. */
static bool by_job_control(const struct sv_task *task, pid_t pid, int status)
{
	if (task)
		return task->state == SV_TASK_QUEUED && status >> 16 == 0;
	return stray(pid, status);
}

void sv_step_status(struct sv_tracer *t, pid_t pid, int status)
{
	int event = WIFSTOPPED(status) ? status >> 16 : 0;
	struct sv_task *task;
	bool thread;

	task = event == PTRACE_EVENT_EXEC ? exec_event(t, pid) : sv_task_find(t, pid);
	if (WIFCONTINUED(status)) {
		t->ops->child(t->ctx, pid, status);
	} else if (!WIFSTOPPED(status)) {
		/* Killed between its exec and the stop, it has its process's number
		 * already and no event told so. A leader ends after its threads. */
		if (!task)
			task = sv_task_of(t, pid);
		thread = task && task->tgid != pid;
		if (task)
			ended(t, task);
		if (!thread)
			t->ops->child(t->ctx, pid, status);
	} else if (by_job_control(task, pid, status)) {
		t->ops->child(t->ctx, pid, status);
	} else if (task) {
		stopped(t, task, event, WSTOPSIG(status));
	}
}

void sv_step_stop(struct sv_tracer *t)
{
	while (t->tasks) {
		struct sv_task *task = t->tasks;

		if (task->state == SV_TASK_QUEUED) {
			sv_task_answer(t, task->plan.id, -EACCES, 0);
			sv_task_report(t, task, SV_EXEC_REFUSED, EACCES, "the session ended");
		} else if (task->state != SV_TASK_KILLED && sv_task_vanished(task)) {
			/* Its number may be anybody's by now. */
			sv_task_report(t, task, SV_EXEC_GONE, 0, "another thread's exec ended it");
		} else if (task->state != SV_TASK_KILLED) {
			end(t, task, "the session ended", NULL);
		}
		task->tgid = -1;	/* nobody waits for it */
		sv_task_drop(t, task);
	}
}
