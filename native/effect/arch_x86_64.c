/* arch_x86_64.c - orig_rax is the call, rax its result, and the kernel restarts
 * a call by moving rip back over the two bytes of `syscall`, on its way out. */
#if defined(__x86_64__)
#include "effect/arch.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum { SYSCALL_BYTES = 2, USER_CS = 0x33 };

int sv_regs_get(pid_t tid, struct sv_regs *out)
{
	struct iovec v = { &out->r, sizeof(out->r) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &v) < 0)
		return -errno;
	if (v.iov_len != sizeof(out->r) || out->r.cs != USER_CS)
		return -EINVAL;
	return 0;
}

int sv_regs_set(pid_t tid, const struct sv_regs *regs)
{
	struct sv_regs copy = *regs;
	struct iovec v = { &copy.r, sizeof(copy.r) };

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &v) < 0 ? -errno : 0;
}

static bool same_args(const struct user_regs_struct *r, const uint64_t args[SV_ARGS])
{
	return r->rdi == args[0] && r->rsi == args[1] && r->rdx == args[2] &&
	       r->r10 == args[3] && r->r8 == args[4] && r->r9 == args[5];
}

static void put_args(struct user_regs_struct *r, const uint64_t args[SV_ARGS])
{
	r->rdi = args[0];
	r->rsi = args[1];
	r->rdx = args[2];
	r->r10 = args[3];
	r->r8 = args[4];
	r->r9 = args[5];
}

bool sv_regs_parked(const struct sv_regs *regs, int nr, const uint64_t args[SV_ARGS])
{
	int64_t res = (int64_t)regs->r.rax;

	/* ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND */
	return regs->r.orig_rax == (unsigned int)nr && res >= -514 && res <= -512 &&
	       same_args(&regs->r, args);
}

uint64_t sv_regs_site(const struct sv_regs *regs)
{
	return regs->r.rip - SYSCALL_BYTES;
}

void sv_regs_issue(struct sv_regs *regs, uint64_t site, int nr, const uint64_t args[SV_ARGS])
{
	put_args(&regs->r, args);
	regs->r.rip = site;
	regs->r.rax = (unsigned int)nr;
	regs->r.orig_rax = UINT64_MAX;	/* no call is under way: nothing to restart */
}

int64_t sv_regs_result(const struct sv_regs *regs)
{
	return (int64_t)regs->r.rax;
}

void sv_regs_finish(struct sv_regs *regs, int64_t result)
{
	regs->r.rax = (uint64_t)result;
}

void sv_regs_disguise(struct sv_regs *regs, int nr, const uint64_t args[SV_ARGS])
{
	put_args(&regs->r, args);
	regs->r.orig_rax = (unsigned int)nr;
}
#else
typedef int sv_arch_x86_64_unused;
#endif
