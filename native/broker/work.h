/* work.h - one notification on its way through a worker.
 *
 * A handler (one per row of the table that is notified) decodes, pins, judges
 * and carries out, in that order, and answers the kernel exactly once through
 * the functions below: sv_refuse*, sv_fail_call, sv_give_*, sv_let_go, or by
 * handing the call to the side threads or the tracer. Only a call that is gone
 * (sv_still_valid) is left without an answer. */
#ifndef SV_BROKER_WORK_H
#define SV_BROKER_WORK_H

#include "broker/budget.h"
#include "decode/path.h"
#include "effect/exec.h"
#include "effect/side.h"
#include "match/blocks.h"
#include "event/ring.h"
#include "policy/blob.h"

#include <pthread.h>
#include <stdatomic.h>

/* Where a steered path goes: opened before the target runs, so that nobody
 * can swap it. */
struct sv_dest {
	int fd;			/* TREE: the folder; FILE: the file's folder */
	char name[256];		/* FILE: last component */
};

struct sv_trash;
struct sv_bound;
struct sv_ipc;

/* What all workers share; set up before they start, then only read (but for
 * the atomics and what locks itself). */
struct sv_shared {
	const struct sv_policy *policy;
	struct sv_dest *dest;	/* one per rule */
	struct sv_ring *ring;
	struct sv_tracer *tracer;
	struct sv_side *side;
	struct sv_ipc *ipc;	/* System V objects of the run */
	struct sv_trash *trash;	/* NULL = no rule steers deletes to it */
	struct sv_bound *bound;	/* local sockets that the tree bound */
	int listener;
	bool observe;
	bool steers;		/* some rule steers files: a missing name may be elsewhere */
	enum sv_record record;
	pid_t self;
	int proc_fd;		/* for threads that are no workers */
	void (*on_child)(void *arg, pid_t pid, int wstatus);
	void *on_child_arg;
	pthread_rwlock_t names;	/* held for reading by mkdir, for writing by rename */
	atomic_bool files_shared;	/* two processes may have one table of descriptors */
	atomic_bool creds_changed;	/* some task of the tree changed its identity */
	struct sv_budget budget;
	atomic_ullong calls;
	atomic_ullong denied;
	atomic_ullong steered;
};

struct sv_work {
	struct sv_shared *sh;
	struct sv_paths paths;
	struct sv_tracee t;
	struct sv_call call;
	const struct sv_syscall *row;
	struct sv_subject in;
	struct sv_place place[2];
	struct sv_match match;
	uint32_t ops;
	uint32_t blocks;	/* that the caller is in, once known: sv_blocks_in() */
	bool blocks_known;
	uint32_t starts;	/* exec: blocks that the programs looked at are for */
	uint32_t taken;		/* of which limits one was taken: budget.h */
	int over;		/* 1 + the limit that refuses the call, 0 = none */
	bool switched;		/* runs with the target's identity right now */
};

/* Judge path for ops into w->match; true = carry it out as asked (allowed, or
 * observing). Steer is left to the caller: w->match.action says so. */
bool sv_decide_call(struct sv_work *w, uint32_t ops, const struct sv_place *place);

/* The blocks of the policy that the caller is in, read once a call; 0 without blocks. */
uint32_t sv_blocks_in(struct sv_work *w);

/* Policy says no: the rule's errno, an event. */
void sv_refuse(struct sv_work *w);
/* The same, with the arguments that were judged. */
void sv_refuse_telling(struct sv_work *w, struct sv_str detail);
/* Refused for a reason that no rule states: err and a sentence. */
void sv_refuse_why(struct sv_work *w, int err, const char *why);
/* The rule in w->match says no, for a reason that its text does not tell. */
void sv_refuse_rule(struct sv_work *w, const char *why);
/* The kernel said no while the call was carried out (err > 0). */
void sv_fail_call(struct sv_work *w, int err);
void sv_give_value(struct sv_work *w, int64_t value);
/* Always closes fd. */
void sv_give_fd(struct sv_work *w, int fd, bool cloexec, bool writable);
void sv_let_go(struct sv_work *w);
/* Answer with the outcome of a call: rc < 0 is an errno, else the value 0. */
void sv_give_result(struct sv_work *w, int rc);

/* broker/moot.c: what the kernel says of a pinned folder's entry before it asks who
 * may change it: to make it (a folder or something else), or to remove or move it.
 * An errno, 0 = it would ask. */
int sv_moot_new(const struct sv_place *p, bool folder);
int sv_moot_old(const struct sv_place *p, bool folder);
/* Policy says no, but with err the kernel would have ended the call before: then
 * nothing was refused, and nothing is recorded. */
