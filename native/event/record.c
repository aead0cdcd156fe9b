/* record.c - the fields of an event, in the order of the format. */
#include "event/record.h"

#include "base/mpack.h"

#include <errno.h>
#include <time.h>

enum { FIELDS = 15 };

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void put_bytes(struct sv_mw *w, struct sv_str s, size_t max)
{
	if (s.n > max)
		s.n = max;
	sv_mw_bin(w, s);
}

int64_t sv_record_write(const struct sv_event *e, uint8_t *buf, size_t cap)
{
	struct sv_mw w;

	/* one byte for the kind is what puts the number at SV_SEQ_AT */
	if ((int)e->kind < 0 || (int)e->kind > 127)
		return -EINVAL;
	sv_mw_init(&w, buf, cap);
	sv_mw_array(&w, FIELDS);
	sv_mw_uint(&w, (uint64_t)e->kind);
	sv_mw_uint(&w, UINT64_MAX);
	sv_mw_uint(&w, clock_ns(CLOCK_REALTIME));
	sv_mw_uint(&w, clock_ns(CLOCK_MONOTONIC));
	sv_mw_int(&w, e->tid);
	sv_mw_int(&w, e->nr);
	sv_mw_uint(&w, e->ops);
	sv_mw_uint(&w, (uint64_t)e->action);
	sv_mw_uint(&w, (uint64_t)e->effect);
	sv_mw_int(&w, e->rule);
	sv_mw_int(&w, e->err);
	put_bytes(&w, e->path, SV_RECORD_PATH_MAX);
	put_bytes(&w, e->path2, SV_RECORD_PATH_MAX);
	put_bytes(&w, e->comm, SV_RECORD_COMM_MAX);
	put_bytes(&w, e->detail, SV_RECORD_DETAIL_MAX);
	return w.over ? -EMSGSIZE : (int64_t)w.n;
}
