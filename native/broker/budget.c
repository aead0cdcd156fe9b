/* budget.c - taking, giving back, and what becomes of a call or run that has too much. */
#include "broker/peer.h"
#include "broker/work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { NOREPLACE = 1, TRIES = 64 };

_Static_assert(sizeof(((struct sv_status *)0)->used) == SV_COUNTED * sizeof(uint64_t), "counters");

/* What programs take for "no more of this", and do not try again at once for. */
static const int errnos[SV_COUNTED] = {
	[SV_LIMIT_ACTIONS] = EACCES, [SV_LIMIT_FILES_CREATED] = EDQUOT,
	[SV_LIMIT_FILES_DELETED] = EDQUOT, [SV_LIMIT_EXECS] = EAGAIN,
	[SV_LIMIT_CONNECTIONS] = EACCES, [SV_LIMIT_DENIALS] = EACCES,
};

void sv_budget_init(struct sv_budget *b, void (*end)(void *arg), void *arg)
{
	pthread_mutex_init(&b->lock, NULL);
	b->end = end;
	b->end_arg = arg;
}

bool sv_budget_over(struct sv_budget *b)
{
	return atomic_load_explicit(&b->ended, memory_order_relaxed);
}

int sv_budget_read(struct sv_budget *b, uint64_t used[SV_COUNTED])
{
	for (int k = 0; k < SV_COUNTED; k++)
		used[k] = atomic_load(&b->used[k]);
	return atomic_load(&b->ended);
}

static void tell(struct sv_shared *sh, pid_t tid, enum sv_limit_kind kind, enum sv_effect effect,
		 const char *what, uint64_t n)
{
	const struct sv_limit *l = &sh->policy->limits[kind];
	char text[96];
	const int len = snprintf(text, sizeof(text), "%s %llu", what, (unsigned long long)n);
	struct sv_event e = {
		.kind = SV_EVENT_LIMIT, .tid = tid, .nr = -1, .rule = l->rule, .effect = effect,
		.action = effect == SV_EFFECT_KILL ? SV_DENY : SV_ALLOW,
		.detail = { (const uint8_t *)text, (size_t)len },
	};

	sv_record(sh, &e);
}

static void warn(struct sv_shared *sh, pid_t tid, enum sv_limit_kind kind, const char *what, uint64_t n)
{
	if (!atomic_exchange(&sh->budget.warned[kind], true))
		tell(sh, tid, kind, SV_EFFECT_NONE, what, n);
}

static void end_run(struct sv_shared *sh, pid_t tid, enum sv_limit_kind kind)
{
	struct sv_budget *b = &sh->budget;
	int none = 0;

	if (!atomic_compare_exchange_strong(&b->ended, &none, 1 + (int)kind))
		return;
	tell(sh, tid, kind, SV_EFFECT_KILL, "more than", sh->policy->limits[kind].hard);
	b->end(b->end_arg);
}

/* Takes one of what hard leaves. No step beyond is ever seen by another thread. */
static bool count(atomic_ullong *used, uint64_t hard, unsigned long long *n)
{
	*n = atomic_load(used);
	do {
		if (*n >= hard)
			return false;
	} while (!atomic_compare_exchange_weak(used, n, *n + 1));
	++*n;
	return true;
}

static bool take(struct sv_work *w, enum sv_limit_kind kind)
{
	struct sv_shared *sh = w->sh;
	const struct sv_limit *l = &sh->policy->limits[kind];
	unsigned long long n;

	if (!count(&sh->budget.used[kind], sh->observe ? UINT64_MAX : l->hard, &n)) {
		w->over = 1 + (int)kind;
		return false;
	}
	if (n > l->hard)
		warn(sh, w->call.tid, kind, "more than", l->hard);
	else if (n > l->soft)
		warn(sh, w->call.tid, kind, "soft limit: more than", l->soft);
	return true;
}

int sv_take(struct sv_work *w, enum sv_limit_kind kind)
{
	if (w->taken & 1U << kind)
		return 0;
	if (!take(w, kind))
		return -errnos[kind];
	w->taken |= 1U << kind;
	return 0;
}

static int unless(struct sv_work *w, int rc, int moot)
{
	if (rc == 0 || !moot)
		return rc;
	w->over = 0;
	return -moot;
}

int sv_take_new(struct sv_work *w, const struct sv_place *p, bool folder)
{
	int rc = sv_take(w, SV_LIMIT_FILES_CREATED);

	return rc < 0 ? unless(w, rc, sv_moot_new(p, folder)) : 0;
}

int sv_take_old(struct sv_work *w, const struct sv_place *p, bool folder)
{
	int rc = sv_take(w, SV_LIMIT_FILES_DELETED);

	return rc < 0 ? unless(w, rc, sv_moot_old(p, folder)) : 0;
}

int sv_take_connection(struct sv_work *w)
{
	return take(w, SV_LIMIT_CONNECTIONS) ? 0 : -errnos[SV_LIMIT_CONNECTIONS];
}

