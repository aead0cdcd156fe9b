/* ring.h - bounded queue of event records: many writers, one reader.
 *
 * Nothing is ever dropped: a writer that finds no room waits until the reader
 * has made some, first come first served, so a large record is not overtaken
 * for ever by small ones. Records of one writer stay in their order.
 *
 * A record is a msgpack array whose second element, 8 bytes from SV_SEQ_AT on,
 * is its sequence number; the ring fills it in, big-endian, counting from 1, in
 * the order in which records enter. Every call is safe from every thread, save
 * sv_ring_get (one reader) and sv_ring_free (nobody else any more). */
#ifndef SV_EVENT_RING_H
#define SV_EVENT_RING_H

#include "supervise.h"

enum { SV_SEQ_AT = 3, SV_RING_RECORD_MIN = SV_SEQ_AT + 8 };

struct sv_ring;

/* A ring of cap bytes (4 more are used for each record). NULL and err: cap is
 * out of 64..1 GiB, no memory, or no descriptor for the eventfd. */
struct sv_ring *sv_ring_new(size_t cap, struct sv_err *err);
void sv_ring_free(struct sv_ring *r);

/* Appends one record, waiting for room. Returns 0; -EPIPE once the ring is
 * closed, also for who waits; -EINVAL for a record that is shorter than
 * SV_RING_RECORD_MIN; -EMSGSIZE for one that could never fit. */
int sv_ring_put(struct sv_ring *r, const uint8_t *bytes, size_t n);

/* Copies as many whole records as fit into buf, one behind the other and without
 * a length, waiting up to timeout_ms (-1 = for ever) for the first. Returns
 * bytes; 0 = none came in time; -EPIPE = closed and empty; -EMSGSIZE = cap is
 * too small for the first record, which stays. */
int64_t sv_ring_get(struct sv_ring *r, uint8_t *buf, size_t cap, int timeout_ms);

/* Readable while records wait, and once the ring is closed. Owned by the ring;
 * only for poll(2). */
int sv_ring_fd(const struct sv_ring *r);

/* Takes no more records and wakes everyone; the reader may empty it. */
void sv_ring_close(struct sv_ring *r);

#endif
