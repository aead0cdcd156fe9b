/* slow.c - a connect on a side thread. */
#include "broker/slow.h"

#include "base/fd.h"
#include "effect/brief.h"
#include "effect/respond.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

struct slow_connect {
	int listener;
	int sock;
	int keep;
	uint64_t id;
	struct sv_addr to;
};

bool sv_may_wait(const struct sv_sock *s)
{
	return !(fcntl(s->fd, F_GETFL) & O_NONBLOCK);
}

static void let_go(struct slow_connect *j)
{
	sv_close_fd(&j->sock);
	sv_close_fd(&j->keep);
}

static void run(void *arg)
{
	struct slow_connect *j = arg;
	int rc = connect(j->sock, (const struct sockaddr *)&j->to.a, (socklen_t)j->to.len) < 0 ?
			 -errno : 0;

	let_go(j);
	if (sv_side_claim()) {
		if (rc < 0)
			sv_answer_errno(j->listener, j->id, rc == -EINTR ? SV_RESTART : -rc);
		else
			sv_answer_value(j->listener, j->id, 0);
	}
	free(j);
}

void sv_connect_slowly(struct sv_work *w, const struct sv_addr *to, int *keep)
{
	struct slow_connect *j = calloc(1, sizeof(*j));

	if (!j)
		return sv_fail_call(w, ENOMEM);
	*j = (struct slow_connect){ .listener = w->sh->listener, .sock = take_fd(&w->in.sock),
				    .keep = keep ? take_fd(keep) : -1, .id = w->call.id, .to = *to };
	sv_tell(w, SV_EFFECT_BROKER, 0, (struct sv_str){ NULL, 0 });
	if (sv_side_run(w->sh->side, &w->call, run, j) == 0)
		return;
	let_go(j);
	free(j);
	sv_answer_errno(w->sh->listener, w->call.id, EAGAIN);
}

void sv_connect_near(struct sv_work *w, const struct sv_sock *s, const struct sv_addr *to,
		     int *keep)
{
	int rc = sv_brief_connect(s->fd, (const struct sockaddr *)&to->a, (socklen_t)to->len,
				  sv_may_wait(s));

	if (rc == -EINTR)
		return sv_connect_slowly(w, to, keep);
	sv_close_fd(&w->in.sock);
	sv_give_result(w, rc);
}
