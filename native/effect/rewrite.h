/* rewrite.h - new registers and new strings for a task in a ptrace stop.
 *
 * Strings never go on the caller's stack: below the stack pointer of a vfork
 * child may lie frames of its parent (musl's posix_spawn), and below a
 * goroutine's may lie another one's heap, both in use. They go into a small
 * scratch mapping at one address per session, made by a mmap that the task is
 * made to call. It stays: an exec drops it with the old memory, and where a
 * vfork child put it into its parent's memory, where nobody could unmap it any
 * more, the next steered exec finds it (by a cookie) and uses it again, as do
 * fork children. So a process gains at most one mapping of each size class;
 * only when a class's one address is taken does the kernel choose another.
 *
 * The target can write to these strings as to all of its memory. Nothing
 * trusts them: the exec stop decides.
 *
 * All functions: tracer thread only, task stopped. 0 or a negative errno. */
#ifndef SV_EFFECT_REWRITE_H
#define SV_EFFECT_REWRITE_H

#include "model.h"

struct sv_task;

enum { SV_AREA_CLASSES = 2, SV_AREA_COOKIE = 16 };

struct sv_areas {
	uint64_t base[SV_AREA_CLASSES];
	uint32_t busy[SV_AREA_CLASSES];	/* bit per slot, over all processes */
	uint8_t cookie[SV_AREA_COOKIE];
};

/* A place for strings: a slot of the scratch mapping, or one of its own. */
struct sv_area {
	uint64_t addr;
	uint64_t map;		/* what to map; 0 = where the kernel likes */
	size_t map_len;
	int klass;		/* -1 = its own mapping, -2 = none */
	unsigned int slot;
};

/* Memory of a stopped task; a short count becomes -EFAULT for poke. */
ssize_t sv_peek(pid_t tid, uint64_t addr, void *buf, size_t n);
int sv_poke(pid_t tid, uint64_t addr, const void *buf, size_t n);

int sv_areas_init(struct sv_areas *a);
void sv_areas_give(struct sv_areas *a, struct sv_area *area);

/* The stop after the call was told to restart: remember its registers, hold its
 * signals back. -EAGAIN: not in that call; nothing was changed. */
int sv_rewrite_park(struct sv_task *task);

/* Make the parked task issue this call when it goes on. */
int sv_rewrite_regs(struct sv_task *task, int nr, const uint64_t args[SV_ARGS]);

/* Steer, one step: 1 = the strings and the new execve are in place; 0 = the
 * task must first run the injected call (to its exit stop, then sv_steer_mapped). */
int sv_steer_place(struct sv_task *task, struct sv_areas *a);
int sv_steer_mapped(struct sv_task *task, struct sv_areas *a);

/* Give the task its own registers and signals back, as if the original call
 * returned result, or (again) as if it were about to make it. */
int sv_rewrite_undo(struct sv_task *task, bool again, int64_t result);

/* Signals only: after a successful exec, or inside a rewritten call. */
int sv_rewrite_unmask(struct sv_task *task);

/* At the exit stop of a rewritten call: its result, the old argument registers. */
int sv_rewrite_disguise(struct sv_task *task);

#endif
