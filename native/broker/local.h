/* local.h - local (AF_UNIX) sockets. */
#ifndef SV_BROKER_LOCAL_H
#define SV_BROKER_LOCAL_H

#include "broker/peer.h"

#include <sys/un.h>

/* Each decides, carries out on the duplicate of the caller's socket, and answers. */
void sv_local_bind(struct sv_work *w, const struct sv_sock *s, const struct sv_addr *addr);
void sv_local_connect(struct sv_work *w, const struct sv_sock *s, const struct sv_addr *addr);
void sv_local_listen(struct sv_work *w, const struct sv_sock *s);

#endif
