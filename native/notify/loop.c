/* loop.c - workers on the listener. */
#include "notify/loop.h"

#include "base/err.h"
#include "decode/realids.h"
#include "effect/creds.h"
#include "effect/respond.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STOP_SIGNAL = 36 };	/* a real-time signal nothing else here uses */
enum { WORKERS_MIN = 2, WORKERS_MAX = 16 };

struct worker {
	struct sv_loop *loop;
	pthread_t thread;
	bool started;
	struct sv_work work;
};

struct sv_loop {
	struct sv_shared *sh;
	size_t notif_size;
	int n;
	atomic_bool stopping;
	atomic_int busy;
	atomic_int live;
	struct worker *workers;
};

static sv_handler *const handlers[] = {
	[SV_HOW_open] = sv_do_open, [SV_HOW_mkdir] = sv_do_mkdir, [SV_HOW_mknod] = sv_do_mknod,
	[SV_HOW_unlink] = sv_do_unlink, [SV_HOW_rename] = sv_do_rename,
	[SV_HOW_link] = sv_do_link, [SV_HOW_symlink] = sv_do_symlink,
	[SV_HOW_chmod] = sv_do_chmod, [SV_HOW_chown] = sv_do_chown, [SV_HOW_utime] = sv_do_utime,
	[SV_HOW_truncate] = sv_do_truncate, [SV_HOW_xattr] = sv_do_xattr,
	[SV_HOW_watch] = sv_do_watch, [SV_HOW_chdir] = sv_do_chdir, [SV_HOW_exec] = sv_do_exec, [SV_HOW_pid] = sv_do_pid,
	[SV_HOW_which] = sv_do_which, [SV_HOW_creds] = sv_do_creds,
	[SV_HOW_connect] = sv_do_connect, [SV_HOW_bind] = sv_do_bind, [SV_HOW_listen] = sv_do_listen,
	[SV_HOW_sendmsg] = sv_do_sendmsg, [SV_HOW_sendmmsg] = sv_do_sendmmsg, [SV_HOW_socket] = sv_do_socket,
	[SV_HOW_socketpair] = sv_do_socketpair,
	[SV_HOW_stat] = sv_do_stat, [SV_HOW_statx] = sv_do_statx, [SV_HOW_access] = sv_do_access,
	[SV_HOW_readlink] = sv_do_readlink, [SV_HOW_statfs] = sv_do_statfs,
	[SV_HOW_getxattr] = sv_do_getxattr, [SV_HOW_fileattr] = sv_do_fileattr,
	[SV_HOW_getdents] = sv_do_getdents,
	[SV_HOW_ioctl] = sv_do_ioctl, [SV_HOW_setsockopt] = sv_do_setsockopt,
	[SV_HOW_memory] = sv_do_memory, [SV_HOW_ptrace] = sv_do_ptrace,
	[SV_HOW_refuse] = sv_do_refuse, [SV_HOW_namespaces] = sv_do_namespaces,
	[SV_HOW_sendto] = sv_do_sendto, [SV_HOW_sockname] = sv_do_sockname,
	[SV_HOW_signal] = sv_do_signal, [SV_HOW_owner] = sv_do_owner,
	[SV_HOW_ipc_get] = sv_do_ipc_get, [SV_HOW_ipc] = sv_do_ipc,
	[SV_HOW_mq_open] = sv_do_mq_open, [SV_HOW_mq_unlink] = sv_do_mq_unlink,
	[SV_HOW_rlimit] = sv_do_rlimit, [SV_HOW_domain] = sv_do_domain,
};

static void begin(struct sv_work *w)
{
	w->ops = 0;
	w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	w->switched = false;
	w->blocks = w->starts = w->taken = 0;
	w->over = 0;
	w->blocks_known = false;
	sv_place_init(&w->place[0]);
	sv_place_init(&w->place[1]);
	w->in.name[0].len = w->in.name[1].len = 0;
	w->in.name[0].text[0] = 0;
	sv_subject_init(&w->in);
}

