/* roles.c - walks a row's argument roles. */
#include "decode/roles.h"

#include "decode/openhow.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/time.h>
#include <utime.h>

static int read_name(const struct sv_tracee *t, uint64_t addr, struct sv_pathname *name)
{
	int n = sv_read_str(t, addr, name->text, sizeof(name->text));

	if (n < 0)
		return n;
	name->len = n;
	return 0;
}

static int read_name_or_null(const struct sv_tracee *t, uint64_t addr, struct sv_pathname *name)
{
	if (addr)
		return read_name(t, addr, name);
	name->null = true;
	return 0;
}

static int read_text(const struct sv_tracee *t, uint64_t addr, struct sv_subject *out)
{
	int n = sv_read_str(t, addr, out->symlink, sizeof(out->symlink));

	return n < 0 ? n : 0;
}

static int read_utimbuf(const struct sv_tracee *t, uint64_t addr, struct sv_subject *out)
{
	struct utimbuf b;
	int rc = sv_read_mem(t, addr, &b, sizeof(b));

	if (rc < 0)
		return rc;
	out->times[0] = (struct timespec){ .tv_sec = b.actime };
	out->times[1] = (struct timespec){ .tv_sec = b.modtime };
	return 0;
}

static int read_timeval(const struct sv_tracee *t, uint64_t addr, struct sv_subject *out)
{
	struct timeval tv[2];
	int rc = sv_read_mem(t, addr, tv, sizeof(tv));
	int i;

	if (rc < 0)
		return rc;
	for (i = 0; i < 2; i++) {
		if (tv[i].tv_usec < 0 || tv[i].tv_usec >= 1000000)
			return -EINVAL;
		out->times[i].tv_sec = tv[i].tv_sec;
		out->times[i].tv_nsec = tv[i].tv_usec * 1000;
	}
	return 0;
}

static int read_times(const struct sv_tracee *t, uint64_t addr, enum sv_role role,
		      struct sv_subject *out)
{
	if (!addr) {
		out->times_null = true;
		return 0;
	}
	if (role == SV_ROLE_TIMES_UTIMBUF)
		return read_utimbuf(t, addr, out);
	if (role == SV_ROLE_TIMES_TIMEVAL)
		return read_timeval(t, addr, out);
	return sv_read_mem(t, addr, out->times, sizeof(out->times));
}

static int read_how(const struct sv_tracee *t, uint64_t addr, uint64_t size,
		    struct sv_subject *out)
{
	struct sv_open_how how;
	int rc = sv_read_open_how(t, addr, size, &how);

	if (rc < 0)
		return rc;
	out->how = true;
	out->flags = how.flags;
	out->mode = how.mode;
	out->resolve = how.resolve;
	return 0;
}

/* Every value is cast to the kernel's C type first: the upper halves of int
 * arguments are the caller's noise. */
static int take(const struct sv_tracee *t, enum sv_role role, int i, struct sv_subject *out)
{
	const uint64_t v = t->call->args[i];

	switch (role) {
	case SV_ROLE_NONE: case SV_ROLE_SIZE:
		return 0;
	case SV_ROLE_DIRFD:
		out->name[0].dirfd = (int)(uint32_t)v;
		return 0;
	case SV_ROLE_DIRFD2:
		out->name[1].dirfd = (int)(uint32_t)v;
		return 0;
	case SV_ROLE_PATH:
		return read_name(t, v, &out->name[0]);
	case SV_ROLE_PATH2:
		return read_name(t, v, &out->name[1]);
	case SV_ROLE_PATH_OR_NULL:
		return read_name_or_null(t, v, &out->name[0]);
	case SV_ROLE_TEXT:
		return read_text(t, v, out);
	case SV_ROLE_FD:
		out->fd = (int)(uint32_t)v;
		return 0;
	case SV_ROLE_OFLAGS: case SV_ROLE_FLAGS:
		out->flags |= (uint32_t)v;
		return 0;
	case SV_ROLE_MODE:
		out->mode = (uint32_t)v & 0xffff;
		return 0;
	case SV_ROLE_DEV:
		out->dev = (uint32_t)v;
		return 0;
	case SV_ROLE_HOW:
		return read_how(t, v, t->call->args[i + 1], out);
	case SV_ROLE_LENGTH:
		out->length = (int64_t)v;
		return 0;
	case SV_ROLE_OWNER:
		out->owner = (uid_t)v;
		return 0;
	case SV_ROLE_GROUP:
		out->group = (gid_t)v;
		return 0;
	case SV_ROLE_TIMES_UTIMBUF: case SV_ROLE_TIMES_TIMEVAL: case SV_ROLE_TIMES_TIMESPEC:
		return read_times(t, v, role, out);
	case SV_ROLE_ARGV:
		out->argv = v;
		return 0;
	case SV_ROLE_ENVP:
		out->envp = v;
		return 0;
	case SV_ROLE_PID:
		out->pid = (pid_t)(uint32_t)v;
		return 0;
	case SV_ROLE_WHICH:
		out->which = (int)(uint32_t)v;
		return 0;
	}
	return -EINVAL;
}

int sv_decode(const struct sv_tracee *t, const struct sv_syscall *row, struct sv_subject *out)
{
	int i, rc;

	memset(out->symlink, 0, 1);
	out->name[0].dirfd = out->name[1].dirfd = AT_FDCWD;
	out->name[0].at = out->name[1].at = -1;
	out->name[0].null = out->name[1].null = false;
	out->name[0].len = out->name[1].len = 0;
	out->name[0].text[0] = out->name[1].text[0] = 0;
	out->flags = row->preset;
	out->mode = out->resolve = out->dev = 0;
	out->how = out->times_null = false;
	out->length = 0;
	out->owner = (uid_t)-1;
	out->group = (gid_t)-1;
	out->fd = -1;
	out->pid = 0;
	out->which = 0;
	out->argv = out->envp = 0;
	for (i = 0; i < SV_ARGS; i++) {
		rc = take(t, (enum sv_role)row->roles[i], i, out);
		if (rc < 0)
			return rc;
	}
	return 0;
}
