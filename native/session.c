/* session.c - implements the boundary; the only file that knows every part.
 * It owns all threads and descriptors of a run. */
#include "base/err.h"
#include "base/fd.h"
#include "effect/creds.h"
#include "facility.h"
#include "filter/install.h"
#include "filter/landlock.h"
#include "filter/rlimits.h"
#include "filter/spawn.h"
#include "ipc/objects.h"
#include "life/guard.h"
#include "life/killtree.h"
#include "notify/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RING_BYTES = 1 << 20 };

struct sv_session {
	struct sv_policy *policy;
	struct sv_shared sh;
	struct sv_loop *loop;
	struct sv_floor_entry *floor;
	pid_t main_pid;
	int control;		/* from the child's start; -1 once it executed */
	int signals;		/* signalfd of what is passed on, -1 = none */
	int wake;		/* eventfd: a child ended */
	atomic_int exited;	/* 0, 1 = code, 2 = signal */
	atomic_int code;
	int exec_err;
	bool killable;
	atomic_bool halted;
	bool spawned;
};

int sv_abi(void)
{
	return SV_ABI;
}

static int copy_floor(sv_session *s, struct sv_err *err)
{
	uint32_t i;

	s->floor = calloc(s->policy->nfloor + 1, sizeof(*s->floor));
	if (!s->floor)
		return sv_fail(err, ENOMEM, "policy", "out of memory");
	for (i = 0; i < s->policy->nfloor; i++) {
		const struct sv_floor *f = &s->policy->floor[i];

		s->floor[i].path = strndup((const char *)f->path.p, f->path.n);
		s->floor[i].rights = (int)f->rights;
		if (!s->floor[i].path)
			return sv_fail(err, ENOMEM, "policy", "out of memory");
	}
	return 0;
}

/* A limit is passed: from any thread. */
static void end_run(void *arg)
{
	sv_session *s = arg;

	s->halted = true;
	sv_kill_descendants(s->sh.self, SIGKILL);
}

sv_session *sv_open(const uint8_t *blob, size_t len, const char *tmp, struct sv_err *err)
{
	sv_session *s = calloc(1, sizeof(*s));

	if (!s) {
		sv_fail(err, ENOMEM, "session", "out of memory");
		return NULL;
	}
	s->control = s->signals = s->wake = s->sh.listener = s->sh.proc_fd = -1;
	sv_table_init();
	s->policy = sv_policy_load(blob, len, tmp, err);
	if (s->policy && !(s->sh.bound = sv_bound_new()))
		sv_fail(err, ENOMEM, "session", "out of memory");
	if (!s->policy || !s->sh.bound || copy_floor(s, err) < 0) {
		sv_close(s);
		return NULL;
	}
	s->sh.policy = s->policy;
	s->sh.observe = s->policy->flags & SV_POLICY_OBSERVE;
	s->sh.record = s->policy->record;
	sv_budget_init(&s->sh.budget, end_run, s);
	s->sh.self = getpid();
	pthread_rwlock_init(&s->sh.names, NULL);
	return s;
}

static void on_child(void *arg, pid_t pid, int wstatus)
{
	sv_session *s = arg;
	uint64_t one = 1;

	if (pid == s->main_pid && !sv_guard_follow(pid, wstatus)) {
		atomic_store(&s->code, WIFEXITED(wstatus) ? WEXITSTATUS(wstatus) :
							    WTERMSIG(wstatus));
		atomic_store(&s->exited, WIFEXITED(wstatus) ? 1 : 2);
	}
	(void)!write(s->wake, &one, sizeof(one));
}

/* Nothing of the tree may read or trace us; orphans come to us. */
static int protect_self(struct sv_err *err)
{
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return sv_fail(err, errno, "protect", "prctl: %s", strerror(errno));
	return sv_creds_init(err);
}

/* SIGCHLD belongs to the tracer's thread; what the guardian passes on is read
 * from a descriptor. */
static int take_signals(sv_session *s, sigset_t *old, struct sv_err *err)
{
	sigset_t set, chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &chld, old);
	if (!sv_guard_mask())
		return 0;
	*old = *sv_guard_mask();
	sv_forwarded_signals(&set);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals < 0 ? sv_fail(err, errno, "signals", "%s", strerror(errno)) : 0;
}

static bool waived(const struct sv_start *start, enum sv_facility_id id)
{
	return start->degraded & 1U << id;
}

