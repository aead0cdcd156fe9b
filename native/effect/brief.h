/* brief.h - what may block, but nearly never does, stays on the worker: for 20 ms.
 *
 * A thread of its own costs more than a connect to this machine. */
#ifndef SV_EFFECT_BRIEF_H
#define SV_EFFECT_BRIEF_H

#include <sys/socket.h>

/* connect(2): 0 or -errno; -EINTR when it took too long, and it goes on meanwhile. */
int sv_brief_connect(int fd, const struct sockaddr *to, socklen_t len);

#endif