static size_t peer_key(const struct sv_work *w, const struct sv_addr *to, uint8_t *key)
{
	const struct sockaddr_un *un = (const void *)&to->a;
	const struct sv_place *p = &w->place[0];
	const size_t n = (size_t)to->len < SV_PEER_MAX ? (size_t)to->len : SV_PEER_MAX;

	memset(key, 0, SV_PEER_MAX);
	if (to->a.ss_family != AF_UNIX || !un->sun_path[0]) {
		memcpy(key, &to->a, n);
		return n;
	}
	/* a local socket's file, however it was called */
	memcpy(key, &p->st.st_dev, sizeof(p->st.st_dev));
	memcpy(key + sizeof(p->st.st_dev), &p->st.st_ino, sizeof(p->st.st_ino));
	return sizeof(p->st.st_dev) + sizeof(p->st.st_ino);
}

int sv_take_peer(struct sv_work *w, const struct sv_addr *to)
{
	const struct sv_limit *l = &w->sh->policy->limits[SV_LIMIT_CONNECTIONS];
	struct sv_budget *b = &w->sh->budget;
	uint8_t key[SV_PEER_MAX];
	const size_t n = peer_key(w, to, key);
	bool ok = false;
	int i;

	/* looking for it takes longer than to send: only where somebody wants to know */
	if (l->hard == UINT64_MAX && l->soft == UINT64_MAX)
		return 0;
	pthread_mutex_lock(&b->lock);
	for (i = 0; i < b->npeers && !ok; i++)
		ok = b->peers[i].n == n && !memcmp(b->peers[i].key, key, n);
	if (!ok) {
		ok = take(w, SV_LIMIT_CONNECTIONS);
		if (ok && b->npeers < SV_PEERS) {
			b->peers[b->npeers].n = n;
			memcpy(b->peers[b->npeers++].key, key, n);
		}
	}
	pthread_mutex_unlock(&b->lock);
	return ok ? 0 : -errnos[SV_LIMIT_CONNECTIONS];
}

void sv_give_back_one(struct sv_work *w, enum sv_limit_kind kind)
{
	if (w->taken & 1U << kind)
		atomic_fetch_sub(&w->sh->budget.used[kind], 1);
	w->taken &= ~(1U << kind);
}

void sv_give_back(struct sv_work *w)
{
	for (int k = 0; k < SV_COUNTED; k++)
		sv_give_back_one(w, (enum sv_limit_kind)k);
}

void sv_give_back_exec(struct sv_shared *sh)
{
	atomic_fetch_sub(&sh->budget.used[SV_LIMIT_EXECS], 1);
	atomic_fetch_sub(&sh->budget.used[SV_LIMIT_ACTIONS], 1);
}

void sv_over_limit(struct sv_work *w)
{
	const struct sv_limit *l = &w->sh->policy->limits[w->over - 1];

	w->match = (struct sv_match){ .action = SV_DENY, .rule = l->rule, .err = errnos[w->over - 1] };
}

void sv_count_denied(struct sv_shared *sh, pid_t tid)
{
	const struct sv_limit *l = &sh->policy->limits[SV_LIMIT_DENIALS];
	const uint64_t n = atomic_fetch_add(&sh->budget.used[SV_LIMIT_DENIALS], 1) + 1;

	atomic_fetch_add_explicit(&sh->denied, 1, memory_order_relaxed);
	if (n > l->hard && !sh->observe)
		end_run(sh, tid, SV_LIMIT_DENIALS);
	else if (n > l->soft)
		warn(sh, tid, SV_LIMIT_DENIALS, "soft limit: more than", l->soft);
}

void sv_end_by_limit(struct sv_work *w)
{
	const int kind = w->over - 1;

	if (w->over && w->sh->policy->limits[kind].halt)
		end_run(w->sh, w->call.tid, (enum sv_limit_kind)kind);
}

enum target { NOTHING, ITSELF, ANOTHER };

static enum target look(int from, const char *a, int to, const char *b)
{
	struct stat x, y;

	if (fstatat(to, b, &y, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(from, a, &x, AT_SYMLINK_NOFOLLOW) < 0)
		return NOTHING;
	return x.st_dev == y.st_dev && x.st_ino == y.st_ino ? ITSELF : ANOTHER;
}

static int move(int from, const char *a, int to, const char *b, unsigned int flags)
{
	return syscall(SYS_renameat2, from, a, to, b, flags) < 0 ? -errno : 0;
}

static int take_and_move(struct sv_work *w, int from, const char *a, int to, const char *b)
{
	int rc = sv_take(w, SV_LIMIT_FILES_DELETED);

	return rc < 0 ? rc : move(from, a, to, b, 0);
}

/* A name that was free when it was looked at is taken only while it still is. */
int sv_take_and_rename(struct sv_work *w, int from, const char *a, int to, const char *b,
		       unsigned int flags)
{
	const struct sv_limit *l = &w->sh->policy->limits[SV_LIMIT_FILES_DELETED];
	int i, rc;

	if (flags)
		return move(from, a, to, b, flags);
	if (l->rule < 0)
		return look(from, a, to, b) == ANOTHER ? take_and_move(w, from, a, to, b) :
							 move(from, a, to, b, 0);
	for (i = 0; i < TRIES; i++) {
		const enum target at = look(from, a, to, b);

		if (at == ANOTHER)
			return take_and_move(w, from, a, to, b);
		rc = move(from, a, to, b, NOREPLACE);
		if (rc == -EEXIST && at == ITSELF)
			return 0;	/* two names of one object: both stay */
		if (rc == -EINVAL)	/* not on this file system: counted in any case */
			return take_and_move(w, from, a, to, b);
		if (rc != -EEXIST)
			return rc;
	}
	return -EBUSY;
}