void sv_refuse_unless(struct sv_work *w, int err);
/* Where a rule hides the pinned object: refused as that rule says, and true. For calls
 * that the object's kind could end before the rules are asked. */
bool sv_refuse_hidden(struct sv_work *w, const struct sv_place *p);

/* The record of a call that was carried out, for handlers that answer through
 * others. effect as it was done. */
void sv_tell(struct sv_work *w, enum sv_effect effect, int err, struct sv_str detail);

/* One event into the ring, waiting for room. */
void sv_record(struct sv_shared *sh, const struct sv_event *e);

/* Mode bits for a new object in the folder: the target's umask, unless the
 * folder has a default ACL, as in vfs_prepare_mode(). -errno when the umask
 * cannot be read. */
int sv_new_mode(struct sv_work *w, const struct sv_place *parent, mode_t mode, mode_t *out);

/* The handlers. */
typedef void sv_handler(struct sv_work *w);
sv_handler sv_do_open, sv_do_mkdir, sv_do_mknod, sv_do_unlink, sv_do_rename, sv_do_link;
sv_handler sv_do_symlink, sv_do_chmod, sv_do_chown, sv_do_utime, sv_do_truncate, sv_do_exec;
sv_handler sv_do_xattr, sv_do_watch, sv_do_chdir;
/* broker/look*.c, listing.c: only where the policy hides names. */
sv_handler sv_do_stat, sv_do_statx, sv_do_access, sv_do_readlink, sv_do_statfs, sv_do_getxattr;
sv_handler sv_do_fileattr, sv_do_getdents;
sv_handler sv_do_pid, sv_do_which, sv_do_creds, sv_do_socket, sv_do_socketpair, sv_do_connect;
sv_handler sv_do_bind, sv_do_listen, sv_do_sendto, sv_do_sendmsg, sv_do_sendmmsg, sv_do_sockname;
sv_handler sv_do_signal, sv_do_ioctl, sv_do_setsockopt, sv_do_refuse, sv_do_namespaces;
sv_handler sv_do_memory, sv_do_ptrace, sv_do_ipc_get, sv_do_ipc, sv_do_mq_open, sv_do_mq_unlink;
sv_handler sv_do_rlimit, sv_do_domain, sv_do_owner;

/* broker/process.c: is it the caller, or in the tree? And the answer to a call about it. */
bool sv_pid_inside(const struct sv_work *w, pid_t pid);
void sv_verify_pid(struct sv_work *w, pid_t pid);

/* broker/exec.c: the call, its judgement and what is told of it, into the plan. */
void sv_plan_call(const struct sv_work *w, struct sv_exec_plan *plan);
/* What the tracer calls back. */
extern const struct sv_tracer_ops sv_exec_ops;

/* broker/steer.c: carry the call out at the rule's destination. */
void sv_steer_open(struct sv_work *w, struct sv_place *place);
/* What lies at the destination of w->match now: a descriptor (owned) with these open
 * flags, following no link, or -errno. */
int sv_steer_find(const struct sv_work *w, const struct sv_place *place, uint64_t flags);
/* The folder at the destination that holds the place's name: O_PATH (owned), or -errno;
 * folders on the way that the name has where it was asked for are made. last gets the
 * last component, room for SV_PATH_MAX. */
int sv_steer_folder(const struct sv_work *w, const struct sv_place *place, char *last);
/* Move a new name (pinned parent and last component) to its destination as above.
 * 0 or -errno; w->match is the steer. */
int sv_steer_name(struct sv_work *w, struct sv_place *place);
bool sv_steer_goes_to_tree(const struct sv_work *w, const struct sv_match *m);
/* The tree's own place is named by rules, too. Where w->match goes to a tree: does a rule
 * deny ops on dir/last by its true path ("" = dir itself)? Then w->match is that rule. */
bool sv_steer_denied(struct sv_work *w, int dir, const char *last, uint32_t ops);
/* broker/trash.c: opens the session's folder, where a rule steers deletes to it.
 * -errno with err filled. */
int sv_trash_open(struct sv_shared *sh, const char *path, int64_t room, struct sv_err *err);
void sv_trash_close(struct sv_trash *t);
/* broker/bound.c: local sockets that the tree bound; locks itself. NULL = no memory. */
struct sv_bound *sv_bound_new(void);
void sv_bound_free(struct sv_bound *b);
int sv_dest_open_all(struct sv_shared *sh, struct sv_err *err);
void sv_dest_close_all(struct sv_shared *sh);

#endif
