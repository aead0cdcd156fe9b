/* arch.h - what a stopped task's registers mean on this machine.
 *
 * Every function works on a copy; only sv_regs_get and sv_regs_set touch the
 * task, which must be in a ptrace stop of the calling thread. A task that runs
 * in a foreign mode (32-bit) is refused with -EINVAL by sv_regs_get. */
#ifndef SV_EFFECT_ARCH_H
#define SV_EFFECT_ARCH_H

#include "model.h"

#if defined(__x86_64__)
#include <sys/user.h>
struct sv_regs {
	struct user_regs_struct r;
};
/* Where a scratch mapping may lie: away from the places of programs, heaps and
 * libraries, and of the sanitizers' shadows. */
#define SV_SCRATCH_LOW ((uint64_t)1 << 45)
#define SV_SCRATCH_SPAN ((uint64_t)1 << 44)
#elif defined(__aarch64__)
#include <asm/ptrace.h>
struct sv_regs {
	struct user_pt_regs r;
};
/* As above, and inside the 39-bit address space of some kernels. */
#define SV_SCRATCH_LOW ((uint64_t)1 << 37)
#define SV_SCRATCH_SPAN ((uint64_t)1 << 36)
#else
#error "no registers are known for this machine"
#endif

/* The kernel's code for "run the call again, always": no program sees it. */
enum { SV_ERESTARTNOINTR = 513 };

int sv_regs_get(pid_t tid, struct sv_regs *out);
int sv_regs_set(pid_t tid, const struct sv_regs *regs);

/* The task stopped on its way back from exactly this call, and the kernel is
 * about to make it issue the call again. */
bool sv_regs_parked(const struct sv_regs *regs, int nr, const uint64_t args[SV_ARGS]);

/* Of parked registers: the address of the instruction that makes the call. */
uint64_t sv_regs_site(const struct sv_regs *regs);

/* Make the task issue this call, at that instruction, when it goes on. */
void sv_regs_issue(struct sv_regs *regs, uint64_t site, int nr, const uint64_t args[SV_ARGS]);

/* What the call returned (in a stop after it). */
int64_t sv_regs_result(const struct sv_regs *regs);

/* From parked registers: the same task just after that call returned result. */
void sv_regs_finish(struct sv_regs *regs, int64_t result);

/* Put the call's number and arguments back but keep the result it returned:
 * programs count on their argument registers surviving a call. */
void sv_regs_disguise(struct sv_regs *regs, int nr, const uint64_t args[SV_ARGS]);

#endif
