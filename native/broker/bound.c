/* bound.c - which socket files belong to the tree, what their programs call them, and which
 * sockets of IP were bound by a bind that was decided. */
#include "broker/bound.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOCKETS_MAX = 512, COOKIES_MAX = 4096 };

struct entry {
	int pin;
	dev_t dev;
	ino_t ino;
	struct sockaddr_un name, as;
	socklen_t as_len;
};

struct sv_bound {
	pthread_mutex_t lock;
	atomic_int n;
	struct entry v[SOCKETS_MAX];
	uint64_t cookies[COOKIES_MAX];	/* a ring: what falls out is not known to be bound */
	unsigned int next;
};

struct sv_bound *sv_bound_new(void)
{
	struct sv_bound *b = calloc(1, sizeof(*b));

	if (b)
		pthread_mutex_init(&b->lock, NULL);
	return b;
}

void sv_bound_free(struct sv_bound *b)
{
	int i;

	if (!b)
		return;
	for (i = 0; i < b->n; i++)
		close(b->v[i].pin);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static struct entry *find_name(struct sv_bound *b, const struct sockaddr_un *name)
{
	int i;

	for (i = 0; i < b->n; i++)
		if (!strcmp(b->v[i].name.sun_path, name->sun_path))
			return &b->v[i];
	return NULL;
}

/* What lost its last name cannot be found by any. */
static void prune(struct sv_bound *b)
{
	struct stat st;
	int i = 0;

	while (i < b->n) {
		if (fstat(b->v[i].pin, &st) == 0 && st.st_nlink > 0) {
			i++;
			continue;
		}
		close(b->v[i].pin);
		b->v[i] = b->v[--b->n];
	}
}

static bool has_room(struct sv_bound *b)
{
	bool room;

	pthread_mutex_lock(&b->lock);
	if (b->n == SOCKETS_MAX)
		prune(b);
	room = b->n < SOCKETS_MAX;
	pthread_mutex_unlock(&b->lock);
	return room;
}

/* Each "./" tells one more socket of that name from the others. */
int sv_bound_name(struct sv_bound *b, int dir, const char *last, struct sockaddr_un *out)
{
	char dots[sizeof(out->sun_path)] = "";
	bool taken = true;
	int n;

	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!has_room(b))
		return -ENOSPC;
	while (taken) {
		n = snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d/%s%s", dir,
			     dots, last);
		if (n >= (int)sizeof(out->sun_path))
			return -ENAMETOOLONG;
		pthread_mutex_lock(&b->lock);
		taken = find_name(b, out) != NULL;
		pthread_mutex_unlock(&b->lock);
		strcat(dots, "./");
	}
	return 0;
}

int sv_bound_add(struct sv_bound *b, int pin, const struct sockaddr_un *name,
		 const struct sockaddr_un *as, socklen_t as_len)
{
	struct entry e = { .pin = pin, .name = *name, .as = *as, .as_len = as_len };
	struct stat st;
	int rc = fstat(pin, &st) < 0 ? -errno : 0;

	e.dev = st.st_dev;
	e.ino = st.st_ino;
	pthread_mutex_lock(&b->lock);
	if (rc == 0 && b->n == SOCKETS_MAX)
		rc = -ENOSPC;
	if (rc == 0)
		b->v[b->n++] = e;
	pthread_mutex_unlock(&b->lock);
	if (rc < 0)
		close(pin);
	return rc;
}

bool sv_bound_has(struct sv_bound *b, const struct stat *st)
{
	bool has = false;
	int i;

	pthread_mutex_lock(&b->lock);
	for (i = 0; i < b->n && !has; i++)
		has = b->v[i].dev == st->st_dev && b->v[i].ino == st->st_ino;
	pthread_mutex_unlock(&b->lock);
	return has;
}

bool sv_bound_any(struct sv_bound *b)
{
	return atomic_load(&b->n) > 0;
}

bool sv_bound_as(struct sv_bound *b, const struct sockaddr_un *name, struct sockaddr_un *as,
		 socklen_t *as_len)
{
	struct entry *e;

	pthread_mutex_lock(&b->lock);
	e = find_name(b, name);
	if (e) {
		*as = e->as;
		*as_len = e->as_len;
	}
	pthread_mutex_unlock(&b->lock);
	return e != NULL;
}

int sv_bound_pin(struct sv_bound *b, const struct sockaddr_un *name)
{
	struct entry *e;
	int fd = -ENOENT;

	pthread_mutex_lock(&b->lock);
	e = find_name(b, name);
	if (e)
		fd = fcntl(e->pin, F_DUPFD_CLOEXEC, 3);
	pthread_mutex_unlock(&b->lock);
	return fd;
}

static uint64_t cookie_of(int sock)
{
	uint64_t cookie = 0;
	socklen_t n = sizeof(cookie);

	return getsockopt(sock, SOL_SOCKET, SO_COOKIE, &cookie, &n) < 0 ? 0 : cookie;
}

void sv_bound_note(struct sv_bound *b, int sock)
{
	const uint64_t cookie = cookie_of(sock);

	pthread_mutex_lock(&b->lock);
	b->cookies[b->next++ % COOKIES_MAX] = cookie;
	pthread_mutex_unlock(&b->lock);
}

bool sv_bound_noted(struct sv_bound *b, int sock)
{
	const uint64_t cookie = cookie_of(sock);
	bool noted = false;
	int i;

	pthread_mutex_lock(&b->lock);
	for (i = 0; cookie && i < COOKIES_MAX && !noted; i++)
		noted = b->cookies[i] == cookie;
	pthread_mutex_unlock(&b->lock);
	return noted;
}
