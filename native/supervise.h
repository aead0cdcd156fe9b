/* supervise.h - THE boundary between Python and C.
 *
 * Everything between the two cffi markers is also the cdef that
 * supervisor/_build_ffi.py hands to cffi, so it holds declarations only.
 * Bytes go in, bytes and fixed-width structs come out; there are no callbacks.
 * A call that can fail takes a struct sv_err, fills it and returns a negative
 * errno (or NULL); it leaves the struct alone on success. */
#ifndef SV_SUPERVISE_H
#define SV_SUPERVISE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* cffi: begin */
#define SV_ABI 1
#define SV_BLOB_VERSION 6
#define SV_COUNTED 6

typedef struct sv_session sv_session;

struct sv_err {
	int32_t code;		/* positive errno */
	char where[28];		/* the step that failed, for people */
	char msg[224];		/* a sentence with the fix where there is one */
};

/* The decisions, least strict first: the larger of two wins. SV_APPROVE has its
 * place in the order; this version loads no policy that uses it. */
enum sv_action { SV_ALLOW, SV_STEER, SV_APPROVE, SV_DENY };

/* File operations of the policy language, as bits. */
enum sv_op {
	SV_OP_READ = 1,
	SV_OP_WRITE = 2,
	SV_OP_CREATE = 4,
	SV_OP_DELETE = 8,
	SV_OP_RENAME = 16,
	SV_OP_METADATA = 32,
	SV_OP_LIST = 64,
	SV_OP_EXEC = 128
};

/* Network operations: bits of their own, so that an event's ops tell both kinds. */
enum sv_net_op {
	SV_OP_CONNECT = 0x200,	/* connect, and sending to an address */
	SV_OP_BIND = 0x400,	/* bind, and listening without it */
	SV_OP_SEND = 0x800	/* in events: sending to an address, which is decided as connect */
};

/* The operation of signal rules, and whom a signal goes to, seen from its sender. */
enum sv_signal_op { SV_OP_SIGNAL = 0x1000 };
enum sv_who {
	SV_WHO_SELF = 1,	/* the calling process */
	SV_WHO_CHILD = 2,	/* a process that it is the parent of */
	SV_WHO_OTHERS = 4,	/* whoever else is in the tree */
	SV_WHO_TREE = 7
};

/* What a network rule speaks of, and what sv_decide_net() is asked about. */
enum sv_net_kind {
	SV_NET_ADDRESS,		/* 4 or 16 bytes */
	SV_NET_PATH,		/* a local socket's file */
	SV_NET_ABSTRACT		/* a local socket's abstract name, without the leading NUL */
};

/* How a syscall is treated by the filter; one per row of the table. */
enum sv_class {
	SV_CLASS_ALLOW,		/* stays in the kernel */
	SV_CLASS_BROKER,	/* notified; done here on pinned objects */
	SV_CLASS_VERIFY,	/* notified; continued when its registers allow it, or refused and told */
	SV_CLASS_ABSENT,	/* refused by the filter, untold */
	SV_CLASS_LOOK,		/* stays in the kernel, but where the policy hides names: then broker */
	SV_CLASS_NET,		/* the same, where the policy has network rules */
	SV_CLASS_SIGNAL		/* the same, where the policy has signal rules */
};

/* How a decision was carried out. */
enum sv_effect {
	SV_EFFECT_NONE,
	SV_EFFECT_CONTINUE,
	SV_EFFECT_ERRNO,
	SV_EFFECT_BROKER,
	SV_EFFECT_REWRITE,
	SV_EFFECT_KILL
};

/* Kinds of event in the stream that sv_poll returns. */
enum sv_event_kind {
	SV_EVENT_CALL = 1,	/* one decided call */
	SV_EVENT_EXEC = 2,	/* a program that now runs, verified */
	SV_EVENT_FAULT = 3,	/* something could not be read or verified */
	SV_EVENT_LIMIT = 4	/* a limit of the policy: soft and passed, or it ended the run */
};

/* What `limits:` speaks of. The first SV_COUNTED are counted here; of the others, the
 * kernel holds the first two, and what is above whoever runs the session. */
enum sv_limit_kind {
	SV_LIMIT_ACTIONS,	/* calls that came to us and were carried out */
	SV_LIMIT_FILES_CREATED,
	SV_LIMIT_FILES_DELETED,
	SV_LIMIT_EXECS,
	SV_LIMIT_CONNECTIONS,
	SV_LIMIT_DENIALS,
	SV_LIMIT_OPEN_FILES,
	SV_LIMIT_FILE_SIZE,
	SV_LIMIT_CPU,		/* seconds; the kernel holds each process to it, too */
	SV_LIMIT_WALL,
	SV_LIMITS
};

struct sv_row {
	int32_t nr;
	int32_t klass;		/* enum sv_class */
	int32_t err;		/* errno of a refused call */
	char name[32];
	char note[160];		/* why; for refused calls the reason */
};

/* An argument test of the filter: (args[arg] & mask) == value -> klass. */
struct sv_when {
	int32_t nr;
	int32_t arg;
	uint64_t mask;
	uint64_t value;
	int32_t klass;		/* SV_CLASS_ALLOW, _ABSENT, _SIGNAL, or _BROKER and _VERIFY (= notify) */
	int32_t err;
};

