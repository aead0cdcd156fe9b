/* send.c - sendto, sendmsg and sendmmsg.
 *
 * Whatever a message names is read once and sent from our copy, on a duplicate of the
 * caller's socket. Connected sockets of programs with one thread go on in the kernel:
 * nobody can put another socket in the descriptor's place while their only thread waits. */
#include "broker/local.h"
#include "broker/slow.h"

#include "base/fd.h"
#include "decode/message.h"
#include "effect/respond.h"
#include "effect/rewrite.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MESSAGES_MAX = 1024 };	/* UIO_MAXIOV */

/* One message on its way; on a side thread where it has to wait. */
struct sending {
	struct sv_message m;
	struct sv_no no;
	struct sv_addr to;
	int keep;		/* what the address goes through */
	struct sv_sock s;
	int flags;
	size_t done;		/* bytes of what was copied that are sent */
	size_t before;		/* bytes of a stream that were sent before those */
	struct sv_call call;
	struct sv_tracee t;	/* for a side thread, which reads on */
	int listener;
	uint64_t id;
	pid_t tid;
	uint64_t len_at;	/* sendmmsg: where the length goes, else 0 */
};

static bool is_stream(const struct sv_sock *s)
{
	return s->type == SOCK_STREAM || s->type == SOCK_SEQPACKET;
}

static enum sv_sending kind_of(const struct sv_sock *s)
{
	if (s->type == SOCK_STREAM)
		return SV_SEND_STREAM;
	return s->domain == AF_UNIX ? SV_SEND_PACKET : SV_SEND_DATAGRAM;
}

/* No other thread, and none that shares its descriptors elsewhere. */
static bool alone(const struct sv_work *w)
{
	char name[32];
	struct stat st;

	if (atomic_load(&w->sh->files_shared))
		return false;
	snprintf(name, sizeof(name), "%d/task", (int)w->call.tid);
	return fstatat(w->paths.proc_fd, name, &st, 0) == 0 && st.st_nlink == 3;
}

static size_t sent(const struct sending *j)
{
	return j->before + j->done;
}

/* Returns bytes sent, or -errno. */
static ssize_t send_once(struct sending *j, int more)
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
static ssize_t send_copied(struct sending *j, int more)
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
static ssize_t send_on(struct sending *j)
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

static void free_sending(struct sending *j)
{
	sv_message_release(&j->m);
	sv_close_fd(&j->keep);
	free(j);
}

/* Natively the signal comes with the error, unless the caller said no. */
static void pass_sigpipe(const struct sending *j, ssize_t n)
{
	if (n == -EPIPE && j->s.type == SOCK_STREAM && !(j->flags & MSG_NOSIGNAL))
		syscall(SYS_tkill, j->tid, SIGPIPE);
}

static bool tell_length(const struct sending *j, ssize_t n)
{
	const uint32_t len = (uint32_t)n;

	return !j->len_at || sv_poke(j->tid, j->len_at, &len, sizeof(len)) == 0;
}

static void run(void *arg)
{
	struct sending *j = arg;
	ssize_t n = send_on(j);

	if (n == -EINTR)
		n = -SV_RESTART;
	close(j->s.fd);
	if (sv_side_claim()) {
		pass_sigpipe(j, n);
		if (n >= 0 && !tell_length(j, n))
			n = -EFAULT;
		if (n < 0)
			sv_answer_errno(j->listener, j->id, (int)-n);
		else
			sv_answer_value(j->listener, j->id, j->len_at ? 1 : n);
	}
	free_sending(j);
}

static void send_slowly(struct sv_work *w, struct sending *j)
{
	j->s.fd = take_fd(&w->in.sock);
	sv_tell(w, SV_EFFECT_BROKER, 0, (struct sv_str){ NULL, 0 });
	if (sv_side_run(w->sh->side, &w->call, run, j) == 0)
		return;
	close(j->s.fd);
	free_sending(j);
	sv_answer_errno(w->sh->listener, w->call.id, EAGAIN);
}

