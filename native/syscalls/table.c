/* table.c - table.def made into rows, and the filter's argument tests. */
#include "syscalls/table.h"

#include "facility.h"
#include "syscalls/nr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LANDLOCK_ABI_SCOPES = 6, NR_MAX = 512 };

/* ROLES(...) takes one to six roles; the rest is SV_ROLE_NONE. */
#define R1(a) { SV_ROLE_##a }
#define R2(a, b) { SV_ROLE_##a, SV_ROLE_##b }
#define R3(a, b, c) { SV_ROLE_##a, SV_ROLE_##b, SV_ROLE_##c }
#define R4(a, b, c, d) { SV_ROLE_##a, SV_ROLE_##b, SV_ROLE_##c, SV_ROLE_##d }
#define R5(a, b, c, d, e) { SV_ROLE_##a, SV_ROLE_##b, SV_ROLE_##c, SV_ROLE_##d, SV_ROLE_##e }
#define R6(a, b, c, d, e, f) \
	{ SV_ROLE_##a, SV_ROLE_##b, SV_ROLE_##c, SV_ROLE_##d, SV_ROLE_##e, SV_ROLE_##f }
#define PICK(_1, _2, _3, _4, _5, _6, m, ...) m
#define ROLES(...) PICK(__VA_ARGS__, R6, R5, R4, R3, R2, R1, 0)(__VA_ARGS__)

#define A(n) { __NR_##n, #n, "", SV_CLASS_ALLOW, SV_HOW_none, 0, 0, { 0 } },
#define N(n, why) { __NR_##n, #n, why, SV_CLASS_ALLOW, SV_HOW_none, 0, 0, { 0 } },
#define X(n, e, why) { __NR_##n, #n, why, SV_CLASS_ABSENT, SV_HOW_none, e, 0, { 0 } },
#define R(n, e, why) { __NR_##n, #n, why, SV_CLASS_VERIFY, SV_HOW_refuse, e, 0, { 0 } },
#define S(n, why) { __NR_##n, #n, why, SV_CLASS_SIGNAL, SV_HOW_signal, 0, 0, { SV_ROLE_PID } },
#define L(n, why) { __NR_##n, #n, why, SV_CLASS_ALLOW, SV_HOW_domain, 0, 0, { 0 } },
#define T(n, h, r, why) { __NR_##n, #n, why, SV_CLASS_ALLOW, SV_HOW_##h, 0, 0, r },
#define V(n, h, r, why) { __NR_##n, #n, why, SV_CLASS_VERIFY, SV_HOW_##h, 0, 0, r },
#define H(n, h, p, r) { __NR_##n, #n, "", SV_CLASS_LOOK, SV_HOW_##h, 0, p, r },
#define M(n, h, r, why) { __NR_##n, #n, why, SV_CLASS_NET, SV_HOW_##h, 0, 0, r },
#define B(n, h, p, r, why) { __NR_##n, #n, why, SV_CLASS_BROKER, SV_HOW_##h, 0, p, r },

static const struct sv_syscall rows[] = {
#include "syscalls/table.def"
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

#define BIT_TOLD(n, a, bit) { __NR_##n, a, bit, bit, SV_CLASS_VERIFY, 0 }
#define NAMESPACES(n) \
	BIT_TOLD(n, 0, CLONE_NEWNS), BIT_TOLD(n, 0, CLONE_NEWCGROUP), \
	BIT_TOLD(n, 0, CLONE_NEWUTS), BIT_TOLD(n, 0, CLONE_NEWIPC), \
	BIT_TOLD(n, 0, CLONE_NEWUSER), BIT_TOLD(n, 0, CLONE_NEWPID), \
	BIT_TOLD(n, 0, CLONE_NEWNET)
#define WORD 0xffffffffULL
#define IOCTL_TOLD(cmd) { __NR_ioctl, 1, WORD, cmd, SV_CLASS_VERIFY, 0 }
/* Within a group (bits 8 to 15): where these other bits have this value. */
#define IOCTL_GROUP(type, mask, value) \
	{ __NR_ioctl, 1, 0xff00 | (mask), (uint64_t)(type) << 8 | (value), SV_CLASS_VERIFY, 0 }
#define PRCTL_IS(opt, k, e) { __NR_prctl, 0, WORD, opt, k, e }
#define SELF_ALLOWED(n) { __NR_##n, 0, WORD, 0, SV_CLASS_ALLOW, 0 }

/* Masks look at the low 32 bits of int arguments only: the kernel drops the
 * rest, and a comparison of all 64 was another product's bypass. */
static const struct sv_when whens[] = {
	/* an O_PATH descriptor carries no right and cannot be injected */
	{ __NR_open, 1, O_PATH, O_PATH, SV_CLASS_ALLOW, 0 },
	{ __NR_openat, 2, O_PATH, O_PATH, SV_CLASS_ALLOW, 0 },
	/* PTRACE_TRACEME: the parent may stand outside the tree; ATTACH and SEIZE wait for
	 * an exec that is being looked at. The kernel compares all 64 bits, and so do we */
	{ __NR_ptrace, 0, WORD, PTRACE_TRACEME, SV_CLASS_VERIFY, 0 },
	{ __NR_ptrace, 0, WORD, PTRACE_ATTACH, SV_CLASS_VERIFY, 0 },
	{ __NR_ptrace, 0, WORD, PTRACE_SEIZE, SV_CLASS_VERIFY, 0 },
	/* F_SETOWN, F_SETOWN_EX: whoever gets a descriptor's signals */
	{ __NR_fcntl, 1, WORD, F_SETOWN, SV_CLASS_SIGNAL, 0 },
	{ __NR_fcntl, 1, WORD, F_SETOWN_EX, SV_CLASS_SIGNAL, 0 },
	/* sendto(2) without an address */
	{ __NR_sendto, 4, ~0ULL, 0, SV_CLASS_ALLOW, 0 },
	/* data that opens a connection by itself */
	{ __NR_sendto, 3, MSG_FASTOPEN, MSG_FASTOPEN, SV_CLASS_ABSENT, EOPNOTSUPP },
	{ __NR_sendmsg, 2, MSG_FASTOPEN, MSG_FASTOPEN, SV_CLASS_ABSENT, EOPNOTSUPP },
	{ __NR_sendmmsg, 3, MSG_FASTOPEN, MSG_FASTOPEN, SV_CLASS_ABSENT, EOPNOTSUPP },
	/* TIOCSCTTY with its argument: takes a terminal from another session */
	IOCTL_TOLD(0x540e),
	/* IP_OPTIONS, IPV6_RTHDR, IPV6_2292PKTOPTIONS and IPV6_FLOWLABEL_MGR: the way that
	 * packets take, round what was decided */
	{ __NR_setsockopt, 2, WORD, 4, SV_CLASS_BROKER, 0 },
	{ __NR_setsockopt, 2, WORD, 57, SV_CLASS_BROKER, 0 },
	{ __NR_setsockopt, 2, WORD, 6, SV_CLASS_BROKER, 0 },
	{ __NR_setsockopt, 2, WORD, 32, SV_CLASS_BROKER, 0 },
	/* options from 64 on: of IP and IPv6 those are the packet filter's */
	{ __NR_setsockopt, 2, 0xfffffffeULL, 64, SV_CLASS_BROKER, 0 },
	{ __NR_setsockopt, 2, 0xffffffe0ULL, 96, SV_CLASS_BROKER, 0 },
	{ __NR_setsockopt, 2, 0xffffff80ULL, 128, SV_CLASS_BROKER, 0 },
	/* IPVS: IP_VS_BASE_CTL is 1152 */
	{ __NR_setsockopt, 2, 0xfffffc00ULL, 1024, SV_CLASS_BROKER, 0 },
	/* RLIMIT_MSGQUEUE: where a policy has blocks, it says in which a process is. Two
	 * bits, so 13 to 15 come along: each bit makes the filter longer */
	{ __NR_prlimit64, 1, RLIMIT_MSGQUEUE, RLIMIT_MSGQUEUE, SV_CLASS_VERIFY, 0 },
	{ __NR_setrlimit, 0, RLIMIT_MSGQUEUE, RLIMIT_MSGQUEUE, SV_CLASS_VERIFY, 0 },
	/* pid 0 is the caller itself */
	SELF_ALLOWED(prlimit64), SELF_ALLOWED(sched_setaffinity), SELF_ALLOWED(sched_setscheduler),
	SELF_ALLOWED(sched_setparam), SELF_ALLOWED(sched_setattr), SELF_ALLOWED(move_pages),
	SELF_ALLOWED(migrate_pages),
	NAMESPACES(clone), NAMESPACES(unshare),
	/* a process with its parent's descriptors */
	{ __NR_clone, 0, CLONE_FILES | CLONE_THREAD, CLONE_FILES, SV_CLASS_VERIFY, 0 }, BIT_TOLD(unshare, 0, 0x80 /* CLONE_NEWTIME */),
	/* Inodes, volumes and whole file systems are changed by calls that need no write
	 * access, and each file system has its own, so their groups go as a whole.
	 * 'f' (FS_IOC_SETFLAGS, ext4): what only reads says so in its top bit, and stays */
	IOCTL_GROUP(0x66, 1ULL << 31, 0),
	/* 'X' (FIFREEZE, FS_IOC_SHUTDOWN, FS_IOC_FSSETXATTR, xfs): number 31 reads, and stays */
	IOCTL_GROUP(0x58, 0x80, 0x80), IOCTL_GROUP(0x58, 0x40, 0x40), IOCTL_GROUP(0x58, 0x20, 0x20),
	IOCTL_GROUP(0x58, 0x10, 0), IOCTL_GROUP(0x58, 8, 0), IOCTL_GROUP(0x58, 4, 0),
	IOCTL_GROUP(0x58, 2, 0), IOCTL_GROUP(0x58, 1, 0),
	/* btrfs: numbers 9, 13 and 54 (FICLONE, FICLONERANGE, FIDEDUPERANGE) stay */
	IOCTL_GROUP(0x94, 0x80, 0x80), IOCTL_GROUP(0x94, 0x40, 0x40), IOCTL_GROUP(0x94, 0x30, 0x10),
	IOCTL_GROUP(0x94, 0x30, 0x20), IOCTL_GROUP(0x94, 0x28, 0), IOCTL_GROUP(0x94, 0x22, 2),
	IOCTL_GROUP(0x94, 0x21, 0), IOCTL_GROUP(0x94, 0x28, 0x28), IOCTL_GROUP(0x94, 0x24, 0x20),
	IOCTL_GROUP(0x94, 0x22, 0x20), IOCTL_GROUP(0x94, 0x21, 0x21),
	/* typing into the terminal: TIOCSTI TIOCLINUX TIOCCONS TIOCSETD */
	IOCTL_TOLD(0x5412), IOCTL_TOLD(0x541c), IOCTL_TOLD(0x541d),
	IOCTL_TOLD(0x5423),
	/* FS_IOC_SETVERSION (both widths), FS_IOC_SET_ENCRYPTION_POLICY, ADD REMOVE
	 * REMOVE_ALL_USERS of encryption keys, FAT_IOCTL_SET_ATTRIBUTES: no write access
	 * needed either; TIOCVHANGUP */
	IOCTL_TOLD(0x40087602), IOCTL_TOLD(0x40047602),
	IOCTL_TOLD(0x800c6613), IOCTL_TOLD(0xc0506617),
	IOCTL_TOLD(0xc0406618), IOCTL_TOLD(0xc0406619),
	IOCTL_TOLD(0x40047211), IOCTL_TOLD(0x5437),
	/* SIOC*: network interfaces */
	{ __NR_ioctl, 1, 0xffffff00ULL, 0x8900, SV_CLASS_VERIFY, 0 },
	/* the same of wireless ones */
	{ __NR_ioctl, 1, 0xffffff00ULL, 0x8b00, SV_CLASS_VERIFY, 0 },
	/* a target that hid its memory could not be supervised: said to have
	 * worked, as programs that ask for it give up otherwise */
	PRCTL_IS(PR_SET_DUMPABLE, SV_CLASS_ABSENT, 0),
	PRCTL_IS(PR_SET_MM, SV_CLASS_ABSENT, EPERM),
	/* both only ever take capabilities away from the tree */
	PRCTL_IS(PR_CAPBSET_DROP, SV_CLASS_ABSENT, EPERM),
	PRCTL_IS(PR_SET_SECUREBITS, SV_CLASS_ABSENT, EPERM),
};

enum { WHENS = sizeof(whens) / sizeof(whens[0]) };

static int16_t index_of[NR_MAX];
static bool ready;
static bool scoped;	/* the kernel offers Landlock scopes */
static bool domains;	/* the kernel offers Landlock, which bounds ptrace and its like */
static bool no_landlock;	/* but this run does without Landlock */

void sv_table_init(void)
{
	int i;

	if (ready)
		return;
	for (i = 0; i < NR_MAX; i++)
		index_of[i] = -1;
	for (i = 0; i < ROWS; i++)
		if (rows[i].nr >= 0 && rows[i].nr < NR_MAX)
			index_of[rows[i].nr] = (int16_t)i;
#ifdef SYS_landlock_create_ruleset
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	domains = abi >= 1;
	scoped = abi >= LANDLOCK_ABI_SCOPES;
#endif
	ready = true;
}

const struct sv_syscall *sv_table_find(int nr)
{
	if (nr < 0 || nr >= NR_MAX || index_of[nr] < 0)
		return NULL;
	return &rows[index_of[nr]];
}

/* The class in force here: signals need a notification where the kernel has no
 * Landlock scope to bound them, and a process may be looked into only where a
 * domain keeps that inside the tree. */
static enum sv_class effective(const struct sv_syscall *row)
{
	if (row->how == SV_HOW_signal && (!scoped || no_landlock))
		return row->nr == __NR_pidfd_send_signal ? SV_CLASS_ABSENT : SV_CLASS_VERIFY;
	if ((row->how == SV_HOW_domain || row->how == SV_HOW_memory || row->how == SV_HOW_ptrace) &&
	    (!domains || no_landlock))
		return SV_CLASS_ABSENT;
	return row->klass;
}

int sv_row(int i, struct sv_row *out)
{
	const struct sv_syscall *row;

	sv_table_init();
	if (i < 0 || i >= ROWS)
		return -ENOENT;
	row = &rows[i];
	memset(out, 0, sizeof(*out));
	out->nr = row->nr;
	out->klass = (int32_t)effective(row);
	out->err = out->klass == SV_CLASS_ABSENT && !row->err ? EPERM : row->err;
	snprintf(out->name, sizeof(out->name), "%s", row->name);
	snprintf(out->note, sizeof(out->note), "%s", row->note);
	return 0;
}

int sv_assume(int64_t waived)
{
	sv_table_init();
	if (waived >= 0)
		no_landlock = waived & 1LL << SV_FACILITY_LANDLOCK;
	return no_landlock ? 0 : domains | scoped << 1;
}

int sv_row_of(int nr)
{
	sv_table_init();
	return nr < 0 || nr >= NR_MAX || index_of[nr] < 0 ? -ENOENT : index_of[nr];
}

int sv_when(int i, struct sv_when *out)
{
	if (i < 0 || i >= WHENS)
		return -ENOENT;
	*out = whens[i];
	return 0;
}
