/* task.h - one call in the tracer's hands; private to exec*.c and rewrite.c.
 *
 * A task is touched by the tracer thread only, save `called` and `call_id`,
 * which the tracer's lock guards while state is SV_TASK_RETURNING. */
#ifndef SV_EFFECT_TASK_H
#define SV_EFFECT_TASK_H

#include "effect/arch.h"
#include "effect/exec.h"
#include "effect/rewrite.h"

struct sv_hashing;

enum sv_task_state {
	SV_TASK_QUEUED,		/* another thread of the process is in an exec */
	SV_TASK_RUNNING,	/* let go: the exec stop or a failure comes next */
	SV_TASK_LEAVING,	/* nothing was let go: detach at the next stop */
	SV_TASK_PARKING,	/* told to restart: the stop with its registers comes */
	SV_TASK_MAPPING,	/* inside the injected mmap */
	SV_TASK_RETURNING,	/* rewritten: its notification comes next */
	SV_TASK_REWRITTEN,	/* inside the rewritten call (SV_PLAN_REWRITE) */
	SV_TASK_HASHING,	/* at its exec stop: the image is being read */
	SV_TASK_KILLED
};

struct sv_task {
	struct sv_exec_plan plan;	/* first: plan and task are one allocation */
	struct sv_task *next;
	enum sv_task_state state;
	pid_t tgid;
	bool moved;		/* registers and signal mask are ours at present */
	bool entered;		/* MAPPING, REWRITTEN: past the entry stop */
	bool strayed;		/* the registers are the task's own after all */
	bool closing;		/* REWRITTEN: inside the call that closes */
	int64_t result;		/*   with that of the call before */
	bool called;
	uint64_t call_id;
	struct sv_regs parked;	/* as they were */
	uint64_t site;
	uint64_t mask;
	int now_nr;		/* the call that was put in place */
	uint64_t now_args[SV_ARGS];
	struct sv_area area;
	struct sv_hashing *hashing;
};

struct sv_exec_seen {
	uint8_t argv[4096];
	size_t n;
};

/* exec_verify.c: at the exec stop of process tgid. NULL = as judged, else why
 * not. seen is filled as far as it could be read. */
const char *sv_exec_verify(const struct sv_exec_plan *plan, pid_t tgid,
			   const struct sv_tracer_ops *ops, void *ctx, struct sv_exec_seen *seen);
/* The judged image of tgid, open for reading, while nobody can write to it. */
const char *sv_exec_open_image(const struct sv_exec_plan *plan, pid_t tgid, int *fd);

#endif
