/* look_stat.c - stat, statx, access, statfs of pinned objects. */
#include "broker/look.h"

#include "decode/lexical.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "syscalls/nr.h"

enum { SYNC_TYPE = 0x6000, SV_AT_NO_AUTOMOUNT = 0x800 };
enum { STAT_FLAGS = AT_SYMLINK_NOFOLLOW | SV_AT_NO_AUTOMOUNT | AT_EMPTY_PATH | SYNC_TYPE };

/* Of a descriptor alone the kernel does not look at flags that it does not know. */
static bool bad_flags(const struct sv_work *w, uint64_t known)
{
	const struct sv_pathname *name = &w->in.name[0];

	if (sv_names_start(name, w->in.flags) && name->dirfd >= 0)
		return false;
	return w->in.flags & ~known;
}

void sv_do_stat(struct sv_work *w)
{
	if (bad_flags(w, STAT_FLAGS))
		return sv_look_fail(w, EINVAL);
	if (!sv_look_pin(w, false))
		return;
	/* read through the pin when it was made, by the kernel's own call */
	sv_look_give(w, &w->place[0].st, sizeof(w->place[0].st), 0);
}

void sv_do_statx(struct sv_work *w)
{
	const uint32_t mask = (uint32_t)w->in.which;
	struct statx buf;

	if (mask & STATX__RESERVED || (w->in.flags & SYNC_TYPE) == SYNC_TYPE ||
	    bad_flags(w, STAT_FLAGS))
		return sv_look_fail(w, EINVAL);
	if (!sv_look_pin(w, false))
		return;
	memset(&buf, 0, sizeof(buf));
	if (syscall(SYS_statx, w->place[0].fd, "", (w->in.flags & SYNC_TYPE) | AT_EMPTY_PATH, mask,
		    &buf) < 0)
		return sv_look_fail(w, errno);
	sv_look_give(w, &buf, sizeof(buf), 0);
}

/* In these two folders of its own a process may do all, whatever the mode says. */
static bool is_own_folder(const struct sv_work *w)
{
	const struct sv_place *p = &w->place[0];
	char own[32];
	pid_t tgid;
	int n;

	if (p->st.st_dev != w->paths.proc_dev || sv_tracee_tgid(&w->t, &tgid) < 0)
		return false;
	n = snprintf(own, sizeof(own), "/proc/%d/", (int)tgid);
	return !strncmp(p->path, own, (size_t)n) &&
	       (!strcmp(p->path + n, "fd") || !strcmp(p->path + n, "map_files"));
}

/* The dispatcher took on the real identity, where that is another one than ours. */
void sv_do_access(struct sv_work *w)
{
	const int mode = w->in.which;
	const bool as_we_are = w->switched || w->in.flags & AT_EACCESS;

	if (mode & ~(R_OK | W_OK | X_OK) ||
	    w->in.flags & ~(uint64_t)(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return sv_look_fail(w, EINVAL);
	if (!sv_look_pin(w, false))
		return;
	if (syscall(SYS_faccessat2, w->place[0].fd, "", mode,
		    AT_EMPTY_PATH | (as_we_are ? AT_EACCESS : 0)) < 0 &&
	    (errno != EACCES || !is_own_folder(w)))
		return sv_look_fail(w, errno);
	sv_look_give(w, NULL, 0, 0);
}

void sv_do_statfs(struct sv_work *w)
{
	struct statfs buf;

	if (!sv_look_pin(w, false))
		return;
	if (syscall(SYS_fstatfs, w->place[0].fd, &buf) < 0)
		return sv_look_fail(w, errno);
	sv_look_give(w, &buf, sizeof(buf), 0);
}
