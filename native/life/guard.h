/* guard.h - the guardian: the process above the supervisor.
 *
 * It is the one the user started. It waits for the supervisor, passes signals
 * on and, should the supervisor die without ending its tree, ends the tree:
 * both are subreapers, so whatever lives is its descendant. The supervisor in
 * turn watches the guardian through a pipe. */
#ifndef SV_LIFE_GUARD_H
#define SV_LIFE_GUARD_H

#include "model.h"

#include <signal.h>

struct sv_ipc;

/* Readable (end of file) when the guardian is gone; -1 without one. */
int sv_guard_lifeline(void);
/* The signal mask that the user started us with; NULL when sv_guard was not
 * called. */
const sigset_t *sv_guard_mask(void);
/* The shell knows the guardian only: a command that stops itself, as an editor does
 * on Ctrl-Z, stops the guardian too, and so when it goes on. Takes the command and
 * its status; false = it is an end. */
bool sv_guard_follow(pid_t command, int wstatus);
/* The table of System V objects that the guardian clears when all is over; a new
 * one where there is no guardian, or its table was taken. The caller's; NULL with
 * err filled. */
struct sv_ipc *sv_guard_ipc(struct sv_err *err);
/* The signals that guardian and supervisor take by hand and pass on. */
void sv_forwarded_signals(sigset_t *set);

#endif
