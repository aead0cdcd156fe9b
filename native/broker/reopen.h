/* reopen.h - from a pinned object to a descriptor for the target. */
#ifndef SV_BROKER_REOPEN_H
#define SV_BROKER_REOPEN_H

#include "broker/work.h"

/* Opens the object itself (never its name) with the target's flags and hands
 * it over; what may block goes to a side thread. Answers the call. */
void sv_reopen_and_give(struct sv_work *w, struct sv_place *p, uint64_t flags);

/* The target's flags for an object that is settled: none about names. */
int sv_settled_flags(uint64_t flags);
/* Takes O_NONBLOCK, with which fd was opened for the supervisor's sake, off
 * again. 0 or -errno. */
int sv_make_blocking(int fd, uint64_t flags);

#endif