/* The errno that the kernel itself gives for bad arguments goes back as it is;
 * a target that cannot be read is refused and told. */
static void answer_unread(struct sv_work *w, int rc)
{
	if (rc == -EPERM || rc == -EACCES || rc == -ESRCH)
		sv_refuse_why(w, EACCES, sv_creds_blind() ?
			"the caller's memory cannot be read: after a change of identity that takes "
			"CAP_SYS_PTRACE, which supervise was not given" :
			"the caller's memory cannot be read");
	else
		sv_fail_call(w, -rc);
}

static int take_identity(struct sv_work *w)
{
	struct sv_creds c;
	int rc;

	/* done by the kernel, with the caller's own identity */
	if (w->row->how == SV_HOW_exec || w->row->how == SV_HOW_signal ||
	    !atomic_load_explicit(&w->sh->creds_changed, memory_order_acquire))
		return 0;
	/* a task that changed its ids hides its folders from other identities */
	sv_tracee_prefetch(&w->t, w->in.name[0].dirfd, w->in.name[1].dirfd, w->in.fd);
	rc = sv_tracee_creds(&w->t, &c);
	if (rc == 0 && w->row->how == SV_HOW_access && !(w->in.flags & AT_EACCESS))
		rc = sv_tracee_real_ids(&w->t, &c);
	if (rc < 0)
		return rc;
	return w->row->how == SV_HOW_ipc_get ? sv_creds_enter_whole(&c, &w->switched) :
					       sv_creds_enter(&c, &w->switched);
}

static void handle(struct sv_work *w)
{
	sv_handler *fn;
	int rc;

	w->row = sv_table_find(w->call.nr);
	fn = w->row && w->row->how < sizeof(handlers) / sizeof(handlers[0]) ?
		     handlers[w->row->how] : NULL;
	if (!fn)
		return sv_refuse_why(w, ENOSYS, "a call that the table does not know");
	if ((w->row->how == SV_HOW_exec || w->row->how == SV_HOW_signal) &&
	    sv_tracer_reentry(w->sh->tracer, &w->call))
		return;
	rc = sv_decode(&w->t, w->row, &w->in);
	if (rc < 0)
		return answer_unread(w, rc);
	rc = take_identity(w);
	if (rc < 0)
		sv_refuse_why(w, EACCES, "the caller's identity cannot be taken on");
	else if ((rc = sv_take(w, SV_LIMIT_ACTIONS)) < 0)
		sv_fail_call(w, -rc);
	else
		fn(w);
	if (w->switched)
		sv_creds_leave();
}

/* umask must not apply to what is made for others: per thread where a profile
 * lets us, for the whole process where it does not. */
static void own_umask(void)
{
	(void)unshare(CLONE_FS);
	umask(0);
}

/* Zero bytes where the kernel wants them. Returns false at the end. */
static bool receive(struct sv_loop *l, struct seccomp_notif *n, struct sv_call *call)
{
	struct pollfd p = { .fd = l->sh->listener, .events = POLLIN };

	memset(n, 0, l->notif_size);
	if (ioctl(l->sh->listener, SECCOMP_IOCTL_NOTIF_RECV, n) == 0) {
		call->id = n->id;
		call->tid = (pid_t)n->pid;
		call->nr = n->data.nr;
		memcpy(call->args, n->data.args, sizeof(call->args));
		return true;
	}
	call->tid = -1;
	if (errno == EINTR)
		return true;
	/* ENOENT: the caller died meanwhile, or all are gone */
	return poll(&p, 1, 0) == 0 || !(p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void serve(struct worker *me, struct seccomp_notif *n)
{
	struct sv_loop *l = me->loop;
	struct sv_work *w = &me->work;

	while (!atomic_load(&l->stopping) && receive(l, n, &w->call)) {
		if (w->call.tid < 0)
			continue;
		begin(w);
		atomic_fetch_add(&l->busy, 1);
		atomic_fetch_add_explicit(&l->sh->calls, 1, memory_order_relaxed);
		/* a caller in a pid namespace that we cannot see, or one that is being ended */
		if (w->call.tid == 0 || sv_budget_over(&l->sh->budget))
			sv_answer_errno(l->sh->listener, w->call.id, EACCES);
		else
			handle(w);
		sv_place_close(&w->place[0]);
		sv_place_close(&w->place[1]);
		sv_tracee_forget(&w->t);
		sv_subject_release(&w->in);
		atomic_fetch_sub(&l->busy, 1);
	}
}

static void *worker_main(void *arg)
{
	struct worker *me = arg;
	struct sv_loop *l = me->loop;
	struct seccomp_notif *n = calloc(1, l->notif_size);

	own_umask();
	if (n)
		serve(me, n);
	free(n);
	atomic_fetch_sub(&l->live, 1);
	return NULL;
}

static void on_stop(int sig)
{
	(void)sig;
}

static int notif_size(void)
{
	struct seccomp_notif_sizes s;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &s) < 0)
		return -errno;
	return s.seccomp_notif > sizeof(struct seccomp_notif) ? s.seccomp_notif :
								(int)sizeof(struct seccomp_notif);
}

