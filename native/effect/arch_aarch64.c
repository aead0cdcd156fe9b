/* arch_aarch64.c - x8 is the call, x0 its first argument and its result. The
 * kernel prepares a restart (pc back on `svc`, x0 put back) before the stop, so
 * parked registers already are the ones from before the call. */
#if defined(__aarch64__)
#include "effect/arch.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum { SVC_BYTES = 4, NR_REG = 8 };

int sv_regs_get(pid_t tid, struct sv_regs *out)
{
	struct iovec v = { &out->r, sizeof(out->r) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &v) < 0)
		return -errno;
	return v.iov_len == sizeof(out->r) ? 0 : -EINVAL;
}

int sv_regs_set(pid_t tid, const struct sv_regs *regs)
{
	struct sv_regs copy = *regs;
	struct iovec v = { &copy.r, sizeof(copy.r) };

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &v) < 0 ? -errno : 0;
}

bool sv_regs_parked(const struct sv_regs *regs, int nr, const uint64_t args[SV_ARGS])
{
	if (regs->r.regs[NR_REG] != (unsigned int)nr)
		return false;
	for (int i = 0; i < SV_ARGS; i++)
		if (regs->r.regs[i] != args[i])
			return false;
	return true;
}

uint64_t sv_regs_site(const struct sv_regs *regs)
{
	return regs->r.pc;
}

void sv_regs_issue(struct sv_regs *regs, uint64_t site, int nr, const uint64_t args[SV_ARGS])
{
	for (int i = 0; i < SV_ARGS; i++)
		regs->r.regs[i] = args[i];
	regs->r.regs[NR_REG] = (unsigned int)nr;
	regs->r.pc = site;
}

int64_t sv_regs_result(const struct sv_regs *regs)
{
	return (int64_t)regs->r.regs[0];
}

void sv_regs_finish(struct sv_regs *regs, int64_t result)
{
	regs->r.regs[0] = (uint64_t)result;
	regs->r.pc += SVC_BYTES;
}

void sv_regs_disguise(struct sv_regs *regs, int nr, const uint64_t args[SV_ARGS])
{
	/* x0 holds the result. Were it a restart, the kernel would put back the
	 * x0 of the rewritten call, so a rewrite should keep args[0]. */
	for (int i = 1; i < SV_ARGS; i++)
		regs->r.regs[i] = args[i];
	regs->r.regs[NR_REG] = (unsigned int)nr;
}
#else
typedef int sv_arch_aarch64_unused;
#endif