static int start_child(sv_session *s, const struct sv_start *start, const sigset_t *mask,
		       struct sv_err *err)
{
	struct sv_spawn sp = {
		.start = start, .filter = s->policy->filter.p, .filter_len = s->policy->filter.n,
		.mask = mask, .ruleset = -1, .labels = s->policy->nblocks > 0, .limited = sv_policy_limits_kernel(s->policy),
		.need_killable = !waived(start, SV_FACILITY_WAIT_KILLABLE),
	};
	const struct sv_limit *limits = s->policy->limits;
	struct rlimit files = { 0, 0 };
	int rc = 0;

	if (waived(start, SV_FACILITY_LANDLOCK) && sv_assume(-1))
		return sv_fail(err, EINVAL, "landlock",
			       "the filter was made for a run with Landlock: compile it again without");
	if (!waived(start, SV_FACILITY_LANDLOCK)) {
		sp.ruleset = sv_landlock_build(s->floor, s->policy->nfloor, s->sh.observe, err);
		if (sp.ruleset < 0)
			return sp.ruleset;
	}
	sv_rlimits_raise(&files);
	rc = sv_spawn_child(&sp, err);
	sv_close_fd(&sp.ruleset);
	if (rc < 0)
		return rc;
	s->main_pid = sp.pid;
	s->sh.listener = sp.listener;
	s->killable = sp.killable;
	s->control = sp.control;
	sv_listener_tune(sp.listener);
	rc = sv_rlimits_set(sp.pid, &files, limits[SV_LIMIT_OPEN_FILES].hard,
			    limits[SV_LIMIT_FILE_SIZE].hard, limits[SV_LIMIT_CPU].hard);
	if (rc < 0)
		return sv_fail(err, -rc, "limits", "a limit cannot be set: %s", strerror(-rc));
	return s->policy->flags & SV_POLICY_NET ? sv_need_duplicates(sp.pid, err) : 0;
}

static int start_threads(sv_session *s, struct sv_err *err)
{
	s->sh.on_child = on_child;
	s->sh.on_child_arg = s;
	s->sh.tracer = sv_tracer_start(s->sh.listener, s->killable, &sv_exec_ops, &s->sh, err);
	if (!s->sh.tracer)
		return -1;
	s->sh.side = sv_side_start(s->sh.listener, s->sh.proc_fd, err);
	if (!s->sh.side)
		return -1;
	s->loop = sv_loop_start(&s->sh, sv_loop_workers(), err);
	return s->loop ? 0 : -1;
}

