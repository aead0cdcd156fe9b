/* local.h - local (AF_UNIX) sockets. */
#ifndef SV_BROKER_LOCAL_H
#define SV_BROKER_LOCAL_H

#include "broker/peer.h"

#include <sys/un.h>

/* Each decides, carries out on the duplicate of the caller's socket, and answers. */
void sv_local_bind(struct sv_work *w, const struct sv_sock *s, const struct sv_addr *addr);
void sv_local_connect(struct sv_work *w, const struct sv_sock *s, const struct sv_addr *addr);
/* Whom an address of a local socket reaches, as what connects or sends there may use: with
 * a path, through the pin in w->place[0], which must stay open until then. 0, or what
 * sv_turn_down() takes. */
int sv_local_reach(struct sv_work *w, uint32_t op, const struct sv_addr *addr, struct sv_addr *to,
		   struct sv_no *no);
void sv_local_listen(struct sv_work *w, const struct sv_sock *s);

#endif
