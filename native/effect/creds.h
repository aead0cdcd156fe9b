/* creds.h - doing a call with the target's own identity.
 *
 * Needed only once a task of the tree has changed its ids or capabilities,
 * which only a supervisor with capabilities can meet. All of it is per thread
 * (raw system calls), so workers do not disturb each other. */
#ifndef SV_EFFECT_CREDS_H
#define SV_EFFECT_CREDS_H

#include "decode/tracee.h"

/* Remember the supervisor's own identity; call once before threads exist. */
int sv_creds_init(struct sv_err *err);
/* Does the supervisor hold capabilities at all? */
bool sv_creds_privileged(void);
/* Does it hold some, but not the one that a look at other identities takes? So is
 * root in most containers. */
bool sv_creds_blind(void);
/* Take the identity on, in this thread. 0, or -errno: then nothing may be done
 * for the target. *switched = sv_creds_leave() is due. */
int sv_creds_enter(const struct sv_creds *c, bool *switched);
/* The same with the effective ids, which own and open what is no file. */
int sv_creds_enter_whole(const struct sv_creds *c, bool *switched);
/* No capability in effect in this thread: what is opened now never gets to use one.
 * sv_creds_leave() is due. */
int sv_creds_bare(void);
/* Back to the supervisor's own; aborts when that fails, as a worker with the
 * wrong identity must not go on. */
void sv_creds_leave(void);

#endif
