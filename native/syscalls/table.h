/* table.h - what the core knows about each syscall.
 *
 * One row per syscall (table.def), read-only after sv_table_init(). The filter
 * compiler, the decoder, the dispatcher, the command line and the docs all
 * read these rows; nobody keeps a second list. */
#ifndef SV_SYSCALLS_TABLE_H
#define SV_SYSCALLS_TABLE_H

#include "model.h"

/* What one argument is. */
enum sv_role {
	SV_ROLE_NONE,
	SV_ROLE_DIRFD, SV_ROLE_PATH, SV_ROLE_PATH_OR_NULL,
	SV_ROLE_PATH_OR_EMPTY,	/* may be NULL where AT_EMPTY_PATH is given */
	SV_ROLE_DIRFD2, SV_ROLE_PATH2,
	SV_ROLE_TEXT,		/* a symlink's text: bytes, not a path to resolve */
	SV_ROLE_FD,		/* an open descriptor is the object itself */
	SV_ROLE_OFLAGS, SV_ROLE_FLAGS, SV_ROLE_MODE, SV_ROLE_DEV,
	SV_ROLE_HOW, SV_ROLE_SIZE, SV_ROLE_LENGTH,
	SV_ROLE_OWNER, SV_ROLE_GROUP,
	SV_ROLE_TIMES_UTIMBUF, SV_ROLE_TIMES_TIMEVAL, SV_ROLE_TIMES_TIMESPEC,
	SV_ROLE_ARGV, SV_ROLE_ENVP,
	SV_ROLE_PID, SV_ROLE_WHICH,
	SV_ROLE_ADDR, SV_ROLE_ADDRLEN,
	SV_ROLE_ATTR,		/* an attribute's name */
	SV_ROLE_ATTR_SET,	/* the same; value, size and flags follow */
	SV_ROLE_ATTR_ARGS,	/* the same; struct xattr_args and its size follow */
	SV_ROLE_QUEUE,		/* struct mq_attr, may be NULL */
	SV_ROLE_WATCHER,	/* an inotify instance; the mask is the third argument */
	SV_ROLE_LISTING,	/* an open folder, duplicated: its offset is the caller's */
	SV_ROLE_SOCKET,		/* a socket, duplicated */
	SV_ROLE_ATTR_GET,	/* an attribute's name; struct xattr_args and its size follow */
	SV_ROLE_BUF, SV_ROLE_BUFSIZE	/* where the result goes, and its room */
};

/* Which handler carries the call out; the dispatcher maps it to a function. */
enum sv_how {
	SV_HOW_none,
	SV_HOW_open, SV_HOW_mkdir, SV_HOW_mknod, SV_HOW_unlink, SV_HOW_rename,
	SV_HOW_link, SV_HOW_symlink, SV_HOW_chmod, SV_HOW_chown, SV_HOW_utime,
	SV_HOW_truncate, SV_HOW_xattr, SV_HOW_watch, SV_HOW_exec, SV_HOW_chdir,
	SV_HOW_stat, SV_HOW_statx, SV_HOW_access, SV_HOW_readlink, SV_HOW_statfs, SV_HOW_getxattr,
	SV_HOW_fileattr, SV_HOW_getdents,
	SV_HOW_pid, SV_HOW_which, SV_HOW_creds, SV_HOW_connect, SV_HOW_bind, SV_HOW_listen,
	SV_HOW_socket, SV_HOW_socketpair, SV_HOW_sendmsg, SV_HOW_sendmmsg,
	SV_HOW_sendto, SV_HOW_sockname, SV_HOW_ioctl, SV_HOW_setsockopt,
	SV_HOW_ipc_get, SV_HOW_ipc, SV_HOW_mq_open, SV_HOW_mq_unlink,
	SV_HOW_signal, SV_HOW_owner,
	SV_HOW_memory, SV_HOW_ptrace, SV_HOW_rlimit, SV_HOW_refuse, SV_HOW_namespaces,
	SV_HOW_domain		/* allowed or refused as a whole; notified where a policy has blocks */
};

struct sv_syscall {
	int nr;
	const char *name;
	const char *note;
	enum sv_class klass;
	enum sv_how how;
	int err;
	uint64_t preset;
	uint8_t roles[SV_ARGS];
};

/* Builds the index and asks the kernel once what Landlock can bound. Call it
 * before threads exist; further calls do nothing. */
void sv_table_init(void);
/* The row of a number, NULL when the table has none. */
const struct sv_syscall *sv_table_find(int nr);

#endif
