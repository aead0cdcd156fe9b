/* model.h - the nouns that flow through the core: call -> verdict -> event.
 * No functions, no state: every part may include this file. */
#ifndef SV_MODEL_H
#define SV_MODEL_H

#include "supervise.h"

#include <stdbool.h>
#include <sys/types.h>

enum { SV_PATH_MAX = 4096 };		/* as the kernel's, NUL included */
enum { SV_ARGS = 6 };
/* Blocks of a policy, and the limit that says in which a process is: effect/label.h. */
enum { SV_BLOCKS = 16, SV_LABEL_BASE = 0xffff, SV_LABEL_ALL = 0xffff };

/* A byte string that is not owned. Paths are bytes, never text. */
struct sv_str {
	const uint8_t *p;
	size_t n;
};

/* What a notification says, before anything of the target is read. */
struct sv_call {
	uint64_t id;		/* the kernel's cookie */
	pid_t tid;
	int nr;
	uint64_t args[SV_ARGS];
};

enum sv_rule_kind { SV_RULE_FILES, SV_RULE_EXEC, SV_RULE_NETWORK, SV_RULE_SIGNAL };
enum sv_dest_kind { SV_DEST_NONE, SV_DEST_FILE, SV_DEST_TREE, SV_DEST_ARGV, SV_DEST_TRASH };
enum sv_record { SV_RECORD_DENIALS, SV_RECORD_CHANGES, SV_RECORD_ALL };

/* What the matcher says about one subject. */
struct sv_match {
	enum sv_action action;
	int rule;		/* index, -1 = the default */
	int err;		/* errno of a refusal, never 0 */
	int pin;		/* exec: 1 + the rule that says which bytes the program has, 0 = none */
	int prefix;		/* steer: bytes of the subject's path that the pattern's literal folder covers */
	int matched;		/* rules that matched */
	int rules[16];		/* the first of them, strictest first */
};

/* One record of the event stream. */
struct sv_event {
	enum sv_event_kind kind;
	pid_t tid;
	int nr;
	uint32_t ops;
	enum sv_action action;
	enum sv_effect effect;
	int rule;
	int err;		/* errno the target saw, 0 = success */
	struct sv_str path;	/* true path, or the path as given when unresolved */
	struct sv_str path2;
	struct sv_str comm;
	struct sv_str detail;	/* argv joined by NUL, or a sentence */
};

#endif
