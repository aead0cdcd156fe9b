/* roles.h - a notification's arguments, read once into a subject.
 *
 * This is the only place that reads arguments: whatever cannot be read makes
 * the whole call fail with the errno that the kernel would give. */
#ifndef SV_DECODE_ROLES_H
#define SV_DECODE_ROLES_H

#include "decode/tracee.h"
#include "decode/xattr.h"
#include "syscalls/table.h"

#include <mqueue.h>
#include <time.h>

/* A path argument: its starting folder and its bytes. A bad one fails only where
 * it is looked up: the kernel speaks of flags, and of the first name's folders,
 * before. */
struct sv_pathname {
	int dirfd;		/* as the target numbers it, AT_FDCWD = its cwd */
	int at;			/* >= 0: starts from this descriptor of ours instead */
	bool null;		/* the pointer was NULL and the call allows that */
	int err;		/* -EFAULT, -ENAMETOOLONG: no name at all; len is 0 */
	int len;
	char text[SV_PATH_MAX];
};

struct sv_subject {
	struct sv_pathname name[2];
	char symlink[SV_PATH_MAX];
	uint64_t flags;
	uint64_t mode;
	uint64_t resolve;	/* RESOLVE_* of openat2 */
	bool how;		/* came from openat2: flags are checked strictly */
	uint64_t dev;
	int64_t length;
	uid_t owner;
	gid_t group;
	struct timespec times[2];
	bool times_null;
	int fd;			/* SV_ROLE_FD, else -1 */
	pid_t pid;
	int which;
	uint64_t addr;		/* SV_ROLE_ADDR: where the socket address lies */
	uint32_t addrlen;
	uint64_t argv;		/* addresses only: read where they are needed */
	uint64_t envp;
	struct sv_attr attr;
	struct mq_attr queue;
	bool queue_null;
	int watcher;		/* a duplicate, owned; < 0: none, or the errno that kept it from us */
	int sock;		/* a duplicate of the caller's socket, as watcher */
	uint64_t buf;		/* where the result goes */
	uint64_t bufsize;
};

/* Makes the subject own nothing; sv_subject_release() gives back what it owns. */
void sv_subject_init(struct sv_subject *s);
void sv_subject_release(struct sv_subject *s);
/* Walk the row's roles, of an initialised subject. Returns 0 or the negative errno
 * the target gets; what was read until then is to be released all the same. */
int sv_decode(const struct sv_tracee *t, const struct sv_syscall *row, struct sv_subject *out);

#endif
