/* test_ring.c - four writers and a slow reader lose nothing; edges of the ring;
 * records have the bytes that the format says. */
#include "event/record.h"
#include "event/ring.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WRITERS = 4, RECORDS = 3000, SIZE_MAX_RECORD = 200, BODY = SV_RING_RECORD_MIN };

static int failures;

#define CHECK(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			failures++; \
		} \
	} while (0)

struct writer {
	struct sv_ring *ring;
	uint8_t who;
	int rc;
	pthread_t thread;
};

/* [size][0][0][seq x 8][who][count x 4][who ...] */
static size_t make(uint8_t *b, uint8_t who, uint32_t count)
{
	size_t n = BODY + 5 + (count * 7 + who) % (SIZE_MAX_RECORD - BODY - 5);

	memset(b, who, n);
	b[0] = (uint8_t)n;
	memcpy(b + BODY + 1, &count, 4);
	return n;
}

static void *write_all(void *arg)
{
	struct writer *w = arg;
	uint8_t b[SIZE_MAX_RECORD];

	for (uint32_t i = 0; i < RECORDS && !w->rc; i++)
		w->rc = sv_ring_put(w->ring, b, make(b, w->who, i));
	return NULL;
}

static uint64_t seq_of(const uint8_t *b)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | b[SV_SEQ_AT + i];
	return v;
}

static void start(struct writer *w, struct sv_ring *r)
{
	for (uint8_t i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){ .ring = r, .who = (uint8_t)(i + 1) };
		CHECK(pthread_create(&w[i].thread, NULL, write_all, &w[i]) == 0);
	}
}

static void check_batch(const uint8_t *b, size_t n, uint32_t *next, uint64_t *seq)
{
	for (size_t at = 0; at < n; at += b[at]) {
		uint8_t who = b[at + BODY], want[SIZE_MAX_RECORD];
		size_t len;

		CHECK(who >= 1 && who <= WRITERS && seq_of(b + at) == ++*seq);
		if (failures)
			return;
		len = make(want, who, next[who]++);
		CHECK(b[at] == len && !memcmp(b + at + BODY, want + BODY, len - BODY));
	}
}

/* A reader that sleeps now and then, with a ring for about five records. */
static void nothing_lost(void)
{
	struct sv_ring *r = sv_ring_new(700, NULL);
	struct writer w[WRITERS];
	uint32_t next[WRITERS + 1] = { 0 };
	uint8_t buf[450];
	uint64_t seq = 0;

	start(w, r);
	while (seq < WRITERS * RECORDS && !failures) {
		struct pollfd p = { .fd = sv_ring_fd(r), .events = POLLIN };
		int64_t n;

		CHECK(poll(&p, 1, 10000) == 1);
		n = sv_ring_get(r, buf, sizeof(buf), 0);
		CHECK(n > 0);
		if (n > 0)
			check_batch(buf, (size_t)n, next, &seq);
		if (seq % 64 == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	}
	sv_ring_close(r);
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(w[i].thread, NULL);
		CHECK(w[i].rc == 0 && next[i + 1] == RECORDS);
	}
	CHECK(sv_ring_get(r, buf, sizeof(buf), 0) == -EPIPE);
	sv_ring_free(r);
}

/* Writers that wait in a full ring come back with -EPIPE. */
static void close_wakes(void)
{
	struct sv_ring *r = sv_ring_new(400, NULL);
	struct writer w[WRITERS];
	struct pollfd p = { .events = POLLIN };
	uint8_t buf[SIZE_MAX_RECORD];

	start(w, r);
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	sv_ring_close(r);
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(w[i].thread, NULL);
		CHECK(w[i].rc == -EPIPE);
	}
	while (sv_ring_get(r, buf, sizeof(buf), 0) > 0)
		;
	CHECK(sv_ring_get(r, buf, sizeof(buf), -1) == -EPIPE);
	p.fd = sv_ring_fd(r);
	CHECK(poll(&p, 1, 0) == 1);
	sv_ring_free(r);
}

