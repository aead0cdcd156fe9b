/* mpack.h - the part of msgpack that blobs and events use.
 *
 * Reader: strict and bounded over a buffer that the caller keeps alive. Every
 * call takes one value of one type; the first that does not fit makes the
 * reader bad, and from then on every call returns false and moves nothing.
 * Lengths and counts are checked against the bytes that are left, so a count
 * can be trusted for an allocation. Nesting is the caller's: nothing recurses.
 *
 * Writer: into the caller's buffer. What does not fit sets `over` and writes
 * nothing; n stays the number of good bytes. Threads: none shared. */
#ifndef SV_BASE_MPACK_H
#define SV_BASE_MPACK_H

#include "model.h"

struct sv_mp {
	const uint8_t *p;
	const uint8_t *end;
	bool bad;
};

void sv_mp_init(struct sv_mp *r, const uint8_t *buf, size_t len);
/* An integer 0..max. */
bool sv_mp_uint(struct sv_mp *r, uint64_t max, uint64_t *out);
/* Text or bytes of at most max bytes; out points into the buffer. */
bool sv_mp_str(struct sv_mp *r, size_t max, struct sv_str *out);
bool sv_mp_bin(struct sv_mp *r, size_t max, struct sv_str *out);
/* An array header of at most max elements. */
bool sv_mp_array(struct sv_mp *r, size_t max, size_t *out);
/* Takes a nil if one comes next; false without harm otherwise. */
bool sv_mp_nil(struct sv_mp *r);
/* True when everything was read and nothing was wrong. */
bool sv_mp_done(const struct sv_mp *r);

struct sv_mw {
	uint8_t *p;
	size_t cap;
	size_t n;
	bool over;
};

void sv_mw_init(struct sv_mw *w, uint8_t *buf, size_t cap);
void sv_mw_uint(struct sv_mw *w, uint64_t v);
void sv_mw_int(struct sv_mw *w, int64_t v);
void sv_mw_str(struct sv_mw *w, struct sv_str s);
void sv_mw_bin(struct sv_mw *w, struct sv_str s);
void sv_mw_array(struct sv_mw *w, uint32_t count);
void sv_mw_nil(struct sv_mw *w);

#endif
