/* spawn.h - starts the main command inside floor and filter.
 *
 * Fork before any thread exists. The child gives itself up step by step
 * (parent-death signal, no_new_privs, folder, Landlock, filter), hands the
 * listener over and waits for a byte before its first execve, which is
 * decided like every other. */
#ifndef SV_FILTER_SPAWN_H
#define SV_FILTER_SPAWN_H

#include "model.h"

#include <signal.h>

struct sv_spawn {
	const struct sv_start *start;
	const uint8_t *filter;
	size_t filter_len;
	int ruleset;		/* Landlock, -1 = none (waived by the user) */
	bool labels;		/* the policy has blocks: start with none of them */
	bool limited;		/* nothing of the tree may raise the kernel's limits */
	bool need_killable;	/* fail without WAIT_KILLABLE_RECV */
	const sigset_t *mask;	/* signal mask to restore in the child */
	/* results */
	pid_t pid;
	int listener;
	bool killable;		/* the kernel took WAIT_KILLABLE_RECV */
	int control;		/* one byte releases the child; then errno of a failed exec comes back */
};

int sv_spawn_child(struct sv_spawn *s, struct sv_err *err);
/* Lets the parked child execute. */
int sv_spawn_release(struct sv_spawn *s);

#endif
