/* local.c - bind, listen and connect between programs of the tree.
 *
 * A path is decided like a file: bind creates it, connect writes to it. Connected is
 * only what the tree itself bound: the kernel notes the file's inode, which is pinned
 * here, so the address is never looked up again by its name. */
#include "broker/local.h"

#include "base/fd.h"
#include "broker/bound.h"
#include "decode/dupfd.h"
#include "effect/respond.h"
#include "effect/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The errno of a file that nobody listens on: what an earlier run left is then replaced. */
static const char outside[] = "a local socket of a program outside the tree: this version has no "
			      "network rules";
static const char identity[] = "the other side would see the supervisor's user, as the caller "
			       "changed its own";

static int option(int fd, int name)
{
	int value = -1;
	socklen_t n = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &n) < 0 ? -errno : value;
}

int sv_socket_errno(const struct sv_work *w)
{
	char name[48], text[8] = "";

	snprintf(name, sizeof(name), "%d/fd/%d", (int)w->call.tid, w->in.fd);
	if (readlinkat(w->paths.proc_fd, name, text, sizeof(text) - 1) < 0)
		return errno == ENOENT ? EBADF : 0;
	return strncmp(text, "socket:", 7) ? ENOTSOCK : 0;
}

/* A duplicate of the caller's socket where it is a local one of a kind that has
 * connections; else -errno. A copy of anything else could be noticed. */
static int take_socket(const struct sv_work *w)
{
	int type, fd = sv_socket_errno(w) ? -ENOTSOCK : sv_duplicate(&w->t, w->in.fd);

	if (fd < 0)
		return fd;
	type = option(fd, SO_TYPE);
	if (option(fd, SO_DOMAIN) == AF_UNIX && (type == SOCK_STREAM || type == SOCK_SEQPACKET))
		return fd;
	close(fd);
	return -EAFNOSUPPORT;
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

bool sv_local_bind(struct sv_work *w, const struct sockaddr_un *addr, int len)
{
	struct sv_place *p = &w->place[0];
	cleanup_fd int sock = -1;
	int rc;

	if (!take_path(w, addr, len) || (sock = take_socket(w)) < 0)
		return false;
	rc = sv_pin_parent(&w->paths, &w->t, &w->in.name[0], 0, p);
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
		rc = bind_and_remember(w, sock, addr, len);
		sv_close_fd(&sock);
		sv_give_result(w, rc == -EEXIST ? -EADDRINUSE : rc);
	}
	return true;
}

bool sv_local_listen(struct sv_work *w)
{
	cleanup_fd int sock = w->switched ? -1 : take_socket(w);
	int rc;

	if (sock < 0)
		return false;
	if (sv_still_valid(&w->t) < 0)
		return true;
	rc = listen(sock, (int)w->call.args[1]) < 0 ? -errno : 0;
	sv_close_fd(&sock);
	sv_give_result(w, rc);
	return true;
}

struct slow_connect {
	int listener;
	int sock;
	int pin;
	uint64_t id;
};

static int connect_to(int sock, int pin)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	snprintf(name.sun_path, sizeof(name.sun_path), "/proc/self/fd/%d", pin);
	return connect(sock, (const struct sockaddr *)&name, sizeof(name)) < 0 ? -errno : 0;
}

static void slow_connect_run(void *arg)
{
	struct slow_connect *j = arg;
	int rc = connect_to(j->sock, j->pin);

	close(j->sock);
	close(j->pin);
	if (sv_side_claim()) {
		if (rc < 0)
			sv_answer_errno(j->listener, j->id, rc == -EINTR ? SV_RESTART : -rc);
		else
			sv_answer_value(j->listener, j->id, 0);
	}
	free(j);
}

/* It waits while the other side's queue is full. */
static void connect_slowly(struct sv_work *w, int *sock)
{
	struct slow_connect *j = calloc(1, sizeof(*j));

	if (!j)
		return sv_fail_call(w, ENOMEM);
	*j = (struct slow_connect){ w->sh->listener, take_fd(sock), take_fd(&w->place[0].fd),
				    w->call.id };
	sv_tell(w, SV_EFFECT_BROKER, 0, (struct sv_str){ NULL, 0 });
	if (sv_side_run(w->sh->side, &w->call, slow_connect_run, j) == 0)
		return;
	close(j->sock);
	close(j->pin);
	free(j);
	sv_answer_errno(w->sh->listener, w->call.id, EAGAIN);
}

/* As unix_find_bsd(): may it be written to, then is it a socket at all? */
static int no_socket_errno(const struct sv_place *p)
{
	if (syscall(SYS_faccessat2, p->fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) < 0)
		return -errno;
	return -ECONNREFUSED;
}

bool sv_local_connect(struct sv_work *w, const struct sockaddr_un *addr, int len)
{
	struct sv_place *p = &w->place[0];
	cleanup_fd int sock = -1;
	int rc;

	if (!take_path(w, addr, len) || (sock = take_socket(w)) < 0)
		return false;
	rc = sv_pin(&w->paths, &w->t, &w->in.name[0], 0, 0, p);
	if (rc == 0 && !S_ISSOCK(p->st.st_mode))
		rc = no_socket_errno(p);
	if (rc < 0) {
		sv_fail_call(w, -rc);
	} else if (!sv_bound_has(w->sh->bound, &p->st)) {
		sv_refuse_why(w, ECONNREFUSED, outside);
	} else if (w->switched) {
		sv_refuse_why(w, EACCES, identity);
	} else if (!sv_decide_call(w, SV_OP_WRITE, p)) {
		sv_refuse(w);
	} else if (sv_still_valid(&w->t) == 0) {
		if (!(fcntl(sock, F_GETFL) & O_NONBLOCK)) {
			connect_slowly(w, &sock);
			return true;
		}
		rc = connect_to(sock, p->fd);
		sv_close_fd(&sock);
		sv_give_result(w, rc);
	}
	return true;
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
	cleanup_fd int sock = -1;
	int rc;

	if (!sv_bound_any(w->sh->bound) || w->switched || (sock = take_socket(w)) < 0)
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
