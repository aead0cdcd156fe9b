/* local.c - bind, listen and connect of local sockets.
 *
 * Inside the tree a path is decided like a file: bind creates it, connect writes to it.
 * What the tree did not bind is decided by the network rules. The kernel notes the file's
 * inode, which is pinned here, so the address is never looked up again by its name. */
#include "broker/local.h"

#include "base/fd.h"
#include "broker/bound.h"
#include "broker/slow.h"
#include "decode/dupfd.h"
#include "effect/rewrite.h"
#include "match/net.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The errno of a file that nobody listens on: what an earlier run left is then replaced. */
static const char outside[] = "a local socket of a program outside the tree: no network rule "
			      "allows it";
static const char datagrams[] = "local datagram sockets cannot take addresses in this version";
static const char identity[] = "the other side would see the supervisor's user, as the caller "
			       "changed its own";

/* Kinds that have connections. */
static bool is_stream(const struct sv_sock *s)
{
	return s->domain == AF_UNIX && (s->type == SOCK_STREAM || s->type == SOCK_SEQPACKET);
}

/* The path of the address, as a name to be looked up. False: it has none. */
static bool take_path(struct sv_work *w, const struct sockaddr_un *addr, int len)
{
	struct sv_pathname *name = &w->in.name[0];
	const int room = len - (int)offsetof(struct sockaddr_un, sun_path);

	if (room <= 0 || len > (int)sizeof(*addr) || addr->sun_family != AF_UNIX ||
	    !addr->sun_path[0])
		return false;
	*name = (struct sv_pathname){ .dirfd = AT_FDCWD, .at = -1 };
	name->len = snprintf(name->text, sizeof(name->text), "%.*s", room, addr->sun_path);
	return true;
}

/* The mode of a new socket file is that of the socket less the umask, and the
 * umask here is not the caller's. */
static int bind_in(struct sv_work *w, int sock, const struct sockaddr_un *name)
{
	struct stat st;
	mode_t mask;
	int rc = sv_tracee_umask(&w->t, &mask);

	if (rc < 0)
		return rc;
	if (fstat(sock, &st) < 0 || fchmod(sock, st.st_mode & 07777 & ~mask) < 0)
		return -errno;
	rc = bind(sock, (const struct sockaddr *)name, sizeof(*name)) < 0 ? -errno : 0;
	if (fchmod(sock, st.st_mode & 07777) < 0 && rc == 0)
		rc = -errno;
	return rc;
}

