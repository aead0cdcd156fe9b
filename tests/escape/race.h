/* race.h - what the race programs share: the count, the two ends of time and
 * the memory that somebody else keeps changing.
 *
 * A race program takes a number of tries and the allowed and the forbidden
 * object, prints one line "tries N hits H other M" and exits 0; it stops early
 * (with the tries really made) after RACE_SECONDS, and never outlives
 * RACE_ALARM. A hit is a forbidden object really reached. Exit 3: what should
 * have raced was refused, so nothing was raced. */
#ifndef RACE_H
#define RACE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RACE_SECONDS = 100, RACE_ALARM = 120, RACE_BUF = 4096 };

struct race {
	long want;
	long tries;
	long hits;
	long other;		/* neither the allowed nor the forbidden object */
	time_t end;
};

/* Two byte strings that take turns in one buffer; one byte apart is best, as
 * then no reader ever sees a mixture. */
struct flip {
	volatile char *buf;
	const char *one;
	const char *two;
	size_t from;
	size_t len;
	volatile int stop;
};

static inline time_t race_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static inline void race_fail(const char *what)
{
	perror(what);
	exit(2);
}

static inline void race_begin(struct race *r, const char *tries)
{
	memset(r, 0, sizeof(*r));
	r->want = strtol(tries, NULL, 10);
	r->end = race_now() + RACE_SECONDS;
	alarm(RACE_ALARM);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static inline bool race_more(struct race *r)
{
	if (r->tries >= r->want)
		return false;
	if ((r->tries & 31) == 0 && race_now() >= r->end)
		return false;
	r->tries++;
	return true;
}

static inline int race_end(const struct race *r)
{
	printf("tries %ld hits %ld other %ld\n", r->tries, r->hits, r->other);
	return fflush(stdout) ? 2 : 0;
}

/* Counts what an opened file holds: forbidden content starts with 'F', allowed
 * content with 'A'. Closes fd; a failed open counts as other. */
static inline void race_judge(struct race *r, int fd)
{
	char c = 0;

	if (fd < 0 || pread(fd, &c, 1, 0) != 1)
		r->other++;
	else if (c == 'F')
		r->hits++;
	else if (c != 'A')
		r->other++;
	if (fd >= 0)
		close(fd);
}

static inline uint32_t race_random(uint32_t *state)
{
	uint32_t x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return *state = x;
}

/* Waits a random while, from nothing to some ten microseconds: nobody knows
 * how long the other side takes from its check to its use. */
static inline void race_dwell(uint32_t *state)
{
	uint32_t n = race_random(state) & ((1u << (race_random(state) % 13)) - 1);

	while (n--)
		__asm__ volatile("" ::: "memory");
}

static inline void *race_shared(void)
{
	void *p = mmap(NULL, RACE_BUF * 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		       0);

	if (p == MAP_FAILED)
		race_fail("mmap");
	return p;
}

/* Copies both strings into zeroed buffers and finds where they differ. */
static inline void flip_init(struct flip *f, void *buf, const char *one, const char *two)
{
	char *a = calloc(1, RACE_BUF);
	char *b = calloc(1, RACE_BUF);
	size_t last = RACE_BUF - 1;

	if (!a || !b || strlen(one) >= RACE_BUF || strlen(two) >= RACE_BUF)
		race_fail("flip_init");
	strcpy(a, one);
	strcpy(b, two);
	memcpy(buf, a, RACE_BUF);
	f->buf = buf;
	f->one = a;
	f->two = b;
	f->from = 0;
	f->stop = 0;
	while (f->from < last && a[f->from] == b[f->from])
		f->from++;
	while (last > f->from && a[last] == b[last])
		last--;
	f->len = last + 1 - f->from;
}

static inline void flip_put(struct flip *f, const char *text)
{
	for (size_t i = f->from; i < f->from + f->len; i++)
		f->buf[i] = text[i];
}

/* The flipper: a thread, or any process that sees the buffer. */
static inline void *flip_run(void *arg)
{
	struct flip *f = arg;
	uint32_t seed = 2463534242u;

	while (!f->stop) {
		flip_put(f, f->two);
		race_dwell(&seed);
		flip_put(f, f->one);
		race_dwell(&seed);
	}
	return NULL;
}

/* As a process of its own (clone or fork): it must end when its maker does. */
static inline int flip_peer(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(RACE_ALARM);
	flip_run(arg);
	_exit(0);
}

static inline pthread_t race_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	int err = pthread_create(&t, NULL, fn, arg);

	if (err) {
		errno = err;
		race_fail("pthread_create");
	}
	return t;
}

/* A task in the same memory that is no thread of ours. */
static inline pid_t race_clone_vm(int (*fn)(void *), void *arg)
{
	enum { STACK = 65536 };
	static char *stack;

	if (!stack)
		stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		race_fail("mmap");
	return clone(fn, stack + STACK, CLONE_VM | SIGCHLD, arg);
}

static inline bool race_is(int argc, char **argv, int i, const char *word)
{
	return argc > i && strcmp(argv[i], word) == 0;
}

static inline void race_usage(int argc, int least, const char *what)
{
	if (argc >= least)
		return;
	fprintf(stderr, "usage: %s\n", what);
	exit(2);
}

#endif