struct sv_facility {
	int32_t ok;
	int32_t err;		/* errno of the failing step, 0 when ok */
	int32_t need;		/* 1 = a run cannot start without it */
	int32_t value;		/* a version or count where there is one */
	char name[32];
	char buys[160];		/* what it is good for, in a sentence */
	char detail[160];	/* what was found, or the fix */
};

struct sv_verdict {
	int32_t action;		/* enum sv_action */
	int32_t rule;		/* index into the blob's rules, -1 = default */
	int32_t err;		/* errno shown for a refusal */
	int32_t matched;	/* how many rules matched */
	int32_t rules[16];	/* the first of them, strictest first */
};

struct sv_rule_text {
	char id[136];
	char src[520];		/* "file.yaml:31" */
	char say[1032];		/* a sentence for whoever is refused, or empty */
};

struct sv_start {
	const char *const *argv;	/* NULL-terminated */
	const char *const *envp;	/* NULL-terminated */
	const char *cwd;		/* NULL = stay */
	const char *path;		/* program file; NULL = search argv[0] in PATH of envp */
	uint32_t degraded;		/* bits of sv_facility indexes waived by the user */
	const char *trash;		/* folder of this session for what is deleted; NULL = none */
	int64_t trash_room;		/* bytes that it may take */
};

struct sv_status {
	int32_t running;	/* the main command still runs */
	int32_t tasks;		/* children that are left below us */
	int32_t exited;		/* 1 = code is an exit code, 2 = a signal number */
	int32_t code;
	int32_t exec_err;	/* errno of the very first execve, 0 = it ran */
	int32_t halted;		/* sv_kill was called */
	uint64_t calls;		/* notifications handled */
	uint64_t denied;
	uint64_t steered;
	int32_t limit;		/* 1 + the counted limit that ended the run, 0 = none */
	uint64_t used[SV_COUNTED];	/* by enum sv_limit_kind, the SV_COUNTED first */
};

int sv_abi(void);

/* The table, for Python's filter compiler and for the docs: row i of n, or
 * -ENOENT past the end. */
int sv_row(int i, struct sv_row *out);
/* Say before sv_row which facilities (bits of their indexes) a run will do
 * without: what those bound becomes a notification or a refusal in the rows.
 * Returns what the kernel bounds by itself, 1 for looking into processes, 2 for
 * signals; -1 changes nothing and asks. */
int sv_assume(int64_t waived);
/* Index of the row of syscall nr, or -ENOENT. */
int sv_row_of(int nr);
int sv_when(int i, struct sv_when *out);

/* Probe facility i for real; -ENOENT past the end. */
int sv_facility(int i, struct sv_facility *out);

/* Fork: the parent becomes the guardian (never returns, exits with the
 * supervisor's status, ends the tree if the supervisor dies); returns 0 in the
 * child. Call it before any thread exists. */
int sv_guard(struct sv_err *err);

/* tmp is the session's private folder ("" = none); it is put where the blob's
 * patterns start with byte 0x01. */
sv_session *sv_open(const uint8_t *blob, size_t len, const char *tmp, struct sv_err *err);
/* Returns the main command's pid (> 0). Call it before any thread exists. */
int sv_spawn(sv_session *s, const struct sv_start *start, struct sv_err *err);
/* Events as consecutive msgpack arrays; waits up to timeout_ms for the first.
 * Returns bytes written, 0 = none came, or the session's state changed. */
int64_t sv_poll(sv_session *s, uint8_t *buf, size_t cap, int timeout_ms);
/* How rule i of the session's policy is called; -ENOENT past the end. */
int sv_rule(sv_session *s, int i, struct sv_rule_text *out);
int sv_status(sv_session *s, struct sv_status *out);
/* sig 0: end the whole tree now. Otherwise: send sig to the main command. */
int sv_kill(sv_session *s, int sig);
void sv_close(sv_session *s);

/* One question to the matcher, without a session. op is one or more enum
 * sv_op bits. For SV_OP_EXEC argv may be given (NUL-separated, argc strings);
 * name is the program as called, path its true path. blocks: bits of the blocks
 * that the asking process is in. */
int sv_decide(const uint8_t *blob, size_t len, const char *tmp, uint32_t op,
	      const uint8_t *path, size_t path_len, const uint8_t *name, size_t name_len,
	      const uint8_t *argv, size_t argv_len, uint32_t blocks, struct sv_verdict *out,
	      struct sv_err *err);
/* The same about a network operation: op is one enum sv_net_op, subject as kind says
 * (enum sv_net_kind), port that of an address. */
int sv_decide_net(const uint8_t *blob, size_t len, const char *tmp, uint32_t op, int kind,
		  const uint8_t *subject, size_t n, int port, uint32_t blocks,
		  struct sv_verdict *out, struct sv_err *err);
/* The same about a signal to one or more enum sv_who. */
int sv_decide_signal(const uint8_t *blob, size_t len, const char *tmp, int sig, uint32_t who,
		     struct sv_verdict *out, struct sv_err *err);
/* Bits of the blocks that a program starts, or -errno. */
int sv_starts(const uint8_t *blob, size_t len, const char *tmp, const uint8_t *path, size_t path_len,
	      const uint8_t *name, size_t name_len, struct sv_err *err);
/* cffi: end */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
