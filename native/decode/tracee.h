/* tracee.h - everything that is read from a target task.
 *
 * A read is only worth something while the notification that it serves is
 * still pending: callers read what they need, then ask sv_still_valid() once,
 * and only then act. Memory is read once into a private buffer; no function
 * here reads the same bytes twice. All failures are negative errnos, never a
 * default: an unreadable target is refused by the caller. */
#ifndef SV_DECODE_TRACEE_H
#define SV_DECODE_TRACEE_H

#include "model.h"

/* The identity with which the kernel would do the target's call. */
struct sv_creds {
	uid_t fsuid;
	gid_t fsgid;
	int ngroups;		/* -1 = as the supervisor's */
	gid_t groups[64];
	uint64_t caps;		/* effective */
	uid_t euid;		/* whose System V objects are */
	gid_t egid;
};

/* One reader per worker: a borrowed descriptor of /proc, no other state. */
struct sv_tracee {
	int proc_fd;		/* O_PATH of /proc */
	int listener;
	const struct sv_call *call;
	int cwd;		/* fetched ahead, -1 = not */
	int nfds;
	struct { int number, fd; bool is_path; } fds[3];	/* fd: or -errno */
};

/* Copy n bytes at addr. -EFAULT as the kernel would say, -EPERM when the
 * target hides its memory. */
int sv_read_mem(const struct sv_tracee *t, uint64_t addr, void *buf, size_t n);
/* Copy a string, NUL included; returns its length without the NUL,
 * -ENAMETOOLONG past cap, -EFAULT. */
int sv_read_str(const struct sv_tracee *t, uint64_t addr, char *buf, size_t cap);
/* Copy a struct of the caller's size into known bytes, as copy_struct_from_user():
 * -EINVAL too small, -E2BIG with non-zero bytes that this version does not know. */
int sv_read_struct(const struct sv_tracee *t, uint64_t addr, uint64_t size, void *out,
		   size_t known);
/* 0 while the kernel still waits for an answer to this call, else -ENOENT. */
int sv_still_valid(const struct sv_tracee *t);

/* O_PATH descriptors of the task's own: working folder, or descriptor fd. */
int sv_tracee_cwd(const struct sv_tracee *t);
int sv_tracee_fd(const struct sv_tracee *t, int fd);
/* Was descriptor fd of the task opened with O_PATH? Most calls refuse it then. */
bool sv_tracee_fd_is_path(const struct sv_tracee *t, int fd);
/* Fetch cwd and the given descriptors (negative = none) now, while this thread
 * still has the supervisor's identity; the two functions above then answer
 * from that. sv_tracee_forget() closes them. */
void sv_tracee_prefetch(struct sv_tracee *t, int a, int b, int c);
void sv_tracee_forget(struct sv_tracee *t);

/* From /proc/TID/status. */
int sv_tracee_umask(const struct sv_tracee *t, mode_t *out);
int sv_tracee_tgid(const struct sv_tracee *t, pid_t *out);
int sv_tracee_parent(const struct sv_tracee *t, pid_t *out);
/* The task that traces it, 0 = none. */
int sv_tracee_tracer(const struct sv_tracee *t, pid_t *out);
int sv_tracee_creds(const struct sv_tracee *t, struct sv_creds *out);
/* /proc/TID/comm into buf (NUL-terminated); never fails, may be empty. */
void sv_tracee_comm(const struct sv_tracee *t, char *buf, size_t cap);
/* Controlling terminal as in proc(5) field 7; 0 = none. */
int sv_tracee_tty(int proc_fd, pid_t pid, int *tty, pid_t *session);

/* True when pid (a process or a thread) descends from this process. */
bool sv_in_tree(int proc_fd, pid_t pid);

#endif
