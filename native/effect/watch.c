/* watch.c - facts of a process that only an exec changes, before and after. */
#include "effect/watch.h"

#include "base/fd.h"
#include "decode/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FIELDS = 52, AUXV = 1024 };

/* Where the kernel put program, stack and strings, and from which file. */
struct facts {
	char state;
	unsigned long at[FIELDS];	/* numbered as in proc_pid_stat(5), others 0 */
	dev_t dev;
	ino_t ino;
	ssize_t auxn;
	char auxv[AUXV];
};

struct sv_watched {
	struct sv_watched *next;
	struct sv_task *task;
	struct facts before;
};

static ssize_t read_proc(pid_t pid, const char *leaf, char *buf, size_t cap)
{
	char name[48];
	cleanup_fd int fd = -1;

	snprintf(name, sizeof(name), "/proc/%d/%s", (int)pid, leaf);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : read(fd, buf, cap);
}

/* startcode endcode startstack, and from start_data to env_end */
static bool wanted(int field)
{
	return (field >= 26 && field <= 28) || (field >= 45 && field <= 51);
}

static bool parse_stat(char *text, struct facts *f)
{
	char *p = strrchr(text, ')'), *save, *word;
	int field = 3;

	word = p ? strtok_r(p + 1, " ", &save) : NULL;
	if (!word)
		return false;
	f->state = word[0];
	while ((word = strtok_r(NULL, " ", &save)) && ++field < FIELDS)
		f->at[field] = wanted(field) ? strtoul(word, NULL, 10) : 0;
	return field >= FIELDS;
}

static bool read_facts(pid_t pid, struct facts *f)
{
	char text[1024], exe[40];
	struct stat st;
	ssize_t n = read_proc(pid, "stat", text, sizeof(text) - 1);

	memset(f, 0, sizeof(*f));
	if (n <= 0)
		return false;
	text[n] = 0;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid);
	if (!parse_stat(text, f) || fstatat(AT_FDCWD, exe, &st, 0) < 0)
		return false;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->auxn = read_proc(pid, "auxv", f->auxv, sizeof(f->auxv));
	return f->auxn > 0;
}

static bool same_program(const struct facts *a, const struct facts *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->auxn == b->auxn &&
	       !memcmp(a->at, b->at, sizeof(a->at)) && !memcmp(a->auxv, b->auxv, (size_t)a->auxn);
}

static bool field_of(const char *text, const char *key, int base, unsigned long *out)
{
	const char *p = strstr(text, key);

	if (p)
		*out = strtoul(p + strlen(key), NULL, base);
	return p != NULL;
}

