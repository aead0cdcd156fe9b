/* side.h - calls that may block leave the worker.
 *
 * An open of a FIFO, a terminal or a slow device, or a copy of a large file,
 * runs on a thread of its own. A watcher looks every 20 ms at what is under
 * way: when the target is gone, or has a signal that it must handle, the
 * thread is interrupted and the call answered with ERESTARTSYS, so the
 * handler runs and the kernel restarts the call or returns EINTR, as natively. */
#ifndef SV_EFFECT_SIDE_H
#define SV_EFFECT_SIDE_H

#include "model.h"

#include <stdatomic.h>

struct sv_side;

/* Interrupts what blocks: a real-time signal that does nothing else here. */
enum { SV_WAKE_SIGNAL = 35 };

struct sv_side *sv_side_start(int listener, int proc_fd, struct sv_err *err);
/* Runs fn(arg) on a side thread for the call; fn frees arg. -EAGAIN when the
 * limit of threads is reached: the caller answers ENFILE. */
int sv_side_run(struct sv_side *side, const struct sv_call *call, void (*fn)(void *), void *arg);
/* For fn: was I interrupted because the call is over (gone or restarted)? */
bool sv_side_cancelled(void);
/* For fn: the same, to be looked at by others; NULL outside of a job. */
const atomic_bool *sv_side_stop_flag(void);
/* For fn, before it answers its call: false when nobody waits any more. No
 * signal disturbs it from here on. */
bool sv_side_claim(void);
/* What a job answers that was interrupted: the handler runs, then the call is
 * made again or fails with EINTR, as the program chose. */
enum { SV_RESTART = 512 };
/* Interrupts and waits for all of them. */
void sv_side_stop(struct sv_side *side);

#endif