/* Names are not moved while it is bound and pinned: the file is the one just made. */
static int bind_and_remember(struct sv_work *w, int sock, const struct sockaddr_un *as, int as_len)
{
	const struct sv_place *p = &w->place[0];
	struct sockaddr_un name;
	int pin = -1, rc = sv_bound_name(w->sh->bound, p->parent, p->last, &name);

	if (rc < 0)
		return rc;
	pthread_rwlock_wrlock(&w->sh->names);
	rc = bind_in(w, sock, &name);
	if (rc == 0)
		pin = openat(p->parent, p->last, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	pthread_rwlock_unlock(&w->sh->names);
	if (rc == 0 && pin >= 0)
		rc = sv_bound_add(w->sh->bound, pin, &name, as, (socklen_t)as_len);
	return rc;
}

static void bind_path(struct sv_work *w, const struct sv_addr *addr)
{
	struct sv_place *p = &w->place[0];
	int rc = sv_pin_parent(&w->paths, &w->t, &w->in.name[0], 0, p);

	if (rc == 0 && sv_place_is_dots(p))
		rc = -EADDRINUSE;
	if (rc < 0) {
		sv_fail_call(w, -rc);
	} else if (w->switched) {
		sv_refuse_why(w, EACCES, identity);
	} else if (!sv_decide_call(w, SV_OP_CREATE, p)) {
		if (w->match.action == SV_STEER)
			sv_refuse_why(w, EACCES, "a socket cannot be steered");
		else
			sv_refuse_unless(w, sv_moot_new(p, false) ? EADDRINUSE : 0);
	} else if (sv_still_valid(&w->t) == 0) {
		rc = bind_and_remember(w, w->in.sock, (const struct sockaddr_un *)&addr->a, addr->len);
		sv_close_fd(&w->in.sock);
		sv_give_result(w, rc == -EEXIST ? -EADDRINUSE : rc);
	}
}

/* What the network rules say. The record names it as rules would. */
static bool ask_rules(struct sv_work *w, uint32_t op, enum sv_net_kind kind, struct sv_str name)
{
	const struct sv_peer peer = { .kind = kind, .name = name };

	w->ops |= op;
	sv_match_peer(w->sh->policy, sv_blocks_in(w), op, &peer, &w->match);
	return w->match.action == SV_ALLOW;
}

/* An abstract name, or none: what has no file is made by the kernel alone. */
static bool ask_abstract(struct sv_work *w, uint32_t op, const struct sv_addr *addr)
{
	const struct sockaddr_un *un = (const void *)&addr->a;
	const int n = addr->len - (int)offsetof(struct sockaddr_un, sun_path) - 1;

	if (un->sun_family != AF_UNIX || n < 0)
		return true;
	if (ask_rules(w, op, SV_NET_ABSTRACT,
		      (struct sv_str){ (const uint8_t *)un->sun_path + 1, (size_t)n }))
		return true;
	sv_refuse(w);
	return false;
}

void sv_local_bind(struct sv_work *w, const struct sv_sock *s, const struct sv_addr *addr)
{
	if (!is_stream(s))
		return sv_refuse_why(w, EACCES, datagrams);
	if (take_path(w, (const struct sockaddr_un *)&addr->a, addr->len))
		return bind_path(w, addr);
	if (ask_abstract(w, SV_OP_BIND, addr) && sv_still_valid(&w->t) == 0)
		sv_give_result(w, bind(s->fd, (const void *)&addr->a, (socklen_t)addr->len) < 0 ?
						  -errno : 0);
}

void sv_local_listen(struct sv_work *w, const struct sv_sock *s)
{
	int rc;

	if (w->switched)
		return sv_refuse_why(w, EACCES, identity);
	if (sv_still_valid(&w->t) < 0)
		return;
	rc = listen(s->fd, (int)w->call.args[1]) < 0 ? -errno : 0;
	sv_close_fd(&w->in.sock);
	sv_give_result(w, rc);
}

/* As unix_find_bsd(): may it be written to, then is it a socket at all? */
static int no_socket_errno(const struct sv_place *p)
{
	if (syscall(SYS_faccessat2, p->fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) < 0)
		return -errno;
	return -ECONNREFUSED;
}

/* glibc asks the name service cache before it reads its files: answered as on a machine
 * that runs none, which is what its absence must look like. */
static bool is_nscd(const struct sv_work *w)
{
	return w->match.rule < 0 && !strcmp(w->in.name[0].text, "/var/run/nscd/socket");
}

static void name_by_path(struct sv_work *w, struct sv_place *p)
{
	struct sv_pathname *name = &w->in.name[0];
	char text[SV_PATH_MAX + 8];

	snprintf(text, sizeof(text), "unix:%.*s", p->len, p->path);
	name->len = snprintf(name->text, sizeof(name->text), "%.*s", (int)sizeof(name->text) - 1, text);
	p->len = 0;
}

/* A program outside the tree listens, or nobody. */
static bool may_reach_outside(struct sv_work *w, struct sv_place *p)
{
	const bool good = ask_rules(w, SV_OP_CONNECT, SV_NET_PATH,
				    (struct sv_str){ (const uint8_t *)p->path, (size_t)p->len });

	if (!good && is_nscd(w)) {
		w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
		sv_fail_call(w, ENOENT);
		return false;
	}
	name_by_path(w, p);
	if (!good && w->match.rule < 0)
		sv_refuse_why(w, ECONNREFUSED, outside);
	else if (!good)
		sv_refuse(w);
	return good;
}

/* Inside the tree it is decided like a file; a network rule may deny it, too. */
static bool may_reach(struct sv_work *w, struct sv_place *p)
{
	if (!sv_bound_has(w->sh->bound, &p->st))
		return may_reach_outside(w, p);
	if (!ask_rules(w, SV_OP_CONNECT, SV_NET_PATH,
		       (struct sv_str){ (const uint8_t *)p->path, (size_t)p->len }) &&
	    w->match.rule >= 0 && w->sh->policy->rules[w->match.rule].kind == SV_RULE_NETWORK) {
		name_by_path(w, p);
		sv_refuse(w);
		return false;
	}
	w->ops = 0;
	if (sv_decide_call(w, SV_OP_WRITE, p))
		return true;
	sv_refuse(w);
	return false;
}

static void connect_path(struct sv_work *w, const struct sv_sock *s)
{
	struct sv_addr to = { .len = sizeof(struct sockaddr_un) };
	struct sockaddr_un *un = (void *)&to.a;
	struct sv_place *p = &w->place[0];
	int rc = sv_pin(&w->paths, &w->t, &w->in.name[0], 0, 0, p);

	if (rc == 0 && !S_ISSOCK(p->st.st_mode))
		rc = no_socket_errno(p);
	if (rc < 0)
		return sv_fail_call(w, -rc);
	if (w->switched)
		return sv_refuse_why(w, EACCES, identity);
	if (!may_reach(w, p) || sv_still_valid(&w->t) < 0)
		return;
	un->sun_family = AF_UNIX;
	snprintf(un->sun_path, sizeof(un->sun_path), "/proc/self/fd/%d", p->fd);
	if (sv_may_wait(s))
		return sv_connect_slowly(w, &to, &p->fd);
	rc = connect(s->fd, (const void *)un, sizeof(*un)) < 0 ? -errno : 0;
	sv_close_fd(&w->in.sock);
	sv_give_result(w, rc);
}

void sv_local_connect(struct sv_work *w, const struct sv_sock *s, const struct sv_addr *addr)
{
	if (!is_stream(s))
		return sv_refuse_why(w, EACCES, datagrams);
	if (take_path(w, (const struct sockaddr_un *)&addr->a, addr->len))
		return connect_path(w, s);
	if (!ask_abstract(w, SV_OP_CONNECT, addr) || sv_still_valid(&w->t) < 0)
		return;
	if (w->switched)
		return sv_refuse_why(w, EACCES, identity);
	if (sv_may_wait(s))
		return sv_connect_slowly(w, addr, NULL);
	sv_give_result(w, connect(s->fd, (const void *)&addr->a, (socklen_t)addr->len) < 0 ? -errno :
											      0);
}

/* As move_addr_to_user(): as much as there is room for, then the whole length. */
static int give_address(const struct sv_work *w, const struct sockaddr_un *as, socklen_t len)
{
	const uint64_t at = w->call.args[1], room_at = w->call.args[2];
	const int whole = (int)len;
	int room, rc = sv_read_mem(&w->t, room_at, &room, sizeof(room));

	if (rc < 0)
		return rc;
	if (room < 0)
		return -EINVAL;
	if (room > whole)
		room = whole;
	if (sv_still_valid(&w->t) < 0)
		return -ENOENT;
	rc = room ? sv_poke(w->call.tid, at, as, (size_t)room) : 0;
	return rc < 0 ? -EFAULT : sv_poke(w->call.tid, room_at, &whole, sizeof(whole)) < 0 ?
					  -EFAULT : 0;
}

/* getsockname and getpeername write what the caller asks for and change nothing, so
 * they go on in the kernel unless they would show a name of ours. */
void sv_do_sockname(struct sv_work *w)
{
	struct sockaddr_un name = { 0 }, as;
	socklen_t n = sizeof(name), as_len;
	int rc, sock = -1;

	if (!sv_bound_any(w->sh->bound) || w->switched ||
	    sv_take_socket(&w->t, w->in.fd, &sock) < 0 || sock < 0)
		return sv_let_go(w);
	rc = w->row->preset ? getpeername(sock, (struct sockaddr *)&name, &n) :
			      getsockname(sock, (struct sockaddr *)&name, &n);
	sv_close_fd(&sock);
	if (rc < 0 || n > sizeof(name) || !sv_bound_as(w->sh->bound, &name, &as, &as_len))
		return sv_let_go(w);
	rc = give_address(w, &as, as_len);
	if (rc != -ENOENT)
		sv_give_result(w, rc);
}
