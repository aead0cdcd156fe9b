/* local.h - local (AF_UNIX) sockets that are bound to paths. */
#ifndef SV_BROKER_LOCAL_H
#define SV_BROKER_LOCAL_H

#include "broker/work.h"

#include <sys/un.h>

/* bind and connect by path, and listen: between programs of the tree they work, on a
 * duplicate of the caller's socket. `addr`, of len bytes, is the address as it was
 * read once. False: this is none of it, nothing was answered. */
bool sv_local_bind(struct sv_work *w, const struct sockaddr_un *addr, int len);
bool sv_local_connect(struct sv_work *w, const struct sockaddr_un *addr, int len);
bool sv_local_listen(struct sv_work *w);
/* What the kernel says of the descriptor before it looks at anything else, or 0. */
int sv_socket_errno(const struct sv_work *w);

#endif
