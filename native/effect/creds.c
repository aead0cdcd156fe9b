/* creds.c - per-thread file-system identity: groups, fsgid, fsuid, capabilities. */
#include "effect/creds.h"

#include "base/err.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sv_creds own;
static struct __user_cap_data_struct own_caps[2];
/* Groups need a capability of their own to be set, so only where they differ. */
static _Thread_local bool other_groups;
static _Thread_local bool other_ids;

static int get_caps(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &h, data) < 0 ? -errno : 0;
}

static int set_effective(uint64_t caps)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	memcpy(data, own_caps, sizeof(data));
	data[0].effective = (uint32_t)caps & data[0].permitted;
	data[1].effective = (uint32_t)(caps >> 32) & data[1].permitted;
	return syscall(SYS_capset, &h, data) < 0 ? -errno : 0;
}

int sv_creds_init(struct sv_err *err)
{
	int n = getgroups((int)(sizeof(own.groups) / sizeof(own.groups[0])), own.groups);

	if (get_caps(own_caps) < 0)
		return sv_fail(err, errno, "capabilities", "capget failed");
	own.caps = own_caps[0].effective | (uint64_t)own_caps[1].effective << 32;
	own.fsuid = own.euid = geteuid();
	own.fsgid = own.egid = getegid();
	own.ngroups = n;	/* -1: more than we compare, so never equal */
	return 0;
}

bool sv_creds_privileged(void)
{
	return own.caps != 0;
}

bool sv_creds_blind(void)
{
	return own.caps && !(own.caps & 1ULL << CAP_SYS_PTRACE);
}

static bool same_groups(const struct sv_creds *c)
{
	return c->ngroups == own.ngroups &&
	       !memcmp(c->groups, own.groups, (size_t)c->ngroups * sizeof(gid_t));
}

/* setfsuid and setfsgid return the old value: asking again is the check. */
static bool set_fsids(uid_t uid, gid_t gid)
{
	syscall(SYS_setfsgid, gid);
	syscall(SYS_setfsuid, uid);
	return (gid_t)syscall(SYS_setfsgid, -1) == gid && (uid_t)syscall(SYS_setfsuid, -1) == uid;
}

/* Moves the fs ids along, and takes capabilities away where it leaves root. */
static int set_effective_ids(uid_t uid, gid_t gid)
{
	return syscall(SYS_setresgid, -1, gid, -1) < 0 || syscall(SYS_setresuid, -1, uid, -1) < 0 ||
		       set_effective(own.caps) < 0 ? -EPERM : 0;
}

static int enter(const struct sv_creds *c, bool whole, bool *switched)
{
	*switched = false;
	if (c->fsuid == own.fsuid && c->fsgid == own.fsgid && c->caps == own.caps &&
	    same_groups(c) && (!whole || (c->euid == own.euid && c->egid == own.egid)))
		return 0;
	if (!own.caps)
		return -EPERM;
	*switched = true;
	if (!same_groups(c)) {
		if (syscall(SYS_setgroups, c->ngroups, c->groups) < 0)
			return -errno;
		other_groups = true;
	}
	if (whole) {
		other_ids = true;
		if (set_effective_ids(c->euid, c->egid) < 0)
			return -EPERM;
	}
	if (!set_fsids(c->fsuid, c->fsgid))
		return -EPERM;
	/* after setfsuid, which itself moves capabilities in and out */
	return set_effective(c->caps);
}

int sv_creds_enter(const struct sv_creds *c, bool *switched)
{
	return enter(c, false, switched);
}

int sv_creds_enter_whole(const struct sv_creds *c, bool *switched)
{
	return enter(c, true, switched);
}

int sv_creds_bare(void)
{
	return set_effective(0);
}

void sv_creds_leave(void)
{
	if (set_effective(own.caps) < 0 ||
	    (other_ids && set_effective_ids(own.euid, own.egid) < 0) ||
	    !set_fsids(own.fsuid, own.fsgid) ||
	    (other_groups &&
	     syscall(SYS_setgroups, own.ngroups < 0 ? 0 : own.ngroups, own.groups) < 0) ||
	    set_effective(own.caps) < 0)
		abort();
	other_groups = other_ids = false;
}
