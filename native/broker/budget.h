/* budget.h - the limits of a policy that are counted here.
 *
 * One of a limit is taken before the effect, in one step for all threads: no two calls
 * get the last one. What a call took is given back where it then fails or is refused;
 * where a side thread carries it out, it stays taken. */
#ifndef SV_BROKER_BUDGET_H
#define SV_BROKER_BUDGET_H

#include "policy/blob.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SV_PEERS = 256, SV_PEER_MAX = 112 };

struct sv_work;
struct sv_shared;
struct sv_addr;
struct sv_place;

struct sv_budget {
	atomic_ullong used[SV_COUNTED];
	atomic_bool warned[SV_COUNTED];
	atomic_int ended;	/* 1 + the limit that ended the run */
	void (*end)(void *arg);
	void *end_arg;
	pthread_mutex_t lock;
	int npeers;		/* what datagrams were sent to */
	struct {
		size_t n;
		uint8_t key[SV_PEER_MAX];
	} peers[SV_PEERS];
};

/* end: ends every process of the tree; called from any thread. */
void sv_budget_init(struct sv_budget *b, void (*end)(void *arg), void *arg);
/* Has a limit ended the run? Then nothing is carried out any more. */
bool sv_budget_over(struct sv_budget *b);
/* What was used; returns 1 + the limit that ended the run, or 0. */
int sv_budget_read(struct sv_budget *b, uint64_t used[SV_COUNTED]);

/* Takes one for the call in hand, once a call and kind: 0, or -errno, which is to be
 * handed to sv_fail_call() or sv_give_result() like one of the kernel. */
int sv_take(struct sv_work *w, enum sv_limit_kind kind);
/* The same of SV_LIMIT_FILES_CREATED for a new name, and _DELETED for one that goes; a call
 * that would fail in any case fails as it would without limits. */
int sv_take_new(struct sv_work *w, const struct sv_place *p, bool folder);
int sv_take_old(struct sv_work *w, const struct sv_place *p, bool folder);
/* Takes a connection, for good: one that is refused by the other side was tried. */
int sv_take_connection(struct sv_work *w);
/* The same where a datagram goes to an address that none went to before; without a limit it
 * is not counted. */
int sv_take_peer(struct sv_work *w, const struct sv_addr *to);
/* Gives back what the call in hand took. */
void sv_give_back(struct sv_work *w);
/* The same of one limit: the call goes on in another way. */
void sv_give_back_one(struct sv_work *w, enum sv_limit_kind kind);
/* Of a call that the tracer has: an exec that came to nothing. */
void sv_give_back_exec(struct sv_shared *sh);
/* The call in hand is over a limit (w->over): the match that says so. */
void sv_over_limit(struct sv_work *w);
/* A refusal was told. Ends the run where there are too many. */
void sv_count_denied(struct sv_shared *sh, pid_t tid);
/* After a refusal by w->over was told: ends the run where the limit says so. */
void sv_end_by_limit(struct sv_work *w);

/* rename(2) in which what stands at the new name counts as deleted. */
int sv_take_and_rename(struct sv_work *w, int from, const char *a, int to, const char *b,
		       unsigned int flags);

#endif
