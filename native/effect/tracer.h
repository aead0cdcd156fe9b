/* tracer.h - the tracer's own state; private to exec.c (thread, inbox, public
 * calls), exec_start.c (how a call is taken), exec_step.c (what its stops mean) and
 * exec_hash.c (the digest of a program). */
#ifndef SV_EFFECT_TRACER_H
#define SV_EFFECT_TRACER_H

#include "effect/task.h"

#include <pthread.h>
#include <stdatomic.h>

struct sv_tracer {
	int listener;
	int wake;		/* eventfd: plans, returned calls, stop */
	int sigchld;
	bool killable;
	const struct sv_tracer_ops *ops;
	void *ctx;
	pthread_t thread;
	pthread_mutex_t lock;	/* guards inbox, stop and the tasks' called, call_id */
	struct sv_task *inbox;	/* newest first */
	bool stop;
	atomic_int returning;	/* tasks in SV_TASK_RETURNING */
	/* The tracer thread changes this list under the lock and reads it without. */
	struct sv_task *tasks;
	struct sv_task *ready;	/* waited for another exec of their process; tracer thread */
	bool unseen;		/* an exec went on in a debugger's hand; tracer thread */
	struct sv_areas areas;
	struct sv_hashing *hashed;	/* finished ones; guarded by the lock, as is hashers */
	int hashers;
	pthread_cond_t idle;		/* a hasher ended */
	atomic_bool hash_stop;
};

/* A program being read on a thread of its own. */
struct sv_hashing {
	struct sv_hashing *next;
	struct sv_tracer *t;
	struct sv_task *task;	/* tracer thread only; NULL = it died meanwhile */
	int fd;
	uint8_t want[32];
	char why[256];		/* when finished: empty = the right bytes */
	struct sv_exec_seen seen;
};

/* exec.c: wakes the tracer thread. Any thread. */
void sv_tracer_ring(struct sv_tracer *t);

/* exec_start.c: all on the tracer thread. */
int sv_task_answer(struct sv_tracer *t, uint64_t id, int error, uint32_t flags);
void sv_task_state_set(struct sv_tracer *t, struct sv_task *task, enum sv_task_state to);
struct sv_task *sv_task_find(struct sv_tracer *t, pid_t tid);
/* The one of this process that is in hand; there is at most one. */
struct sv_task *sv_task_of(struct sv_tracer *t, pid_t tgid);
/* Whether it ended, and no status will tell. */
bool sv_task_vanished(const struct sv_task *task);
void sv_task_report(struct sv_tracer *t, struct sv_task *task, enum sv_exec_outcome outcome,
		    int err, const char *why);
void sv_task_drop(struct sv_tracer *t, struct sv_task *task);
/* Keep a plan that is not begun. */
void sv_task_queue(struct sv_tracer *t, struct sv_task *task);
void sv_step_start(struct sv_tracer *t, struct sv_task *task);
void sv_step_called(struct sv_tracer *t, struct sv_task *task);

/* exec_step.c: all on the tracer thread. */
void sv_step_status(struct sv_tracer *t, pid_t pid, int status);
void sv_step_hashed(struct sv_tracer *t, const struct sv_hashing *h);
void sv_step_stop(struct sv_tracer *t);

/* exec_hash.c: all on the tracer thread. NULL, or why it cannot be read. */
const char *sv_hash_begin(struct sv_tracer *t, struct sv_task *task, const struct sv_exec_seen *seen);
/* A finished one, the caller's to free, or NULL. */
struct sv_hashing *sv_hash_next(struct sv_tracer *t);
/* The task goes; what is being read for it is read for nothing. */
void sv_hash_forget(struct sv_task *task);
/* Waits for all of them. */
void sv_hash_end(struct sv_tracer *t);

#endif
