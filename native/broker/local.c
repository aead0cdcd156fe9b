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

static const char identity[] = "the other side would see the supervisor's user, as the caller "
			       "changed its own";

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
	rc = sv_take(w, SV_LIMIT_FILES_CREATED);
	if (rc == 0)
		rc = bind_in(w, sock, &name);
	if (rc == 0)
		pin = openat(p->parent, p->last, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	pthread_rwlock_unlock(&w->sh->names);
	if (rc == 0 && pin >= 0)
		rc = sv_bound_add(w->sh->bound, pin, &name, as, (socklen_t)as_len);
	return rc;
}

/* What the network rules say. */
static bool ask_rules(struct sv_work *w, uint32_t op, enum sv_net_kind kind, struct sv_str name)
{
	const struct sv_peer peer = { .kind = kind, .name = name };

	w->ops |= op;
	sv_match_peer(w->sh->policy, sv_blocks_in(w), op == SV_OP_BIND ? op : SV_OP_CONNECT, &peer,
		      &w->match);
	return w->match.action == SV_ALLOW;
}

/* The record names it as rules would. */
static int refuse_by_path(struct sv_work *w, struct sv_place *p)
{
	struct sv_pathname *name = &w->in.name[0];
	char text[SV_PATH_MAX + 8];

	snprintf(text, sizeof(text), "unix:%.*s", p->len, p->path);
	name->len = snprintf(name->text, sizeof(name->text), "%.*s", (int)sizeof(name->text) - 1, text);
	p->len = 0;
	return SV_REFUSED;
}

static struct sv_str path_of(const struct sv_place *p)
{
	return (struct sv_str){ (const uint8_t *)p->path, (size_t)p->len };
}

/* Whether a network rule says no of a path that is otherwise decided as a file. */
static bool rule_denies(struct sv_work *w, uint32_t op, const struct sv_place *p)
{
	if (!ask_rules(w, op, SV_NET_PATH, path_of(p)) && sv_by_network_rule(w))
		return true;
	w->ops = 0;
	return false;
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
	} else if (rule_denies(w, SV_OP_BIND, p)) {
		refuse_by_path(w, p);
		sv_refuse(w);
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

/* An abstract name; without one the kernel says what that means. */
static int judge_abstract(struct sv_work *w, uint32_t op, const struct sv_addr *addr)
{
	const struct sockaddr_un *un = (const void *)&addr->a;
	const int n = addr->len - (int)offsetof(struct sockaddr_un, sun_path) - 1;

	if (un->sun_family != AF_UNIX || n < 0)
		return 0;
	return ask_rules(w, op, SV_NET_ABSTRACT,
			 (struct sv_str){ (const uint8_t *)un->sun_path + 1, (size_t)n }) ?
		       0 : SV_REFUSED;
}

void sv_local_bind(struct sv_work *w, const struct sv_sock *s, const struct sv_addr *addr)
{
	const struct sv_no none = { 0, NULL };
	int rc;

	if (take_path(w, (const struct sockaddr_un *)&addr->a, addr->len))
		return bind_path(w, addr);
	rc = judge_abstract(w, SV_OP_BIND, addr);
	if (rc < 0)
		return sv_turn_down(w, rc, &none);
	if (sv_still_valid(&w->t) == 0)
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

/* A program outside the tree listens, or nobody. */
static int judge_outside(struct sv_work *w, uint32_t op, struct sv_place *p)
{
	if (ask_rules(w, op, SV_NET_PATH, path_of(p)))
		return 0;
	if (is_nscd(w)) {
		w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
		return -ENOENT;
	}
	/* that of a file that nobody listens on: what an earlier run left is then replaced */
	if (w->match.rule < 0)
		w->match.err = ECONNREFUSED;
	return refuse_by_path(w, p);
}

/* Inside the tree it is decided like a file; a network rule may deny it, too. */
static int judge_path(struct sv_work *w, uint32_t op, struct sv_place *p)
{
	if (!sv_bound_has(w->sh->bound, &p->st))
		return judge_outside(w, op, p);
	if (rule_denies(w, op, p))
		return refuse_by_path(w, p);
	return sv_decide_call(w, SV_OP_WRITE, p) ? 0 : SV_REFUSED;
}

/* What a program was told of a socket that we bound is a name of ours. */
static int find(struct sv_work *w, const struct sockaddr_un *un, struct sv_place *p)
{
	int fd = sv_bound_pin(w->sh->bound, un);
	int rc = fd >= 0 ? sv_place_adopt(&w->paths, &w->t, fd, false, p) :
			   sv_pin(&w->paths, &w->t, &w->in.name[0], 0, 0, p);

	return rc == 0 && !S_ISSOCK(p->st.st_mode) ? no_socket_errno(p) : rc;
}

int sv_local_reach(struct sv_work *w, uint32_t op, const struct sv_addr *addr, struct sv_addr *to,
		   struct sv_no *no)
{
	const struct sockaddr_un *un = (const void *)&addr->a;
	struct sockaddr_un *out = (void *)&to->a;
	struct sv_place *p = &w->place[0];
	int rc;

	*to = *addr;
	if (!take_path(w, un, addr->len)) {
		rc = judge_abstract(w, op, addr);
	} else {
		rc = find(w, un, p);
		if (rc == 0)
			rc = judge_path(w, op, p);
		*to = (struct sv_addr){ .len = sizeof(*out) };
		out->sun_family = AF_UNIX;
		snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d", p->fd);
	}
	if (rc == 0 && w->switched) {
		*no = (struct sv_no){ EACCES, identity };
		return SV_REFUSED;
	}
	return rc;
}

void sv_local_connect(struct sv_work *w, const struct sv_sock *s, const struct sv_addr *addr)
{
	struct sv_no no = { 0, NULL };
	struct sv_addr to;
	int rc = sv_local_reach(w, SV_OP_CONNECT, addr, &to, &no);

	if (rc < 0)
		return sv_turn_down(w, rc, &no);
	if (sv_still_valid(&w->t) < 0)
		return;
	rc = sv_take_connection(w);
	if (rc < 0)
		return sv_fail_call(w, -rc);
	if (s->type != SOCK_DGRAM)
		return sv_connect_near(w, s, &to, w->place[0].fd >= 0 ? &w->place[0].fd : NULL);
	rc = connect(s->fd, (const void *)&to.a, (socklen_t)to.len) < 0 ? -errno : 0;
	sv_close_fd(&w->in.sock);
	sv_give_result(w, rc);
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