int sv_spawn(sv_session *s, const struct sv_start *start, struct sv_err *err)
{
	struct sv_spawn release;
	sigset_t mask;
	int rc;

	if (s->spawned)
		return sv_fail(err, EALREADY, "session", "already started");
	s->sh.self = getpid();
	s->spawned = true;
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->sh.proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	s->sh.ring = sv_ring_new(RING_BYTES, err);
	s->sh.ipc = sv_guard_ipc(err);
	if (!s->sh.ring || !s->sh.ipc)
		return -ENOMEM;
	rc = protect_self(err);
	/* capabilities of our own program file are ours alone: execve drops them */
	if (rc == 0)
		atomic_store(&s->sh.creds_changed, geteuid() != 0 && sv_creds_privileged());
	if (rc == 0)
		rc = take_signals(s, &mask, err);
	if (rc == 0)
		rc = sv_dest_open_all(&s->sh, err);
	if (rc == 0)
		rc = sv_trash_open(&s->sh, start->trash, start->trash_room, err);
	if (rc == 0)
		rc = start_child(s, start, &mask, err);
	if (rc < 0)
		return rc;
	/* a target that plays with the foreground must not stop us; set only now,
	 * as the child would have inherited it */
	signal(SIGTTOU, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	if (start_threads(s, err) < 0)
		return -EAGAIN;
	release.control = s->control;
	rc = sv_spawn_release(&release);
	return rc < 0 ? sv_fail(err, -rc, "start", "the command went away") : s->main_pid;
}

/* The control socket speaks once: closed by a successful execve, or the errno
 * of a failed one. */
static void read_control(sv_session *s)
{
	int32_t report[2];
	ssize_t k = recv(s->control, report, sizeof(report), MSG_DONTWAIT);

	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (k == (ssize_t)sizeof(report))
		s->exec_err = report[1];
	close(s->control);
	s->control = -1;
}

static void read_signals(sv_session *s)
{
	struct signalfd_siginfo si;

	while (read(s->signals, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		/* the terminal told the whole group itself */
		if (si.ssi_code != SI_KERNEL && !atomic_load(&s->exited))
			kill(s->main_pid, (int)si.ssi_signo);
	}
}

/* Waits for events, a child, a signal, or the guardian's end. */
static void wait_something(sv_session *s, int timeout_ms)
{
	struct pollfd p[5] = {
		{ .fd = sv_ring_fd(s->sh.ring), .events = POLLIN },
		{ .fd = s->wake, .events = POLLIN },
		{ .fd = s->control, .events = POLLIN },
		{ .fd = s->signals, .events = POLLIN },
		{ .fd = sv_guard_lifeline(), .events = POLLIN },
	};
	uint64_t n;

	if (poll(p, 5, timeout_ms) <= 0)
		return;
	if (p[1].revents)
		(void)!read(s->wake, &n, sizeof(n));
	if (p[2].revents)
		read_control(s);
	if (p[3].revents)
		read_signals(s);
	if (p[4].revents) {	/* nobody is left who would end the tree for us */
		while (sv_kill_descendants(s->sh.self, SIGKILL) > 0)
			;
		_exit(125);
	}
}

int64_t sv_poll(sv_session *s, uint8_t *buf, size_t cap, int timeout_ms)
{
	int64_t n = sv_ring_get(s->sh.ring, buf, cap, 0);

	if (n)
		return n;
	wait_something(s, timeout_ms);
	return sv_ring_get(s->sh.ring, buf, cap, 0);
}

int sv_rule(sv_session *s, int i, struct sv_rule_text *out)
{
	const struct sv_rule *r;

	if (i < 0 || (uint32_t)i >= s->policy->nrules)
		return -ENOENT;
	r = &s->policy->rules[i];
	memset(out, 0, sizeof(*out));
	memcpy(out->id, r->id.p, r->id.n < sizeof(out->id) ? r->id.n : sizeof(out->id) - 1);
	memcpy(out->src, r->src.p, r->src.n < sizeof(out->src) ? r->src.n : sizeof(out->src) - 1);
	memcpy(out->say, r->say.p, r->say.n < sizeof(out->say) ? r->say.n : sizeof(out->say) - 1);
	return 0;
}

int sv_status(sv_session *s, struct sv_status *out)
{
	memset(out, 0, sizeof(*out));
	out->exited = atomic_load(&s->exited);
	if (out->exited && s->control >= 0)
		read_control(s);
	out->code = atomic_load(&s->code);
	out->running = s->spawned && !out->exited;
	out->exec_err = s->exec_err;
	out->halted = s->halted;
	out->calls = atomic_load(&s->sh.calls);
	out->denied = atomic_load(&s->sh.denied);
	out->steered = atomic_load(&s->sh.steered);
	out->limit = sv_budget_read(&s->sh.budget, out->used);
	if (s->sh.tracer)
		out->tasks = sv_tracer_children(s->sh.tracer);
	if (s->loop)
		out->tasks += sv_loop_busy(s->loop);
	return 0;
}

int sv_kill(sv_session *s, int sig)
{
	if (!s->spawned || s->main_pid <= 0)
		return -ESRCH;
	if (sig) {
		if (atomic_load(&s->exited))
			return -ESRCH;
		return kill(s->main_pid, sig) < 0 ? -errno : 0;
	}
	s->halted = true;
	return sv_kill_descendants(s->sh.self, SIGKILL);
}

static void end_tree(sv_session *s)
{
	struct timespec nap = { 0, 1000000 };

	if (s->main_pid <= 0 || !s->sh.tracer)
		return;
	while (sv_kill_descendants(s->sh.self, SIGKILL) > 0 ||
	       sv_tracer_children(s->sh.tracer) > 0)
		nanosleep(&nap, NULL);
}

void sv_close(sv_session *s)
{
	uint32_t i;

	if (!s)
		return;
	/* the tree first, so that nothing of it goes on unrecorded; the workers
	 * before what they hand calls to */
	end_tree(s);
	if (s->sh.ring)
		sv_ring_close(s->sh.ring);
	sv_loop_stop(s->loop);
	sv_side_stop(s->sh.side);
	if (s->sh.tracer)
		sv_tracer_stop(s->sh.tracer);
	if (s->sh.ring)
		sv_ring_free(s->sh.ring);
	sv_dest_close_all(&s->sh);
	sv_trash_close(s->sh.trash);
	sv_bound_free(s->sh.bound);
	sv_ipc_close(s->sh.ipc);
	sv_close_fd(&s->sh.listener);
	sv_close_fd(&s->sh.proc_fd);
	sv_close_fd(&s->control);
	sv_close_fd(&s->signals);
	sv_close_fd(&s->wake);
	for (i = 0; s->floor && i < s->policy->nfloor; i++)
		free(s->floor[i].path);
	free(s->floor);
	sv_policy_free(s->policy);
	free(s);
}
