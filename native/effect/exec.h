/* exec.h - executions, verified where nothing can be swapped any more.
 *
 * execve cannot be done on behalf of a task, so it is let go and looked at: the
 * task is traced for the length of this one call, and at the exec stop (new
 * memory, no other threads, no instruction run yet) the image, the path string,
 * the argument vector and the mapped files are compared with what was judged.
 * Whatever differs or cannot be read is killed. Steered execs get new strings
 * and registers first (rewrite.h) and are verified in the same way.
 *
 * One thread does all of it, because ptrace binds a tracee to a thread, and it
 * never waits for one task. It is also the only one that may call any wait
 * function of the process: it reaps every child, those of other threads and
 * adopted orphans included. SIGCHLD must be blocked in every thread.
 *
 * Callbacks run on that thread. They must not call back into the tracer and
 * hold up every exec and every child status while they run. */
#ifndef SV_EFFECT_EXEC_H
#define SV_EFFECT_EXEC_H

#include "model.h"

struct sv_tracer;

enum sv_plan_kind {
	SV_PLAN_VERIFY,		/* let the exec go on as called, verify it */
	SV_PLAN_STEER,		/* put new_path and new_argv, then verify */
	SV_PLAN_REWRITE		/* not an exec: issue new_nr(new_args) instead, once */
};

enum sv_exec_outcome {
	SV_EXEC_RAN,		/* verified; it runs once done() returns */
	SV_EXEC_FAILED,		/* the kernel said err; REWRITE: the call is over, or the task ended in it */
	SV_EXEC_KILLED,		/* the wrong thing was about to run: ended */
	SV_EXEC_GONE,		/* the task died, or left the call, before anything ran */
	SV_EXEC_REFUSED,	/* could not be traced: the call returned err */
	SV_EXEC_UNSEEN,		/* judged and let go on, but not looked at: a debugger holds it */
	SV_EXEC_AGAIN		/* interrupted: the task calls again and is judged again */
};

/* Byte vectors of strings (argv, head, new_argv, new_env): every string ends in a NUL,
 * the last one too, as in /proc/PID/cmdline. Pointers are malloc'ed and belong
 * to the plan; lengths of plain strings exclude the NUL, which must be there. */
struct sv_exec_plan {
	uint64_t id;
	pid_t tid;
	int nr;
	uint64_t args[SV_ARGS];
	enum sv_plan_kind kind;
	dev_t dev;		/* the image that must run; for a script the last interpreter */
	ino_t ino;
	bool script;
	bool check_argv;
	bool unwatched;		/* the kernel's floor holds nothing that rules refuse: under */
				/*   a debugger, whose the stop would be, it goes on unseen */
	bool pinned;		/* the image must have this SHA-256, */
	uint8_t digest[32];	/*   looked at on a thread of its own */
	char *execfn;		/* path string as judged; NULL = not compared (a descriptor). */
	size_t execfn_len;	/*   STEER: new_path is compared instead */
	char *head;		/* script: what the kernel puts before argv[1:] (interpreter, */
	size_t head_len;	/*   its argument, path); needed to compare a script's argv */
	char *argv;		/* as judged; STEER: new_argv is compared instead */
	size_t argv_len;
	char *new_path;		/* STEER; REWRITE: what is told of the new call, or NULL */
	size_t new_path_len;
	char *new_argv;
	size_t new_argv_len;
	uint32_t blocks;	/* of the policy, that the caller is in */
	uint32_t starts;	/* and those that the new program is in, too (label.h) */
	bool set_env;		/* STEER: new_env and not the caller's environment */
	char *new_env;
	size_t new_env_len;
	int new_nr;		/* REWRITE */
	uint64_t new_args[SV_ARGS];
	bool asked;		/*   the filter notifies the new call, too: it is let go then */
	int close_fd;		/*   and close this descriptor of the task's afterwards; -1 = none */
	int pin_fd;		/* held until the outcome, then closed; -1 = none */
	int rule;
	enum sv_action action;
	void *user;
};

struct sv_exec_result {
	enum sv_exec_outcome outcome;
	int err;		/* errno the task saw, 0 = none or unknown */
	pid_t tgid;		/* the process, 0 = unknown */
	struct sv_str argv;	/* RAN, KILLED: real new argv, at most 4096 bytes */
	const char *why;	/* a sentence, NULL for RAN and FAILED */
};

struct sv_tracer_ops {
	/* May this file be mapped into a new program (its loader)? */
	bool (*may_map)(void *ctx, const struct sv_exec_plan *plan, struct sv_str path);
	/* Exactly once per submitted plan; for RAN before the program's first
	 * instruction. The plan is freed when it returns. */
	void (*done)(void *ctx, const struct sv_exec_plan *plan, const struct sv_exec_result *r);
	/* A process ended. Also told of one that died while it was traced and is
	 * another task's child, so compare with the pids that are known. */
	void (*child)(void *ctx, pid_t pid, int wstatus);	/* stops too, and going on */
};

/* NULL when out of memory. pin_fd is -1, rule -1. */
struct sv_exec_plan *sv_exec_plan_new(void);
/* Only for a plan that was not submitted. */
void sv_exec_plan_free(struct sv_exec_plan *plan);

/* killable: the filter has SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (without it
 * everything holds, but the errno of a failed exec may be reported as 0). The
 * listener stays the caller's and must outlive the tracer. */
struct sv_tracer *sv_tracer_start(int listener, bool killable, const struct sv_tracer_ops *ops,
				  void *ctx, struct sv_err *err);

/* Takes over the plan and the answer to its notification. Any thread. */
void sv_tracer_submit(struct sv_tracer *t, struct sv_exec_plan *plan);

/* True when this notification is a rewritten call on its way back: the tracer
 * answers it and the caller forgets it. Any thread; cheap when nothing is
 * being steered. */
bool sv_tracer_reentry(struct sv_tracer *t, const struct sv_call *call);

/* Children of this process that are left, adopted ones included; at least 1
 * while any descendant is traced. */
int sv_tracer_children(struct sv_tracer *t);

/* Ends the thread and frees. A task in the middle of an exec is killed; plans
 * that are left are told as KILLED or REFUSED. */
void sv_tracer_stop(struct sv_tracer *t);

#endif
