/* exec_hash.c - reads a pinned program at its exec stop, away from the tracer's
 * thread: the others go on meanwhile. */
#include "effect/hash.h"
#include "effect/tracer.h"

#include "base/fd.h"

#include <stdlib.h>
#include <string.h>

enum { STACK = 128 * 1024 };

static void publish(struct sv_hashing *h)
{
	struct sv_tracer *t = h->t;

	pthread_mutex_lock(&t->lock);
	h->next = t->hashed;
	t->hashed = h;
	/* Under the lock: once the last hasher is out, the tracer may be freed. */
	sv_tracer_ring(t);
	t->hashers--;
	pthread_cond_signal(&t->idle);
	pthread_mutex_unlock(&t->lock);
}

static void *run(void *arg)
{
	struct sv_hashing *h = arg;

	if (sv_hash_is(h->fd, &h->t->hash_stop, h->want, h->why))
		h->why[0] = 0;
	sv_close_fd(&h->fd);
	publish(h);
	return NULL;
}

static bool start(struct sv_tracer *t, struct sv_hashing *h)
{
	pthread_attr_t attr;
	pthread_t thread;
	bool ok;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_mutex_lock(&t->lock);
	ok = pthread_create(&thread, &attr, run, h) == 0;
	t->hashers += ok;
	pthread_mutex_unlock(&t->lock);
	pthread_attr_destroy(&attr);
	return ok;
}

const char *sv_hash_begin(struct sv_tracer *t, struct sv_task *task, const struct sv_exec_seen *seen)
{
	struct sv_hashing *h = calloc(1, sizeof(*h));
	const char *why;

	if (!h)
		return "no memory to read the new program";
	*h = (struct sv_hashing){ .t = t, .task = task, .fd = -1, .seen = *seen };
	memcpy(h->want, task->plan.digest, sizeof(h->want));
	why = sv_exec_open_image(&task->plan, task->tgid, &h->fd);
	if (!why && !start(t, h))
		why = "no thread could be started to read the new program";
	if (why) {
		sv_close_fd(&h->fd);
		free(h);
		return why;
	}
	task->hashing = h;
	sv_task_state_set(t, task, SV_TASK_HASHING);
	return NULL;
}

struct sv_hashing *sv_hash_next(struct sv_tracer *t)
{
	struct sv_hashing *h;

	pthread_mutex_lock(&t->lock);
	h = t->hashed;
	if (h)
		t->hashed = h->next;
	pthread_mutex_unlock(&t->lock);
	if (h && h->task)
		h->task->hashing = NULL;
	return h;
}

void sv_hash_forget(struct sv_task *task)
{
	if (task->hashing)
		task->hashing->task = NULL;
	task->hashing = NULL;
}

void sv_hash_end(struct sv_tracer *t)
{
	struct sv_hashing *h;

	atomic_store(&t->hash_stop, true);
	pthread_mutex_lock(&t->lock);
	while (t->hashers > 0)
		pthread_cond_wait(&t->idle, &t->lock);
	pthread_mutex_unlock(&t->lock);
	while ((h = sv_hash_next(t)) != NULL)
		free(h);
}
