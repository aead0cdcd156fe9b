/* ring.c - one mutex, one condition for each side, an eventfd for poll(2).
 *
 * The eventfd's counter is 1 exactly while records wait (or the ring is
 * closed), so it is written once for each time the ring stops being empty. */
#include "event/ring.h"

#include "base/err.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 4, CAP_MIN = 64, CAP_MAX = 1 << 30 };

struct sv_ring {
	pthread_mutex_t lock;
	pthread_cond_t room;	/* writers: the turn changed or there is room */
	pthread_cond_t data;	/* the reader */
	uint8_t *buf;
	size_t cap;
	size_t head;		/* the oldest byte */
	size_t used;
	uint64_t next;		/* ticket for the next writer */
	uint64_t turn;		/* ticket of the writer that may go in */
	uint64_t seq;
	int fd;
	bool closed;
};

static int init_locks(struct sv_ring *r)
{
	pthread_condattr_t attr;
	int rc = pthread_condattr_init(&attr);

	if (rc)
		return rc;
	/* setclock cannot fail for this clock, init of the others cannot on Linux */
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->room, NULL);
	pthread_cond_init(&r->data, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

struct sv_ring *sv_ring_new(size_t cap, struct sv_err *err)
{
	struct sv_ring *r;

	if (cap < CAP_MIN || cap > CAP_MAX) {
		sv_fail(err, EINVAL, "ring", "an event ring has %d to %d bytes, not %zu", CAP_MIN,
			CAP_MAX, cap);
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		sv_fail(err, ENOMEM, "ring", "no memory for the event ring");
		return NULL;
	}
	r->cap = cap;
	r->buf = malloc(cap);
	r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!r->buf || r->fd < 0 || init_locks(r)) {
		sv_fail(err, r->fd < 0 ? errno : ENOMEM, "ring",
			"the event ring of %zu bytes could not be made", cap);
		if (r->fd >= 0)
			close(r->fd);
		free(r->buf);
		free(r);
		return NULL;
	}
	return r;
}

void sv_ring_free(struct sv_ring *r)
{
	if (!r)
		return;
	pthread_cond_destroy(&r->data);
	pthread_cond_destroy(&r->room);
	pthread_mutex_destroy(&r->lock);
	close(r->fd);
	free(r->buf);
	free(r);
}

int sv_ring_fd(const struct sv_ring *r)
{
	return r->fd;
}

/* The counter stays far below its limit, so neither call can fail. */
static void signal_fd(const struct sv_ring *r)
{
	uint64_t one = 1;
	ssize_t n = write(r->fd, &one, sizeof(one));

	(void)n;
}

static void quiet_fd(const struct sv_ring *r)
{
	uint64_t count;
	ssize_t n = read(r->fd, &count, sizeof(count));

	(void)n;
}

static void copy_in(struct sv_ring *r, const uint8_t *bytes, size_t n)
{
	size_t at = (r->head + r->used) % r->cap;
	size_t first = n < r->cap - at ? n : r->cap - at;

	memcpy(r->buf + at, bytes, first);
	memcpy(r->buf, bytes + first, n - first);
	r->used += n;
}

/* Copies n bytes that begin skip bytes behind the oldest; takes nothing. */
static void copy_out(const struct sv_ring *r, size_t skip, uint8_t *out, size_t n)
{
	size_t at = (r->head + skip) % r->cap;
	size_t first = n < r->cap - at ? n : r->cap - at;

	memcpy(out, r->buf + at, first);
	memcpy(out + first, r->buf, n - first);
}

static void enter(struct sv_ring *r, const uint8_t *bytes, size_t n)
{
	uint32_t len = (uint32_t)n;
	uint8_t header[HEADER], seq[8];

	memcpy(header, &len, sizeof(len));
	r->seq++;
	for (int i = 0; i < 8; i++)
		seq[i] = (uint8_t)(r->seq >> (56 - 8 * i));
	if (r->used == 0)
		signal_fd(r);
	copy_in(r, header, HEADER);
	copy_in(r, bytes, SV_SEQ_AT);
	copy_in(r, seq, sizeof(seq));
	copy_in(r, bytes + SV_RING_RECORD_MIN, n - SV_RING_RECORD_MIN);
}

int sv_ring_put(struct sv_ring *r, const uint8_t *bytes, size_t n)
{
	uint64_t mine;
	int rc = 0;

	if (n < SV_RING_RECORD_MIN)
		return -EINVAL;
	if (n > r->cap - HEADER)
		return -EMSGSIZE;
	pthread_mutex_lock(&r->lock);
	mine = r->next++;
	while (!r->closed && (r->turn != mine || r->cap - r->used < HEADER + n))
		pthread_cond_wait(&r->room, &r->lock);
	if (r->closed) {
		rc = -EPIPE;
	} else {
		enter(r, bytes, n);
		r->turn++;
		pthread_cond_signal(&r->data);
		if (r->turn != r->next)
			pthread_cond_broadcast(&r->room);
	}
	pthread_mutex_unlock(&r->lock);
	return rc;
}

/* Waits with the lock held until a record is there, the ring closes or the
 * time is over. */
static void wait_data(struct sv_ring *r, int timeout_ms)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	if (timeout_ms > 0) {
		end.tv_sec += timeout_ms / 1000;
		end.tv_nsec += timeout_ms % 1000 * 1000000L;
		if (end.tv_nsec >= 1000000000L) {
			end.tv_nsec -= 1000000000L;
			end.tv_sec++;
		}
	}
	while (r->used == 0 && !r->closed && timeout_ms) {
		if (timeout_ms < 0)
			pthread_cond_wait(&r->data, &r->lock);
		else if (pthread_cond_timedwait(&r->data, &r->lock, &end))
			return;
	}
}

int64_t sv_ring_get(struct sv_ring *r, uint8_t *buf, size_t cap, int timeout_ms)
{
	size_t done = 0;
	int64_t rc;

	pthread_mutex_lock(&r->lock);
	wait_data(r, timeout_ms);
	rc = r->used ? -EMSGSIZE : r->closed ? -EPIPE : 0;
	while (r->used) {
		uint32_t len;

		copy_out(r, 0, (uint8_t *)&len, HEADER);
		if (len > cap - done)
			break;
		copy_out(r, HEADER, buf + done, len);
		r->head = (r->head + HEADER + len) % r->cap;
		r->used -= HEADER + len;
		done += len;
	}
	if (done) {
		rc = (int64_t)done;
		if (r->used == 0 && !r->closed)
			quiet_fd(r);
		if (r->turn != r->next)
			pthread_cond_broadcast(&r->room);
	}
	pthread_mutex_unlock(&r->lock);
	return rc;
}

void sv_ring_close(struct sv_ring *r)
{
	pthread_mutex_lock(&r->lock);
	if (!r->closed && r->used == 0)
		signal_fd(r);
	r->closed = true;
	pthread_cond_broadcast(&r->room);
	pthread_cond_broadcast(&r->data);
	pthread_mutex_unlock(&r->lock);
}
