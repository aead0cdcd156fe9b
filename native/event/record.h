/* record.h - one event as the bytes of the stream that sv_poll() returns.
 *
 * A record is a msgpack array of 15: kind, seq, time_ns (CLOCK_REALTIME),
 * mono_ns (CLOCK_MONOTONIC), tid, nr, ops, action, effect, rule, err, path,
 * path2, comm, detail; the last four are bin, the rest integers. The sequence
 * number is a placeholder of 8 bytes at SV_SEQ_AT that the ring fills in. */
#ifndef SV_EVENT_RECORD_H
#define SV_EVENT_RECORD_H

#include "model.h"

enum {
	SV_RECORD_PATH_MAX = 4096,
	SV_RECORD_DETAIL_MAX = 8192,
	SV_RECORD_COMM_MAX = 64,
	/* 65 bytes of integers, 13 of headers, and the four byte strings */
	SV_RECORD_MAX = 80 + 2 * SV_RECORD_PATH_MAX + SV_RECORD_DETAIL_MAX + SV_RECORD_COMM_MAX
};

/* Writes the record of e, stamped with the present time, into buf; longer byte
 * strings are cut at the limits above. Returns its length, or -EMSGSIZE when it
 * does not fit (never with SV_RECORD_MAX bytes), or -EINVAL for a kind out of
 * 0..127. Reads the clocks, nothing else; any thread. */
int64_t sv_record_write(const struct sv_event *e, uint8_t *buf, size_t cap);

#endif
