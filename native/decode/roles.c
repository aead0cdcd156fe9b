/* roles.c - walks a row's argument roles. */
#include "decode/roles.h"

#include "base/fd.h"
#include "decode/dupfd.h"
#include "decode/openhow.h"
#include "decode/watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/time.h>
#include <utime.h>

static int read_name(const struct sv_tracee *t, uint64_t addr, struct sv_pathname *name)
{
	int n = sv_read_str(t, addr, name->text, sizeof(name->text));

	if (n == -EFAULT || n == -ENAMETOOLONG) {
		name->err = n;
		name->text[0] = 0;
		return 0;
	}
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

/* As getname_maybe_null(). */
static int read_name_or_empty(const struct sv_tracee *t, uint64_t addr, struct sv_subject *out)
{
	if (!addr && out->flags & AT_EMPTY_PATH)
		return 0;
	return read_name(t, addr, &out->name[0]);
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

static int read_queue(const struct sv_tracee *t, uint64_t addr, struct sv_subject *out)
{
	out->queue_null = !addr;
	return addr ? sv_read_mem(t, addr, &out->queue, sizeof(out->queue)) : 0;
}

/* Every value is cast to the kernel's C type first: the upper halves of int
 * arguments are the caller's noise. One function per role. */
typedef int take_fn(const struct sv_tracee *t, int i, struct sv_subject *out);

#define VALUE(t, i) ((t)->call->args[i])
#define TAKE(role, statement) \
	static int take_##role(const struct sv_tracee *t, int i, struct sv_subject *out) \
	{ \
		statement; \
		return 0; \
	}
#define READ(role, expression) \
	static int take_##role(const struct sv_tracee *t, int i, struct sv_subject *out) \
	{ \
		return expression; \
	}

TAKE(DIRFD, out->name[0].dirfd = (int)(uint32_t)VALUE(t, i))
TAKE(DIRFD2, out->name[1].dirfd = (int)(uint32_t)VALUE(t, i))
TAKE(FD, out->fd = (int)(uint32_t)VALUE(t, i))
TAKE(FLAGS, out->flags |= (uint32_t)VALUE(t, i))
TAKE(MODE, out->mode = (uint32_t)VALUE(t, i) & 0xffff)
TAKE(DEV, out->dev = (uint32_t)VALUE(t, i))
TAKE(LENGTH, out->length = (int64_t)VALUE(t, i))
TAKE(OWNER, out->owner = (uid_t)VALUE(t, i))
TAKE(GROUP, out->group = (gid_t)VALUE(t, i))
TAKE(ARGV, out->argv = VALUE(t, i))
TAKE(ENVP, out->envp = VALUE(t, i))
TAKE(PID, out->pid = (pid_t)(uint32_t)VALUE(t, i))
TAKE(WHICH, out->which = (int)(uint32_t)VALUE(t, i))
TAKE(ADDR, out->addr = VALUE(t, i))
TAKE(ADDRLEN, out->addrlen = (uint32_t)VALUE(t, i))
TAKE(BUF, out->buf = VALUE(t, i))
TAKE(BUFSIZE, out->bufsize = VALUE(t, i))
READ(PATH, read_name(t, VALUE(t, i), &out->name[0]))
READ(PATH2, read_name(t, VALUE(t, i), &out->name[1]))
READ(PATH_OR_NULL, read_name_or_null(t, VALUE(t, i), &out->name[0]))
READ(PATH_OR_EMPTY, read_name_or_empty(t, VALUE(t, i), out))
READ(TEXT, read_text(t, VALUE(t, i), out))
READ(HOW, read_how(t, VALUE(t, i), VALUE(t, i + 1), out))
READ(UTIMBUF, read_times(t, VALUE(t, i), SV_ROLE_TIMES_UTIMBUF, out))
READ(TIMEVAL, read_times(t, VALUE(t, i), SV_ROLE_TIMES_TIMEVAL, out))
READ(TIMESPEC, read_times(t, VALUE(t, i), SV_ROLE_TIMES_TIMESPEC, out))

READ(QUEUE, read_queue(t, VALUE(t, i), out))
READ(ATTR, sv_read_attr_name(t, out->flags, VALUE(t, i), &out->attr))
READ(ATTR_SET, sv_read_attr(t, &VALUE(t, i), &out->attr))
READ(ATTR_ARGS, sv_read_attr_args(t, out->flags, &VALUE(t, i), &out->attr))
READ(ATTR_GET, sv_read_attr_get(t, out->flags, &VALUE(t, i), &out->attr, &out->buf, &out->bufsize))
READ(LISTING, sv_take_folder(t, (int)(uint32_t)VALUE(t, i), &out->watcher))
static int take_SOCKET(const struct sv_tracee *t, int i, struct sv_subject *out)
{
	out->fd = (int)(uint32_t)VALUE(t, i);
	return sv_take_socket(t, out->fd, &out->sock);
}

READ(WATCHER, sv_take_watcher(t, (int)(uint32_t)VALUE(t, i), (uint32_t)VALUE(t, 2), &out->watcher))

static take_fn *const takers[] = {
	[SV_ROLE_NONE] = NULL, [SV_ROLE_SIZE] = NULL,
	[SV_ROLE_DIRFD] = take_DIRFD, [SV_ROLE_DIRFD2] = take_DIRFD2, [SV_ROLE_FD] = take_FD,
	[SV_ROLE_OFLAGS] = take_FLAGS, [SV_ROLE_FLAGS] = take_FLAGS, [SV_ROLE_MODE] = take_MODE,
	[SV_ROLE_DEV] = take_DEV, [SV_ROLE_LENGTH] = take_LENGTH, [SV_ROLE_OWNER] = take_OWNER,
	[SV_ROLE_GROUP] = take_GROUP, [SV_ROLE_ARGV] = take_ARGV, [SV_ROLE_ENVP] = take_ENVP,
	[SV_ROLE_PID] = take_PID, [SV_ROLE_WHICH] = take_WHICH, [SV_ROLE_PATH] = take_PATH,
	[SV_ROLE_PATH2] = take_PATH2, [SV_ROLE_PATH_OR_NULL] = take_PATH_OR_NULL,
	[SV_ROLE_ADDR] = take_ADDR, [SV_ROLE_ADDRLEN] = take_ADDRLEN,
	[SV_ROLE_TEXT] = take_TEXT, [SV_ROLE_HOW] = take_HOW,
	[SV_ROLE_TIMES_UTIMBUF] = take_UTIMBUF, [SV_ROLE_TIMES_TIMEVAL] = take_TIMEVAL,
	[SV_ROLE_TIMES_TIMESPEC] = take_TIMESPEC, [SV_ROLE_PATH_OR_EMPTY] = take_PATH_OR_EMPTY,
	[SV_ROLE_ATTR] = take_ATTR, [SV_ROLE_ATTR_SET] = take_ATTR_SET,
	[SV_ROLE_ATTR_ARGS] = take_ATTR_ARGS, [SV_ROLE_WATCHER] = take_WATCHER,
	[SV_ROLE_QUEUE] = take_QUEUE, [SV_ROLE_SOCKET] = take_SOCKET,
	[SV_ROLE_LISTING] = take_LISTING, [SV_ROLE_ATTR_GET] = take_ATTR_GET,
	[SV_ROLE_BUF] = take_BUF, [SV_ROLE_BUFSIZE] = take_BUFSIZE,
};

static int take(const struct sv_tracee *t, uint8_t role, int i, struct sv_subject *out)
{
	if (role >= sizeof(takers) / sizeof(takers[0]))
		return -EINVAL;
	return takers[role] ? takers[role](t, i, out) : 0;
}

static bool is_name(uint8_t role)
{
	return role == SV_ROLE_PATH || role == SV_ROLE_PATH2 || role == SV_ROLE_PATH_OR_NULL ||
	       role == SV_ROLE_PATH_OR_EMPTY || role == SV_ROLE_TEXT;
}

void sv_subject_init(struct sv_subject *s)
{
	sv_attr_init(&s->attr);
	s->watcher = s->sock = -1;
}

void sv_subject_release(struct sv_subject *s)
{
	sv_attr_free(&s->attr);
	sv_close_fd(&s->watcher);
	sv_close_fd(&s->sock);
}

/* The kernel copies structures, values and times before it looks at names, so
 * of two bad pointers that one counts. */
int sv_decode(const struct sv_tracee *t, const struct sv_syscall *row, struct sv_subject *out)
{
	int n, rc;

	memset(out->symlink, 0, 1);
	out->name[0].dirfd = out->name[1].dirfd = AT_FDCWD;
	out->name[0].at = out->name[1].at = -1;
	out->name[0].null = out->name[1].null = false;
	out->name[0].len = out->name[1].len = 0;
	out->name[0].err = out->name[1].err = 0;
	out->name[0].text[0] = out->name[1].text[0] = 0;
	out->flags = row->preset;
	out->mode = out->resolve = out->dev = 0;
	out->how = out->times_null = false;
	out->queue_null = true;
	out->length = 0;
	out->owner = (uid_t)-1;
	out->group = (gid_t)-1;
	out->fd = -1;
	out->pid = 0;
	out->which = 0;
	out->argv = out->envp = out->addr = 0;
	out->addrlen = 0;
	out->buf = out->bufsize = 0;
	for (n = 0; n < 2 * SV_ARGS; n++) {
		const int i = n % SV_ARGS;

		if (is_name(row->roles[i]) != (n >= SV_ARGS))
			continue;
		rc = take(t, row->roles[i], i, out);
		if (rc < 0)
			return rc;
	}
	return 0;
}
