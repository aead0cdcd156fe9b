/* slow.h - connecting where that may take its time. */
#ifndef SV_BROKER_SLOW_H
#define SV_BROKER_SLOW_H

#include "broker/peer.h"

/* Connects the caller's socket, whose duplicate it takes, on a side thread, which answers.
 * keep: a descriptor that the address goes through, which it takes, too; or NULL. */
void sv_connect_slowly(struct sv_work *w, const struct sv_addr *to, int *keep);
/* Connects to what answers at once or is not far, or where the socket does not wait: on
 * this thread, where that takes too long as above. Answers. */
void sv_connect_near(struct sv_work *w, const struct sv_sock *s, const struct sv_addr *to,
		     int *keep);
/* Whether calls on it may wait. */
bool sv_may_wait(const struct sv_sock *s);

#endif
