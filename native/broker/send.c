/* send.c - sendto, sendmsg and sendmmsg.
 *
 * Whatever a message names is read once and sent from our copy, on a duplicate of the
 * caller's socket. Connected sockets of programs with one thread go on in the kernel:
 * nobody can put another socket in the descriptor's place while their only thread waits. */
#include "broker/local.h"
#include "broker/sending.h"

#include "base/fd.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

enum { MESSAGES_MAX = 1024 };	/* UIO_MAXIOV */

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

/* Of an address the kernel would conclude that the caller's own rights are meant, and no
 * more the socket's (NETLINK_SKB_DST); without one it is the kernel that gets it, too. */
static int to_kernel(struct sv_sending_job *j)
{
	const struct sockaddr_nl *nl = (const void *)&j->to.a;

	if (nl->nl_family != AF_NETLINK || nl->nl_pid || nl->nl_groups) {
		j->no = (struct sv_no){ EPERM, "a netlink message to other programs" };
		return SV_REFUSED;
	}
	j->to.len = 0;
	return 0;
}

static int reach_local(struct sv_work *w, struct sv_sending_job *j)
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

static int judge(struct sv_work *w, struct sv_sending_job *j)
{
	int rc = 0;

	if (j->s.domain == AF_NETLINK)
		return to_kernel(j);
	if (j->s.domain != AF_UNIX)
		rc = sv_judge_addr(w, SV_OP_SEND, &j->s, &j->to) ? 0 : SV_REFUSED;
	else if (j->s.type != SOCK_STREAM)
		rc = reach_local(w, j);
	return rc < 0 || sv_is_connected_kind(&j->s) ? rc : sv_take_peer(w, &j->to);
}

static int weigh_address(struct sv_work *w, struct sv_sending_job *j)
{
	/* udpv6_sendmsg() takes it for none; but a socket may have become one of IPv4 by now
	 * (IPV6_ADDRFORM), for which it is an address */
	if (j->s.domain == AF_INET6 && j->to.a.ss_family == AF_UNSPEC &&
	    j->to.len >= (int)sizeof(struct sockaddr))
		j->to.len = 0;
	return j->to.len ? judge(w, j) : 0;
}

/* Whether the message, which was read with rc, may be sent: 0, -errno as the kernel would
 * say, or SV_REFUSED. The address of a datagram is judged; streams have no use for one,
 * and local ones say so. */
static int weigh(struct sv_work *w, struct sv_sending_job *j, int rc)
{
	if (rc == 0 && (j->flags & MSG_ZEROCOPY))
		rc = -ENOBUFS;	/* as where pages cannot be pinned: callers copy then */
	if (sv_is_connected_kind(&j->s) && j->s.domain != AF_UNIX)
		j->to.len = 0;
	if (rc < 0)
		return rc;
	if (j->m.credentials && w->switched)	/* the kernel would look at ours when it waits */
		j->m.refused = "credentials of a caller that changed its identity";
	j->no = (struct sv_no){ EPERM, j->m.refused };
	if (j->m.refused)
		return SV_REFUSED;
	return weigh_address(w, j);
}

void sv_do_sendto(struct sv_work *w)
{
	struct sv_sending_job *j;
	struct sv_sock s;
	int rc;

	if (!sv_take_sock(w, &s) || !(j = sv_sending_begin(w, &s)))
		return;
	rc = sv_read_addr(w, w->in.addr, w->in.addrlen, &j->to);
	if (rc == 0 && !w->in.addrlen && !sv_is_connected_kind(&s) && s.domain != AF_UNIX)
		rc = -EINVAL;	/* which sendmsg() would take for no address at all */
	if (rc == 0)
		rc = sv_read_buffer(&w->t, w->call.args[1], w->call.args[2], kind_of(&s), &j->m);
	rc = weigh(w, j, rc);
	if (rc == 0 && !w->sh->observe)
		return sv_sending_finish(w, j);
	if (rc == 0)
		sv_let_go(w);
	else
		sv_turn_down(w, rc, &j->no);
	sv_sending_free(j);
}

/* What rules would say of the first message is on record. */
static void watch(struct sv_work *w, const struct sv_sock *s)
{
	struct sv_no no = { 0, NULL };
	struct sv_addr given, to;
	struct msghdr h;

	if (sv_is_connected_kind(s) || sv_read_msghdr(&w->t, w->in.addr, &h) < 0 || !h.msg_namelen ||
	    sv_read_addr(w, (uintptr_t)h.msg_name, h.msg_namelen, &given) < 0)
		return;
	if (s->domain == AF_UNIX)
		sv_local_reach(w, SV_OP_SEND, &given, &to, &no);
	else
		sv_judge_addr(w, SV_OP_SEND, s, &given);
}

/* May the kernel go on with it? Then it was answered. */
static bool goes_on(struct sv_work *w, const struct sv_sock *s)
{
	if (!w->sh->observe && !(sv_is_connected_kind(s) && alone(w)))
		return false;
	if (w->sh->observe)
		watch(w, s);
	sv_let_go(w);
	return true;
}

static int read_at(struct sv_work *w, struct sv_sending_job *j, uint64_t at)
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
	struct sv_sending_job *j;
	struct sv_sock s;
	int rc;

	if (!sv_take_sock(w, &s) || goes_on(w, &s) || !(j = sv_sending_begin(w, &s)))
		return;
	rc = read_at(w, j, w->in.addr);
	if (rc == 0)
		return sv_sending_finish(w, j);
	sv_turn_down(w, rc, &j->no);
	sv_sending_free(j);
}

/* The messages behind the first, as many as go at once; what stops one of them comes
 * again when the caller begins with it. Returns how many. */
static unsigned int send_more(struct sv_work *w, struct sv_sending_job *j, unsigned int count)
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
		n = sv_sending_try(j);
		if (n < 0 || !sv_sending_tell(j, n))
			break;
	}
	return i;
}

void sv_do_sendmmsg(struct sv_work *w)
{
	const uint32_t wanted = (uint32_t)w->call.args[2];
	struct sv_sending_job *j;
	struct sv_sock s;
	ssize_t n;
	int rc;

	if (!sv_take_sock(w, &s) || goes_on(w, &s))
		return;
	if (!wanted)
		return sv_give_value(w, 0);
	if (!(j = sv_sending_begin(w, &s)))
		return;
	j->len_at = w->in.addr + offsetof(struct mmsghdr, msg_len);
	rc = read_at(w, j, w->in.addr);
	if (rc < 0) {
		sv_turn_down(w, rc, &j->no);
		return sv_sending_free(j);
	}
	if (sv_still_valid(&w->t) < 0)
		return sv_sending_free(j);
	n = sv_sending_try(j);
	if (n < 0 || sv_is_connected_kind(&s) || !sv_sending_tell(j, n))
		return sv_sending_finish_first(w, j, n);
	rc = (int)send_more(w, j, wanted < MESSAGES_MAX ? wanted : MESSAGES_MAX);
	sv_sending_free(j);
	w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	sv_close_fd(&w->in.sock);
	sv_give_value(w, rc);
}
