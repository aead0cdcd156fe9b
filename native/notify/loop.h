/* loop.h - the worker threads: receive, decode, judge, carry out.
 *
 * Workers never run Python and never wait for a person; each blocks in RECV
 * only. A held or slow call is somebody else's (side threads, tracer). */
#ifndef SV_NOTIFY_LOOP_H
#define SV_NOTIFY_LOOP_H

#include "broker/work.h"

struct sv_loop;

/* As many as there are processors for, within bounds. */
int sv_loop_workers(void);
struct sv_loop *sv_loop_start(struct sv_shared *sh, int workers, struct sv_err *err);
/* Calls that a worker has in hand right now. */
int sv_loop_busy(struct sv_loop *loop);
/* Ends the threads; the ring must be closed or read meanwhile. */
void sv_loop_stop(struct sv_loop *loop);

#endif
