/* exec.c - the tracer thread: sleep until there is a plan, a returned call or a
 * child status, take everything there is, never wait for anyone in particular. */
#include "effect/exec.h"

#include "base/err.h"
#include "base/fd.h"
#include "effect/tracer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

/* Should a thread of the caller take a SIGCHLD after all, it costs this long. */
enum { HEAL_MS = 200 };

struct sv_exec_plan *sv_exec_plan_new(void)
{
	struct sv_task *task = calloc(1, sizeof(*task));

	if (!task)
		return NULL;
	task->plan.pin_fd = task->plan.close_fd = -1;
	task->plan.rule = -1;
	task->area.klass = -2;
	return &task->plan;
}

void sv_exec_plan_free(struct sv_exec_plan *plan)
{
	if (!plan)
		return;
	if (plan->pin_fd >= 0)
		close(plan->pin_fd);
	free(plan->execfn);
	free(plan->head);
	free(plan->argv);
	free(plan->new_path);
	free(plan->new_argv);
	free(plan->new_env);
	free((struct sv_task *)plan);
}

void sv_tracer_ring(struct sv_tracer *t)
{
	uint64_t one = 1;

	/* Fails only when the counter is full, and then it is readable anyway. */
	if (write(t->wake, &one, sizeof(one)) < 0)
		return;
}

void sv_tracer_submit(struct sv_tracer *t, struct sv_exec_plan *plan)
{
	struct sv_task *task = (struct sv_task *)plan;

	pthread_mutex_lock(&t->lock);
	task->next = t->inbox;
	t->inbox = task;
	pthread_mutex_unlock(&t->lock);
	sv_tracer_ring(t);
}

bool sv_tracer_reentry(struct sv_tracer *t, const struct sv_call *call)
{
	bool ours = false;

	if (atomic_load_explicit(&t->returning, memory_order_acquire) == 0)
		return false;
	pthread_mutex_lock(&t->lock);
	for (struct sv_task *k = t->tasks; k && !ours; k = k->next) {
		ours = k->state == SV_TASK_RETURNING && !k->called && k->plan.tid == call->tid &&
		       k->now_nr == call->nr &&
		       memcmp(k->now_args, call->args, sizeof(k->now_args)) == 0;
		if (ours) {
			k->called = true;
			k->call_id = call->id;
		}
	}
	pthread_mutex_unlock(&t->lock);
	if (ours)
		sv_tracer_ring(t);
	return ours;
}

/* The inbox, oldest first. */
static struct sv_task *take_inbox(struct sv_tracer *t)
{
	struct sv_task *list, *out = NULL;

	pthread_mutex_lock(&t->lock);
	list = t->inbox;
	t->inbox = NULL;
	pthread_mutex_unlock(&t->lock);
	while (list) {
		struct sv_task *next = list->next;

		list->next = out;
		out = list;
		list = next;
	}
	return out;
}

static struct sv_task *next_called(struct sv_tracer *t)
{
	struct sv_task *k;

	if (atomic_load(&t->returning) == 0)
		return NULL;
	pthread_mutex_lock(&t->lock);
	for (k = t->tasks; k; k = k->next)
		if (k->state == SV_TASK_RETURNING && k->called)
			break;
	pthread_mutex_unlock(&t->lock);
	return k;
}

/* Statuses come first: a plan may be for a task that was just let go. */
static void take_all(struct sv_tracer *t)
{
	struct sv_hashing *h;
	struct sv_task *task;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL | WNOHANG | WUNTRACED | WCONTINUED)) > 0)
		sv_step_status(t, pid, status);
	while ((task = next_called(t)) != NULL)
		sv_step_called(t, task);
	while ((h = sv_hash_next(t)) != NULL) {
		sv_step_hashed(t, h);
		free(h);
	}
	for (task = take_inbox(t); task;) {
		struct sv_task *next = task->next;

		sv_step_start(t, task);
		task = next;
	}
	while ((task = t->ready) != NULL) {
		t->ready = task->next;
		sv_step_start(t, task);
	}
}

static bool stopping(struct sv_tracer *t)
{
	bool stop;

	pthread_mutex_lock(&t->lock);
	stop = t->stop;
	pthread_mutex_unlock(&t->lock);
	return stop;
}

static void *run(void *arg)
{
	struct sv_tracer *t = arg;
	struct pollfd pfd[2] = { { t->wake, POLLIN, 0 }, { t->sigchld, POLLIN, 0 } };
	struct signalfd_siginfo si[8];
	uint64_t count;

	while (!stopping(t)) {
		if (poll(pfd, 2, HEAL_MS) > 0) {
			/* Emptied before the work, so that nothing new is missed. */
			if (pfd[0].revents && read(t->wake, &count, sizeof(count)) < 0 &&
			    errno != EAGAIN)
				abort();
			if (pfd[1].revents && read(t->sigchld, si, sizeof(si)) < 0 &&
			    errno != EAGAIN)
				abort();
		}
		take_all(t);
	}
	for (struct sv_task *task = take_inbox(t); task;) {
		struct sv_task *next = task->next;

		sv_task_queue(t, task);
		task = next;
	}
	sv_step_stop(t);
	sv_hash_end(t);
	return NULL;
}

static int start_thread(struct sv_tracer *t, struct sv_err *err)
{
	sigset_t all, old;
	int rc;

	/* The thread takes no signal: they are for the caller's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&t->thread, NULL, run, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc ? sv_fail(err, rc, "tracer", "no thread could be started") : 0;
}

static int prepare(struct sv_tracer *t, struct sv_err *err)
{
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->sigchld = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (t->wake < 0 || t->sigchld < 0)
		return sv_fail(err, errno, "tracer", "out of file descriptors");
	if (sv_areas_init(&t->areas) < 0)
		return sv_fail(err, EIO, "tracer", "the kernel gives no random bytes");
	return start_thread(t, err);
}

static void release(struct sv_tracer *t)
{
	sv_close_fd(&t->wake);
	sv_close_fd(&t->sigchld);
	pthread_cond_destroy(&t->idle);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

struct sv_tracer *sv_tracer_start(int listener, bool killable, const struct sv_tracer_ops *ops,
				  void *ctx, struct sv_err *err)
{
	struct sv_tracer *t = calloc(1, sizeof(*t));

	if (!t) {
		sv_fail(err, ENOMEM, "tracer", "out of memory");
		return NULL;
	}
	t->listener = listener;
	t->killable = killable;
	t->ops = ops;
	t->ctx = ctx;
	t->wake = t->sigchld = -1;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->idle, NULL);
	if (prepare(t, err) < 0) {
		release(t);
		return NULL;
	}
	return t;
}

static int count_words(const char *tid)
{
	char name[300], buf[4096];
	bool in = false;
	int words = 0;
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/self/task/%s/children", tid);
	cleanup_fd int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			bool digit = buf[i] >= '0' && buf[i] <= '9';

			words += digit && !in;
			in = digit;
		}
	return words;
}

int sv_tracer_children(struct sv_tracer *t)
{
	siginfo_t si;
	struct dirent *e;
	int n = 0;
	DIR *d;

	(void)t;
	if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD)
		return 0;
	d = opendir("/proc/self/task");
	while (d && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			n += count_words(e->d_name);
	if (d)
		closedir(d);
	return n ? n : 1;
}

void sv_tracer_stop(struct sv_tracer *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_mutex_unlock(&t->lock);
	sv_tracer_ring(t);
	pthread_join(t->thread, NULL);
	release(t);
}