static void edges(void)
{
	struct sv_err err = { 0 };
	struct sv_ring *r;
	uint8_t b[SIZE_MAX_RECORD] = { 0 };
	struct pollfd p = { .events = POLLIN };

	CHECK(!sv_ring_new(63, &err) && err.code == EINVAL && err.msg[0]);
	r = sv_ring_new(64, &err);
	p.fd = sv_ring_fd(r);
	CHECK(poll(&p, 1, 0) == 0);
	CHECK(sv_ring_get(r, b, sizeof(b), 0) == 0);
	CHECK(sv_ring_get(r, b, sizeof(b), 15) == 0);
	CHECK(sv_ring_put(r, b, SV_RING_RECORD_MIN - 1) == -EINVAL);
	CHECK(sv_ring_put(r, b, 61) == -EMSGSIZE);
	CHECK(sv_ring_put(r, b, 60) == 0);
	CHECK(poll(&p, 1, 0) == 1);
	CHECK(sv_ring_get(r, b, 59, 0) == -EMSGSIZE);
	CHECK(sv_ring_get(r, b, 60, 0) == 60 && seq_of(b) == 1);
	CHECK(poll(&p, 1, 0) == 0);
	CHECK(sv_ring_put(r, b, SV_RING_RECORD_MIN) == 0);
	sv_ring_close(r);
	CHECK(sv_ring_put(r, b, SV_RING_RECORD_MIN) == -EPIPE);
	CHECK(sv_ring_get(r, b, 60, 0) == SV_RING_RECORD_MIN && seq_of(b) == 2);
	CHECK(sv_ring_get(r, b, 60, 0) == -EPIPE);
	sv_ring_free(r);
	sv_ring_free(NULL);
}

static void records(void)
{
	static uint8_t big[2 * SV_RECORD_DETAIL_MAX], out[SV_RECORD_MAX];
	static const uint8_t tail[] = {
		0xcd, 0x05, 0x39,		/* tid 1337 */
		0xcd, 0x01, 0x01,		/* nr 257 */
		0x04, 0x03, 0x02, 0xff, 0x0d,	/* create, deny, errno, rule -1, EACCES */
		0xc4, 2, '/', 0xfe, 0xc4, 0, 0xc4, 2, 's', 'h', 0xc4, 0,
	};
	struct sv_event e = {
		.kind = SV_EVENT_CALL, .tid = 1337, .nr = 257, .ops = SV_OP_CREATE,
		.action = SV_DENY, .effect = SV_EFFECT_ERRNO, .rule = -1, .err = EACCES,
		.path = { (const uint8_t *)"/\xfe", 2 }, .comm = { (const uint8_t *)"sh", 2 },
	};
	int64_t n = sv_record_write(&e, out, sizeof(out));

	CHECK(n == SV_RING_RECORD_MIN + 18 + (int64_t)sizeof(tail));
	CHECK(out[0] == 0x9f && out[1] == SV_EVENT_CALL && out[2] == 0xcf);
	CHECK(out[11] == 0xcf && out[20] == 0xcf);
	CHECK(!memcmp(out + 29, tail, sizeof(tail)));
	CHECK(sv_record_write(&e, out, (size_t)n - 1) == -EMSGSIZE);
	e.path = e.path2 = e.comm = e.detail = (struct sv_str){ big, sizeof(big) };
	e.tid = e.nr = e.rule = e.err = INT32_MIN;
	e.ops = UINT32_MAX;
	n = sv_record_write(&e, out, sizeof(out));
	CHECK(n > 2 * SV_RECORD_PATH_MAX + SV_RECORD_DETAIL_MAX + SV_RECORD_COMM_MAX);
	CHECK(n <= SV_RECORD_MAX);
	e.kind = (enum sv_event_kind)200;
	CHECK(sv_record_write(&e, out, sizeof(out)) == -EINVAL);
}

int main(void)
{
	edges();
	records();
	close_wakes();
	nothing_lost();
	return failures ? 1 : 0;
}