static struct sending *begin(struct sv_work *w, const struct sv_sock *s)
{
	struct sending *j = calloc(1, sizeof(*j));

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

/* Of an address the kernel would conclude that the caller's own rights are meant, and no
 * more the socket's (NETLINK_SKB_DST); without one it is the kernel that gets it, too. */
static int to_kernel(struct sending *j)
{
	const struct sockaddr_nl *nl = (const void *)&j->to.a;

	if (nl->nl_family != AF_NETLINK || nl->nl_pid || nl->nl_groups) {
		j->no = (struct sv_no){ EPERM, "a netlink message to other programs" };
		return SV_REFUSED;
	}
	j->to.len = 0;
	return 0;
}

static int reach_local(struct sv_work *w, struct sending *j)
{
	const struct sv_addr given = j->to;
	int rc;

	sv_place_close(&w->place[0]);
	sv_place_init(&w->place[0]);
	rc = sv_local_reach(w, SV_OP_SEND, &given, &j->to, &j->no);
	sv_close_fd(&j->keep);
	j->keep = take_fd(&w->place[0].fd);
	return rc;
}

static int judge(struct sv_work *w, struct sending *j)
{
	int rc = 0;

	if (j->s.domain == AF_NETLINK)
		return to_kernel(j);
	if (j->s.domain != AF_UNIX)
		rc = sv_judge_addr(w, SV_OP_SEND, &j->s, &j->to) ? 0 : SV_REFUSED;
	else if (j->s.type != SOCK_STREAM)
		rc = reach_local(w, j);
	return rc < 0 || is_stream(&j->s) ? rc : sv_take_peer(w, &j->to);
}

/* Whether the message, which was read with rc, may be sent: 0, -errno as the kernel would
 * say, or SV_REFUSED. A datagram's address is judged; streams need none, local ones say so. */
static int weigh(struct sv_work *w, struct sending *j, int rc)
{
	if (rc == 0 && (j->flags & MSG_ZEROCOPY))
		rc = -ENOBUFS;	/* as where pages cannot be pinned: callers copy then */
	if (is_stream(&j->s) && j->s.domain != AF_UNIX)
		j->to.len = 0;
	if (rc < 0)
		return rc;
	if (j->m.credentials && w->switched)	/* the kernel would look at ours when it waits */
		j->m.refused = "credentials of a caller that changed its identity";
	j->no = (struct sv_no){ EPERM, j->m.refused };
	if (j->m.refused)
		return SV_REFUSED;
	/* udpv6_sendmsg() takes it for none; but a socket may have become one of IPv4 by now
	 * (IPV6_ADDRFORM), for which it is an address */
	if (j->s.domain == AF_INET6 && j->to.a.ss_family == AF_UNSPEC &&
	    j->to.len >= (int)sizeof(struct sockaddr))
		j->to.len = 0;
	return j->to.len ? judge(w, j) : 0;
}

static bool may_wait(const struct sending *j)
{
	return !(j->flags & MSG_DONTWAIT) && sv_may_wait(&j->s);
}

static bool has_more(const struct sending *j)
{
	return j->s.type == SOCK_STREAM && (j->done < j->m.n || j->m.first < j->m.nparts);
}

/* After n bytes went at once, or none for that reason: the rest slowly where it has to
 * wait, or the answer. Frees j. */
static void finish_first(struct sv_work *w, struct sending *j, ssize_t n)
{
	if (may_wait(j) && (n == -EAGAIN || (n > 0 && has_more(j))))
		return send_slowly(w, j);
	pass_sigpipe(j, n);
	if (n >= 0 && !tell_length(j, n))
		n = -EFAULT;
	sv_close_fd(&w->in.sock);
	if (n < 0)
		sv_fail_call(w, (int)-n);
	else
		sv_give_value(w, j->len_at ? 1 : n);
	free_sending(j);
}

static void finish(struct sv_work *w, struct sending *j)
{
	if (sv_still_valid(&w->t) < 0)
		return free_sending(j);
	finish_first(w, j, send_copied(j, MSG_DONTWAIT));
}

void sv_do_sendto(struct sv_work *w)
{
	struct sending *j;
	struct sv_sock s;
	int rc;

	if (!sv_take_sock(w, &s) || !(j = begin(w, &s)))
		return;
	rc = sv_read_addr(w, w->in.addr, w->in.addrlen, &j->to);
	if (rc == 0 && !w->in.addrlen && !is_stream(&s) && s.domain != AF_UNIX)
		rc = -EINVAL;	/* which sendmsg() would take for no address at all */
	if (rc == 0)
		rc = sv_read_buffer(&w->t, w->call.args[1], w->call.args[2], kind_of(&s), &j->m);
	rc = weigh(w, j, rc);
	if (rc == 0 && !w->sh->observe)
		return finish(w, j);
	if (rc == 0)
		sv_let_go(w);
	else
		sv_turn_down(w, rc, &j->no);
	free_sending(j);
}

/* May the kernel go on with it? Then it was answered. */
static bool goes_on(struct sv_work *w, const struct sv_sock *s)
{
	if (!w->sh->observe && !(is_stream(s) && alone(w)))
		return false;
	sv_let_go(w);
	return true;
}

static int read_at(struct sv_work *w, struct sending *j, uint64_t at)
{
	struct msghdr h;
	int rc = sv_read_msghdr(&w->t, at, &h);

	if (rc == 0 && h.msg_namelen)
		rc = sv_read_addr(w, (uintptr_t)h.msg_name, h.msg_namelen, &j->to);
	if (rc == 0)
		rc = sv_read_message(&w->t, &h, kind_of(&j->s), &j->m);
	return weigh(w, j, rc);
}

void sv_do_sendmsg(struct sv_work *w)
{
	struct sending *j;
	struct sv_sock s;
	int rc;

	if (!sv_take_sock(w, &s) || goes_on(w, &s) || !(j = begin(w, &s)))
		return;
	rc = read_at(w, j, w->in.addr);
	if (rc == 0)
		return finish(w, j);
	sv_turn_down(w, rc, &j->no);
	free_sending(j);
}

/* The messages behind the first, as many as go at once; what stops one of them comes
 * again when the caller begins with it. Returns how many. */
static unsigned int send_more(struct sv_work *w, struct sending *j, unsigned int count)
{
	unsigned int i;

	for (i = 1; i < count; i++) {
		const uint64_t at = w->in.addr + i * sizeof(struct mmsghdr);
		ssize_t n;

		sv_message_release(&j->m);
		j->done = j->before = 0;
		j->to.len = 0;
		j->len_at = at + offsetof(struct mmsghdr, msg_len);
		if (read_at(w, j, at) || sv_still_valid(&w->t) < 0)
			break;
		n = send_copied(j, MSG_DONTWAIT);
		if (n < 0 || !tell_length(j, n))
			break;
	}
	return i;
}

void sv_do_sendmmsg(struct sv_work *w)
{
	const uint32_t wanted = (uint32_t)w->call.args[2];
	struct sending *j;
	struct sv_sock s;
	ssize_t n;
	int rc;

	if (!sv_take_sock(w, &s) || goes_on(w, &s))
		return;
	if (!wanted)
		return sv_give_value(w, 0);
	if (!(j = begin(w, &s)))
		return;
	j->len_at = w->in.addr + offsetof(struct mmsghdr, msg_len);
	rc = read_at(w, j, w->in.addr);
	if (rc < 0) {
		sv_turn_down(w, rc, &j->no);
		return free_sending(j);
	}
	if (sv_still_valid(&w->t) < 0)
		return free_sending(j);
	n = send_copied(j, MSG_DONTWAIT);
	if (n < 0 || is_stream(&s) || !tell_length(j, n))
		return finish_first(w, j, n);
	rc = (int)send_more(w, j, wanted < MESSAGES_MAX ? wanted : MESSAGES_MAX);
	free_sending(j);
	w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	sv_close_fd(&w->in.sock);
	sv_give_value(w, rc);
}