static int start_worker(struct sv_loop *l, struct worker *me, struct sv_err *err)
{
	struct sv_work *w = &me->work;
	int rc = sv_paths_init(&w->paths, err);

	if (rc < 0)
		return rc;
	me->loop = l;
	w->sh = l->sh;
	w->t = (struct sv_tracee){ .proc_fd = w->paths.proc_fd, .listener = l->sh->listener,
				   .call = &w->call, .cwd = -1 };
	atomic_fetch_add(&l->live, 1);
	if (pthread_create(&me->thread, NULL, worker_main, me)) {
		atomic_fetch_sub(&l->live, 1);
		sv_paths_close(&w->paths);
		return sv_fail(err, EAGAIN, "workers", "no thread can be started");
	}
	me->started = true;
	return 0;
}

int sv_loop_workers(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : WORKERS_MIN;

	n = n < WORKERS_MIN ? WORKERS_MIN : n;
	return n > WORKERS_MAX ? WORKERS_MAX : n;
}

struct sv_loop *sv_loop_start(struct sv_shared *sh, int workers, struct sv_err *err)
{
	struct sv_loop *l = calloc(1, sizeof(*l));
	struct sigaction sa = { .sa_handler = on_stop };
	int size = notif_size(), i;

	if (l)
		l->workers = calloc((size_t)workers, sizeof(*l->workers));
	if (!l || !l->workers || size < 0) {
		free(l);
		sv_fail(err, size < 0 ? -size : ENOMEM, "workers", "seccomp sizes or memory");
		return NULL;
	}
	l->sh = sh;
	l->n = workers;
	l->notif_size = (size_t)size;
	sigaction(STOP_SIGNAL, &sa, NULL);
	for (i = 0; i < workers; i++) {
		if (start_worker(l, &l->workers[i], err) < 0) {
			sv_loop_stop(l);
			return NULL;
		}
	}
	return l;
}

int sv_loop_busy(struct sv_loop *loop)
{
	return atomic_load(&loop->busy);
}

/* A signal may come just before the thread sleeps in RECV: repeat until all
 * have gone. */
void sv_loop_stop(struct sv_loop *l)
{
	struct timespec nap = { 0, 500000 };
	int i;

	if (!l)
		return;
	atomic_store(&l->stopping, true);
	while (atomic_load(&l->live) > 0) {
		for (i = 0; i < l->n; i++)
			if (l->workers[i].started)
				pthread_kill(l->workers[i].thread, STOP_SIGNAL);
		nanosleep(&nap, NULL);
	}
	for (i = 0; i < l->n; i++) {
		if (!l->workers[i].started)
			continue;
		pthread_join(l->workers[i].thread, NULL);
		sv_paths_close(&l->workers[i].work.paths);
	}
	free(l->workers);
	free(l);
}
