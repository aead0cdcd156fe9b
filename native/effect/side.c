/* side.c - elastic threads for calls that may block, and their watcher. */
#include "effect/side.h"

#include "base/err.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

enum { JOBS_MAX = 1024, STACK = 128 * 1024, TICK_MS = 20 };

struct job {
	struct job *next;
	struct sv_side *side;
	struct sv_call call;
	void (*fn)(void *);
	void *arg;
	pthread_t thread;
	atomic_bool cancelled;
	bool claimed;		/* under the lock: answers now, must not be disturbed */
};

struct sv_side {
	int listener;
	int proc_fd;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t watcher;
	struct job *jobs;
	int count;
	bool stopping;
};

static _Thread_local struct job *current;

bool sv_side_cancelled(void)
{
	return current && atomic_load(&current->cancelled);
}

const atomic_bool *sv_side_stop_flag(void)
{
	return current ? &current->cancelled : NULL;
}

/* An ADDFD that answers at once and is interrupted makes the call return 0, so
 * from here on no signal of ours may come; one that came already stays blocked. */
bool sv_side_claim(void)
{
	struct job *j = current;
	sigset_t wake;

	if (!j)
		return true;
	sigemptyset(&wake);
	sigaddset(&wake, SV_WAKE_SIGNAL);
	pthread_mutex_lock(&j->side->lock);
	j->claimed = true;
	pthread_mutex_unlock(&j->side->lock);
	pthread_sigmask(SIG_BLOCK, &wake, NULL);
	return !atomic_load(&j->cancelled);
}

static void on_wake(int sig)
{
	(void)sig;
}

static void *run(void *p)
{
	struct job *j = p;
	struct sv_side *s = j->side;
	struct job **at;

	current = j;
	j->fn(j->arg);
	pthread_mutex_lock(&s->lock);
	for (at = &s->jobs; *at != j; at = &(*at)->next)
		;
	*at = j->next;
	s->count--;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	free(j);
	return NULL;
}

static uint64_t hex_field(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? strtoull(p + strlen(key), NULL, 16) : 0;
}

/* A pending signal that is neither blocked nor ignored: the task would have
 * been woken by it. */
static bool signal_waits(const struct sv_side *s, pid_t tid)
{
	char name[32], text[4096];
	cleanup_fd int fd = -1;
	uint64_t pending;
	ssize_t k;

	snprintf(name, sizeof(name), "%d/status", (int)tid);
	fd = openat(s->proc_fd, name, O_RDONLY | O_CLOEXEC);
	k = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (k <= 0)
		return false;
	text[k] = 0;
	pending = hex_field(text, "\nSigPnd:") | hex_field(text, "\nShdPnd:");
	return (pending & ~hex_field(text, "\nSigBlk:") & ~hex_field(text, "\nSigIgn:")) != 0;
}

static void interrupt_job(struct job *j)
{
	atomic_store(&j->cancelled, true);
	pthread_kill(j->thread, SV_WAKE_SIGNAL);
}

/* A task that has a signal to handle gets -EINTR from its job, which answers
 * with a restart; an opening that came about in the meantime is handed over
 * instead, as it must not be lost. */
static void look_at(struct sv_side *s, struct job *j)
{
	uint64_t id = j->call.id;

	if (j->claimed)
		return;
	if (atomic_load(&j->cancelled))
		pthread_kill(j->thread, SV_WAKE_SIGNAL);	/* the first may have come too early */
	else if (ioctl(s->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0)
		interrupt_job(j);
	else if (signal_waits(s, j->call.tid))
		pthread_kill(j->thread, SV_WAKE_SIGNAL);
}

static void *watch(void *p)
{
	struct sv_side *s = p;
	struct job *j;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping || s->jobs) {
		struct timespec until;

		if (!s->jobs && !s->stopping) {
			pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		for (j = s->jobs; j; j = j->next) {
			if (s->stopping && !j->claimed)
				interrupt_job(j);
			else
				look_at(s, j);
		}
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += TICK_MS * 1000000L;
		if (until.tv_nsec >= 1000000000L) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000L;
		}
		pthread_cond_timedwait(&s->changed, &s->lock, &until);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

struct sv_side *sv_side_start(int listener, int proc_fd, struct sv_err *err)
{
	struct sv_side *s = calloc(1, sizeof(*s));
	struct sigaction sa = { .sa_handler = on_wake };

	if (!s) {
		sv_fail(err, ENOMEM, "side", "out of memory");
		return NULL;
	}
	s->listener = listener;
	s->proc_fd = proc_fd;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	sigaction(SV_WAKE_SIGNAL, &sa, NULL);
	if (pthread_create(&s->watcher, NULL, watch, s)) {
		sv_fail(err, EAGAIN, "side", "no thread can be started");
		free(s);
		return NULL;
	}
	return s;
}

int sv_side_run(struct sv_side *s, const struct sv_call *call, void (*fn)(void *), void *arg)
{
	struct job *j = calloc(1, sizeof(*j));
	pthread_attr_t attr;
	int rc = -EAGAIN;

	if (!j)
		return -EAGAIN;
	j->side = s;
	j->call = *call;
	j->fn = fn;
	j->arg = arg;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_mutex_lock(&s->lock);
	if (!s->stopping && s->count < JOBS_MAX && !pthread_create(&j->thread, &attr, run, j)) {
		j->next = s->jobs;
		s->jobs = j;
		s->count++;
		pthread_cond_broadcast(&s->changed);
		rc = 0;
	}
	pthread_mutex_unlock(&s->lock);
	pthread_attr_destroy(&attr);
	if (rc < 0)
		free(j);
	return rc;
}

void sv_side_stop(struct sv_side *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->watcher, NULL);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
