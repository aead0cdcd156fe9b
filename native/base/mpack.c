/* mpack.c - one head decoder, one head encoder; the rest is types. */
#include "base/mpack.h"

#include <string.h>

void sv_mp_init(struct sv_mp *r, const uint8_t *buf, size_t len)
{
	r->p = buf;
	r->end = buf + len;
	r->bad = false;
}

static size_t left(const struct sv_mp *r)
{
	return (size_t)(r->end - r->p);
}

static bool fail(struct sv_mp *r)
{
	r->bad = true;
	return false;
}

/* The big-endian number of `width` bytes after the head byte; moves past both. */
static bool head(struct sv_mp *r, size_t width, uint64_t *out)
{
	uint64_t v = 0;

	if (left(r) < width + 1)
		return fail(r);
	for (size_t i = 1; i <= width; i++)
		v = v << 8 | r->p[i];
	r->p += width + 1;
	*out = v;
	return true;
}

/* The first byte, without moving; -1 when there is none. */
static int peek(struct sv_mp *r)
{
	if (r->bad || r->p == r->end) {
		r->bad = true;
		return -1;
	}
	return *r->p;
}

bool sv_mp_uint(struct sv_mp *r, uint64_t max, uint64_t *out)
{
	int b = peek(r);
	uint64_t v;

	if (b < 0)
		return false;
	if (b < 0x80) {
		v = (uint64_t)b;
		r->p++;
	} else if (b >= 0xcc && b <= 0xcf) {
		if (!head(r, (size_t)1 << (b - 0xcc), &v))
			return false;
	} else {
		return fail(r);
	}
	if (v > max)
		return fail(r);
	*out = v;
	return true;
}

static bool body(struct sv_mp *r, uint64_t n, size_t max, struct sv_str *out)
{
	if (n > max || n > left(r))
		return fail(r);
	out->p = r->p;
	out->n = (size_t)n;
	r->p += n;
	return true;
}

/* A value whose long forms are `first`, `first`+1, ... with width, 2*width, ...
 * bytes of length, and whose short form is base..base+span-1. */
static bool length(struct sv_mp *r, int base, int span, int first, size_t width, uint64_t *n)
{
	int b = peek(r);

	if (b < 0)
		return false;
	if (b >= base && b < base + span) {
		*n = (uint64_t)(b - base);
		r->p++;
		return true;
	}
	for (; width <= 4; width *= 2, first++)
		if (b == first)
			return head(r, width, n);
	return fail(r);
}

bool sv_mp_str(struct sv_mp *r, size_t max, struct sv_str *out)
{
	uint64_t n;

	return length(r, 0xa0, 32, 0xd9, 1, &n) && body(r, n, max, out);
}

bool sv_mp_bin(struct sv_mp *r, size_t max, struct sv_str *out)
{
	uint64_t n;

	return length(r, 0, 0, 0xc4, 1, &n) && body(r, n, max, out);
}

bool sv_mp_array(struct sv_mp *r, size_t max, size_t *out)
{
	uint64_t n;

	if (!length(r, 0x90, 16, 0xdc, 2, &n))
		return false;
	/* An element takes a byte at least. */
	if (n > max || n > left(r))
		return fail(r);
	*out = (size_t)n;
	return true;
}

bool sv_mp_nil(struct sv_mp *r)
{
	if (r->bad || r->p == r->end || *r->p != 0xc0)
		return false;
	r->p++;
	return true;
}

bool sv_mp_done(const struct sv_mp *r)
{
	return !r->bad && r->p == r->end;
}

void sv_mw_init(struct sv_mw *w, uint8_t *buf, size_t cap)
{
	w->p = buf;
	w->cap = cap;
	w->n = 0;
	w->over = false;
}

/* A head byte, `width` big-endian bytes of v, then n bytes of data: all or nothing. */
static void put(struct sv_mw *w, int first, size_t width, uint64_t v, struct sv_str data)
{
	size_t room = w->cap - w->n;

	if (w->over || room < 1 + width || room - 1 - width < data.n) {
		w->over = true;
		return;
	}
	w->p[w->n++] = (uint8_t)first;
	for (size_t i = width; i > 0; i--)
		w->p[w->n++] = (uint8_t)(v >> (8 * (i - 1)));
	if (data.n)
		memcpy(w->p + w->n, data.p, data.n);
	w->n += data.n;
}

/* Width of the smallest form: 1, 2, 4 or 8 bytes, as a power of two. */
static int form(uint64_t v)
{
	if (v <= UINT8_MAX)
		return 0;
	if (v <= UINT16_MAX)
		return 1;
	return v <= UINT32_MAX ? 2 : 3;
}

void sv_mw_uint(struct sv_mw *w, uint64_t v)
{
	const struct sv_str none = { NULL, 0 };
	int f = form(v);

	if (v < 0x80)
		put(w, (int)v, 0, 0, none);
	else
		put(w, 0xcc + f, (size_t)1 << f, v, none);
}

void sv_mw_int(struct sv_mw *w, int64_t v)
{
	const struct sv_str none = { NULL, 0 };
	int f = 3;

	if (v >= 0) {
		sv_mw_uint(w, (uint64_t)v);
		return;
	}
	if (v >= -32) {
		put(w, (int)(v + 256), 0, 0, none);
		return;
	}
	if (v >= INT8_MIN)
		f = 0;
	else if (v >= INT16_MIN)
		f = 1;
	else if (v >= INT32_MIN)
		f = 2;
	put(w, 0xd0 + f, (size_t)1 << f, (uint64_t)v, none);
}

void sv_mw_str(struct sv_mw *w, struct sv_str s)
{
	int f = form(s.n);

	if (f > 2)
		w->over = true;
	else if (s.n < 32)
		put(w, 0xa0 + (int)s.n, 0, 0, s);
	else
		put(w, 0xd9 + f, (size_t)1 << f, s.n, s);
}

void sv_mw_bin(struct sv_mw *w, struct sv_str s)
{
	int f = form(s.n);

	if (f > 2)
		w->over = true;
	else
		put(w, 0xc4 + f, (size_t)1 << f, s.n, s);
}

void sv_mw_array(struct sv_mw *w, uint32_t count)
{
	const struct sv_str none = { NULL, 0 };

	if (count < 16)
		put(w, 0x90 + (int)count, 0, 0, none);
	else if (count <= UINT16_MAX)
		put(w, 0xdc, 2, count, none);
	else
		put(w, 0xdd, 4, count, none);
}

void sv_mw_nil(struct sv_mw *w)
{
	const struct sv_str none = { NULL, 0 };

	put(w, 0xc0, 0, 0, none);
}
