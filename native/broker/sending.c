/* sending.c - a message is sent at once, or by a side thread that waits for its turn. */
#include "broker/sending.h"

#include "base/fd.h"
#include "broker/slow.h"
#include "effect/respond.h"
#include "effect/rewrite.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

bool sv_is_connected_kind(const struct sv_sock *s)
{
	return s->type == SOCK_STREAM || s->type == SOCK_SEQPACKET;
}

static size_t sent(const struct sv_sending_job *j)
{
	return j->before + j->done;
}

/* Returns bytes sent, or -errno. */
static ssize_t send_once(struct sv_sending_job *j, int more)
{
	struct iovec iov = { j->m.data + j->done, j->m.n - j->done };
	struct msghdr h = {
		.msg_name = j->to.len ? &j->to.a : NULL, .msg_namelen = (socklen_t)j->to.len,
		.msg_iov = &iov, .msg_iovlen = 1,
		/* with the first bytes only */
		.msg_control = sent(j) ? NULL : j->m.control,
		.msg_controllen = sent(j) ? 0 : j->m.control_n,
	};
	ssize_t n = sendmsg(j->s.fd, &h, j->flags | MSG_NOSIGNAL | more);

	return n < 0 ? -errno : n;
}

/* What was copied, or as much of it as goes. The bytes that went by now, or -errno. */
static ssize_t send_copied(struct sv_sending_job *j, int more)
{
	ssize_t n;

	do {
		n = send_once(j, more);
		if (n > 0)
			j->done += (size_t)n;
	} while (n > 0 && j->s.type == SOCK_STREAM && j->done < j->m.n);
	return sent(j) ? (ssize_t)sent(j) : n;
}

/* A stream's bytes wait for their turn until all have gone, or one cannot. */
static ssize_t send_on(struct sv_sending_job *j)
{
	ssize_t n = send_copied(j, 0);

	while (n >= 0 && j->s.type == SOCK_STREAM && j->done == j->m.n && j->m.n) {
		j->before += j->done;
		j->done = 0;
		if (sv_read_on(&j->t, &j->m) < 0 || !j->m.n)
			break;
		n = send_copied(j, 0);
	}
	return n;
}

void sv_sending_free(struct sv_sending_job *j)
{
	sv_message_release(&j->m);
	sv_close_fd(&j->keep);
	free(j);
}

/* Natively the signal comes with the error, unless the caller said no. */
static void pass_sigpipe(const struct sv_sending_job *j, ssize_t n)
{
	if (n == -EPIPE && j->s.type == SOCK_STREAM && !(j->flags & MSG_NOSIGNAL))
		syscall(SYS_tkill, j->tid, SIGPIPE);
}

bool sv_sending_tell(const struct sv_sending_job *j, ssize_t n)
{
	const uint32_t len = (uint32_t)n;

	return !j->len_at || sv_poke(j->tid, j->len_at, &len, sizeof(len)) == 0;
}

static void run(void *arg)
{
	struct sv_sending_job *j = arg;
	ssize_t n = send_on(j);

	if (n == -EINTR)
		n = -SV_RESTART;
	close(j->s.fd);
	if (sv_side_claim()) {
		pass_sigpipe(j, n);
		if (n >= 0 && !sv_sending_tell(j, n))
			n = -EFAULT;
		if (n < 0)
			sv_answer_errno(j->listener, j->id, (int)-n);
		else
			sv_answer_value(j->listener, j->id, j->len_at ? 1 : n);
	}
	sv_sending_free(j);
}

static void send_slowly(struct sv_work *w, struct sv_sending_job *j)
{
	j->s.fd = take_fd(&w->in.sock);
	sv_tell(w, SV_EFFECT_BROKER, 0, (struct sv_str){ NULL, 0 });
	if (sv_side_run(w->sh->side, &w->call, run, j) == 0)
		return;
	close(j->s.fd);
	sv_sending_free(j);
	sv_answer_errno(w->sh->listener, w->call.id, EAGAIN);
}

struct sv_sending_job *sv_sending_begin(struct sv_work *w, const struct sv_sock *s)
{
	struct sv_sending_job *j = calloc(1, sizeof(*j));

	if (!j) {
		sv_fail_call(w, ENOMEM);
		return NULL;
	}
	sv_message_init(&j->m);
	j->s = *s;
	j->keep = -1;
	j->flags = (int)w->in.flags;
	j->listener = w->sh->listener;
	j->id = w->call.id;
	j->tid = w->call.tid;
	j->call = w->call;
	j->t = (struct sv_tracee){ .proc_fd = w->sh->proc_fd, .listener = w->sh->listener,
				   .call = &j->call, .cwd = -1 };
	return j;
}

static bool may_wait(const struct sv_sending_job *j)
{
	return !(j->flags & MSG_DONTWAIT) && sv_may_wait(&j->s);
}

static bool has_more(const struct sv_sending_job *j)
{
	return j->s.type == SOCK_STREAM && (j->done < j->m.n || j->m.first < j->m.nparts);
}

void sv_sending_finish_first(struct sv_work *w, struct sv_sending_job *j, ssize_t n)
{
	if (may_wait(j) && (n == -EAGAIN || (n > 0 && has_more(j))))
		return send_slowly(w, j);
	pass_sigpipe(j, n);
	if (n >= 0 && !sv_sending_tell(j, n))
		n = -EFAULT;
	sv_close_fd(&w->in.sock);
	if (n < 0)
		sv_fail_call(w, (int)-n);
	else
		sv_give_value(w, j->len_at ? 1 : n);
	sv_sending_free(j);
}

void sv_sending_finish(struct sv_work *w, struct sv_sending_job *j)
{
	if (sv_still_valid(&w->t) < 0)
		return sv_sending_free(j);
	sv_sending_finish_first(w, j, send_copied(j, MSG_DONTWAIT));
}

ssize_t sv_sending_try(struct sv_sending_job *j)
{
	return send_copied(j, MSG_DONTWAIT);
}
