/* sending.h - one message on its way, for broker/send.c. */
#ifndef SV_BROKER_SENDING_H
#define SV_BROKER_SENDING_H

#include "broker/peer.h"
#include "decode/message.h"

/* One message on its way; on a side thread where it has to wait. */
struct sv_sending_job {
	struct sv_message m;
	struct sv_no no;
	struct sv_addr to;
	int keep;		/* what the address goes through */
	struct sv_sock s;
	int flags;
	size_t done;		/* bytes of what was copied that are sent */
	size_t before;		/* bytes of a stream that were sent before those */
	struct sv_call call;
	struct sv_tracee t;	/* for a side thread, which reads on */
	int listener;
	uint64_t id;
	pid_t tid;
	uint64_t len_at;	/* sendmmsg: where the length goes, else 0 */
};

/* Kinds that have connections. */
bool sv_is_connected_kind(const struct sv_sock *s);
/* A job for the call, on the socket w->in.sock; NULL: answered, there is no memory. */
struct sv_sending_job *sv_sending_begin(struct sv_work *w, const struct sv_sock *s);
void sv_sending_free(struct sv_sending_job *j);
/* Sends what goes at once: the bytes, or -errno. */
ssize_t sv_sending_try(struct sv_sending_job *j);
/* Of a vector: writes the length. False: the caller's memory does not take it. */
bool sv_sending_tell(const struct sv_sending_job *j, ssize_t n);
/* Sends a message that may be sent, slowly where it has to wait, and answers. Frees j. */
void sv_sending_finish(struct sv_work *w, struct sv_sending_job *j);
/* The same after sv_sending_try() said n. */
void sv_sending_finish_first(struct sv_work *w, struct sv_sending_job *j, ssize_t n);

#endif
