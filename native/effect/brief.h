/* brief.h - what may block, but nearly never does, stays on the worker: for 20 ms.
 *
 * A thread of its own costs more than a connect to this machine. */
#ifndef SV_EFFECT_BRIEF_H
#define SV_EFFECT_BRIEF_H

#include <stdbool.h>
#include <sys/socket.h>

/* connect(2): 0 or -errno; -EINTR when it took too long, and it goes on meanwhile. waits: the
 * socket may; then one thread at a time does, and for others it is -EINTR at once, so that
 * servers that do not answer keep one worker and no more. For one that does not wait the
 * clock runs all the same: its owner may change that at any moment. */
int sv_brief_connect(int fd, const struct sockaddr *to, socklen_t len, bool waits);

#endif