/* Without PTRACE_O_TRACEEXEC the stop is a SIGTRAP, which must not be blocked. */
static const char *no_stop(pid_t tid)
{
	char text[4096];
	unsigned long tracer, blocked;
	cleanup_fd int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ssize_t n = read_proc(tid, "status", text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = 0;
	if (n <= 0 || !field_of(text, "\nTracerPid:", 10, &tracer) ||
	    !field_of(text, "\nSigBlk:", 16, &blocked))
		return "its state could not be read";
	if (!tracer || !sv_in_tree(proc, (pid_t)tracer))
		return "the task could not be traced (a debugger outside holds it, or it is protected)";
	if (blocked & 1UL << (SIGTRAP - 1))
		return "it is traced and blocks SIGTRAP, so that its exec could not be verified";
	return NULL;
}

bool sv_watch_begin(struct sv_tracer *t, struct sv_task *task, const char **why)
{
	struct sv_watched *w;
	int rc;

	*why = task->plan.kind != SV_PLAN_VERIFY ? "it is traced, so its call cannot be changed" :
	       task->plan.no_stop ? "it is traced without PTRACE_O_TRACEEXEC, which verifying its exec needs" :
	       task->plan.tid != task->tgid ? "it is traced, and not the first thread of its process" :
	       no_stop(task->plan.tid);
	if (*why)
		return false;
	*why = "no memory to watch its exec";
	w = calloc(1, sizeof(*w));
	if (!w)
		return false;
	*why = "its program could not be identified";
	if (!read_facts(task->tgid, &w->before)) {
		free(w);
		return false;
	}
	w->task = task;
	pthread_mutex_lock(&t->watch_lock);
	w->next = t->watched;
	t->watched = w;
	atomic_fetch_add(&t->watching, 1);
	rc = sv_task_answer(t, task->plan.id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
	pthread_mutex_unlock(&t->watch_lock);
	(void)rc;	/* a call that is gone is seen to have failed */
	return true;
}

static void forget(struct sv_tracer *t, struct sv_watched *w)
{
	struct sv_watched **p = &t->watched;

	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
	atomic_fetch_sub(&t->watching, 1);
	sv_exec_plan_free(&w->task->plan);
	free(w);
}

static void report(struct sv_tracer *t, struct sv_watched *w, enum sv_exec_outcome outcome,
		   const char *why, const struct sv_exec_seen *seen)
{
	struct sv_exec_result r = { .outcome = outcome, .tgid = w->task->tgid, .why = why };

	if (seen)
		r.argv = (struct sv_str){ seen->argv, seen->n };
	t->ops->done(t->ctx, &w->task->plan, &r);
}

static void verify(struct sv_tracer *t, struct sv_watched *w, bool held)
{
	struct sv_exec_seen seen = { .n = 0 };
	const char *why = sv_exec_verify(&w->task->plan, w->task->tgid, t->ops, t->ctx, &seen);

	if (!why) {
		report(t, w, SV_EXEC_RAN, NULL, &seen);
		return;
	}
	kill(w->task->tgid, SIGKILL);
	if (!held)
		t->ops->breach(t->ctx);
	report(t, w, SV_EXEC_KILLED, why, &seen);
}

/* over: the task is known to be out of its call. */
static enum sv_settled settle(struct sv_tracer *t, struct sv_watched *w, bool over)
{
	struct facts now;
	const bool read = read_facts(w->task->tgid, &now);
	const bool held = read && now.state == 't';

	if (!read) {
		report(t, w, SV_EXEC_GONE, "the task ended in its call", NULL);
	} else if (!same_program(&w->before, &now)) {
		verify(t, w, held);
	} else if (!held && !over) {
		return SV_UNSETTLED;
	} else if (t->ops->argv_matters(t->ctx, w->task->tgid)) {
		/* the same program at the same place may have other arguments now */
		verify(t, w, held);
	} else {
		report(t, w, SV_EXEC_FAILED, NULL, NULL);
	}
	forget(t, w);
	return SV_SETTLED;
}

enum sv_settled sv_tracer_settle(struct sv_tracer *t, pid_t tgid, bool over)
{
	enum sv_settled rc = SV_SETTLED;
	struct sv_watched *w;

	if (atomic_load(&t->watching) == 0)
		return rc;
	pthread_mutex_lock(&t->watch_lock);
	for (w = t->watched; w; w = w->next)
		if (w->task->tgid == tgid)
			break;
	if (w)
		rc = settle(t, w, over);
	pthread_mutex_unlock(&t->watch_lock);
	return rc;
}

bool sv_tracer_watching(struct sv_tracer *t)
{
	return atomic_load_explicit(&t->watching, memory_order_acquire) > 0;
}

void sv_watch_look(struct sv_tracer *t)
{
	struct sv_watched *w, *next;

	if (!sv_tracer_watching(t))
		return;
	pthread_mutex_lock(&t->watch_lock);
	for (w = t->watched; w; w = next) {
		next = w->next;
		settle(t, w, false);
	}
	pthread_mutex_unlock(&t->watch_lock);
}

void sv_watch_end(struct sv_tracer *t)
{
	pthread_mutex_lock(&t->watch_lock);
	while (t->watched) {
		report(t, t->watched, SV_EXEC_GONE, "the session ended", NULL);
		forget(t, t->watched);
	}
	pthread_mutex_unlock(&t->watch_lock);
}
