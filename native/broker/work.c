/* work.c - judging, answering and telling, for every handler. */
#include "broker/work.h"

#include "effect/label.h"
#include "effect/respond.h"
#include "event/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

/* What keeps the supervisor itself safe holds while observing, too. */
static bool built_in(const struct sv_work *w)
{
	static const char src[] = "built-in";
	const struct sv_rule *r;

	if (w->match.rule < 0)
		return false;
	r = &w->sh->policy->rules[w->match.rule];
	return r->src.n == sizeof(src) - 1 && !memcmp(r->src.p, src, r->src.n);
}

uint32_t sv_blocks_in(struct sv_work *w)
{
	if (w->sh->policy->nblocks && !w->blocks_known) {
		w->blocks = sv_label_read(w->paths.proc_fd, w->call.tid);
		w->blocks_known = true;
	}
	return w->blocks;
}

bool sv_decide_call(struct sv_work *w, uint32_t ops, const struct sv_place *place)
{
	struct sv_str path = { (const uint8_t *)place->path, (size_t)place->len };

	w->ops |= ops;
	sv_match_path_in(w->sh->policy, sv_blocks_in(w), path, ops, &w->match);
	if (w->match.action == SV_ALLOW)
		return true;
	return w->sh->observe && !built_in(w);
}

void sv_record(struct sv_shared *sh, const struct sv_event *e)
{
	uint8_t buf[SV_RECORD_MAX];
	int64_t n = sv_record_write(e, buf, sizeof(buf));

	if (n > 0)
		sv_ring_put(sh->ring, buf, (size_t)n);
}

static void put(struct sv_work *w, enum sv_event_kind kind, enum sv_effect effect, int err,
		struct sv_str detail)
{
	char comm[64];
	struct sv_event e = {
		.kind = kind, .tid = w->call.tid, .nr = w->call.nr, .ops = w->ops,
		.action = w->match.action, .effect = effect, .rule = w->match.rule, .err = err,
		.detail = detail,
	};
	const struct sv_place *p = w->place;
	int i;

	sv_tracee_comm(&w->t, comm, sizeof(comm));
	e.comm = (struct sv_str){ (const uint8_t *)comm, strlen(comm) };
	for (i = 0; i < 2; i++) {
		struct sv_str s = { (const uint8_t *)p[i].path, (size_t)p[i].len };

		if (p[i].len == 0)
			s = (struct sv_str){ (const uint8_t *)w->in.name[i].text,
					     (size_t)w->in.name[i].len };
		if (i == 0)
			e.path = s;
		else
			e.path2 = s;
	}
	sv_record(w->sh, &e);
}

/* Is a call that went through worth a record? */
static bool recorded(const struct sv_work *w)
{
	const uint32_t changes = SV_OP_WRITE | SV_OP_CREATE | SV_OP_DELETE | SV_OP_RENAME |
				 SV_OP_METADATA | SV_OP_EXEC | SV_OP_CONNECT | SV_OP_BIND;

	if (w->match.action != SV_ALLOW || w->sh->record == SV_RECORD_ALL)
		return true;
	return w->sh->record == SV_RECORD_CHANGES && (w->ops & changes);
}

void sv_tell(struct sv_work *w, enum sv_effect effect, int err, struct sv_str detail)
{
	if (recorded(w))
		put(w, SV_EVENT_CALL, effect, err, detail);
}

static const struct sv_str nothing;

void sv_refuse(struct sv_work *w)
{
	sv_refuse_telling(w, nothing);
}

void sv_refuse_telling(struct sv_work *w, struct sv_str detail)
{
	sv_give_back(w);
	sv_count_denied(w->sh, w->call.tid);
	put(w, SV_EVENT_CALL, SV_EFFECT_ERRNO, w->match.err, detail);
	sv_answer_errno(w->sh->listener, w->call.id, w->match.err);
}

void sv_refuse_why(struct sv_work *w, int err, const char *why)
{
	struct sv_str detail = { (const uint8_t *)why, strlen(why) };

	w->match = (struct sv_match){ .action = SV_DENY, .rule = -1, .err = err };
	sv_give_back(w);
	sv_count_denied(w->sh, w->call.tid);
	put(w, SV_EVENT_FAULT, SV_EFFECT_ERRNO, err, detail);
	sv_answer_errno(w->sh->listener, w->call.id, err);
}

void sv_refuse_rule(struct sv_work *w, const char *why)
{
	sv_give_back(w);
	sv_count_denied(w->sh, w->call.tid);
	put(w, SV_EVENT_FAULT, SV_EFFECT_ERRNO, w->match.err,
	    (struct sv_str){ (const uint8_t *)why, strlen(why) });
	sv_answer_errno(w->sh->listener, w->call.id, w->match.err);
}

/* The run is ended before the answer: nothing goes on after it. */
static void refuse_over(struct sv_work *w)
{
	sv_over_limit(w);
	sv_give_back(w);
	sv_count_denied(w->sh, w->call.tid);
	put(w, SV_EVENT_CALL, SV_EFFECT_ERRNO, w->match.err, nothing);
	sv_end_by_limit(w);
	sv_answer_errno(w->sh->listener, w->call.id, w->match.err);
}

void sv_fail_call(struct sv_work *w, int err)
{
	if (w->over)
		return refuse_over(w);
	if (err != EINPROGRESS)
		sv_give_back(w);
	sv_answer_errno(w->sh->listener, w->call.id, err);
	if (w->match.action != SV_ALLOW)
		put(w, SV_EVENT_CALL, SV_EFFECT_BROKER, err, nothing);
}

/* A pin keeps a file that is then removed, and a caller who watches it would not
 * hear of that in time. */
static void let_pins_go(struct sv_work *w)
{
	sv_place_close(&w->place[0]);
	sv_place_close(&w->place[1]);
	sv_tracee_forget(&w->t);
}

/* What was done is told before the answer: nothing unrecorded goes on. */
void sv_give_value(struct sv_work *w, int64_t value)
{
	sv_tell(w, SV_EFFECT_BROKER, 0, nothing);
	let_pins_go(w);
	sv_answer_value(w->sh->listener, w->call.id, value);
}

void sv_give_fd(struct sv_work *w, int fd, bool cloexec, bool writable)
{
	int rc;

	sv_tell(w, SV_EFFECT_BROKER, 0, nothing);
	let_pins_go(w);
	rc = sv_inject(w->sh->listener, w->call.id, fd, cloexec, writable);
	if (rc < 0 && rc != -ENOENT)
		sv_answer_errno(w->sh->listener, w->call.id, -rc);
}

void sv_let_go(struct sv_work *w)
{
	sv_tell(w, SV_EFFECT_CONTINUE, 0, nothing);
	sv_answer_continue(w->sh->listener, w->call.id);
}

void sv_give_result(struct sv_work *w, int rc)
{
	if (rc < 0)
		sv_fail_call(w, -rc);
	else
		sv_give_value(w, 0);
}

int sv_new_mode(struct sv_work *w, const struct sv_place *parent, mode_t mode, mode_t *out)
{
	char name[64];
	mode_t mask;
	int rc;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", parent->parent);
	*out = mode;
	if (getxattr(name, "system.posix_acl_default", NULL, 0) > 0)
		return 0;
	rc = sv_tracee_umask(&w->t, &mask);
	if (rc < 0)
		return rc;
	*out = mode & ~mask;
	return 0;
}
