/* exec.c - execve and execveat: pin the program, judge it, hand it to the
 * tracer, which lets the kernel go on and verifies what came of it. */
#include "broker/digest.h"
#include "broker/environ.h"
#include "broker/exec_over.h"
#include "broker/image.h"

#include "base/fd.h"
#include "decode/lexical.h"
#include "syscalls/nr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { EXECVE_CHECK = 0x10000 };	/* AT_EXECVE_CHECK: no program starts */

static struct sv_str program_path(const struct sv_work *w)
{
	return (struct sv_str){ (const uint8_t *)w->place[0].path, (size_t)w->place[0].len };
}

static int pin_program(struct sv_work *w)
{
	const struct sv_pathname *name = &w->in.name[0];
	const int pin = w->in.flags & AT_SYMLINK_NOFOLLOW ? SV_PIN_NOFOLLOW : 0;
	int rc;

	if (name->err)
		return name->err;
	if (w->in.flags & ~(uint64_t)(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | EXECVE_CHECK))
		return -EINVAL;
	if (sv_names_start(name, w->in.flags))
		return sv_pin_fd(&w->paths, &w->t, name->dirfd, &w->place[0]);
	rc = sv_pin(&w->paths, &w->t, name, pin, 0, &w->place[0]);
	return rc == 0 && S_ISLNK(w->place[0].st.st_mode) ? -ELOOP : rc;
}

/* The name the program was called by: of a descriptor, its true path. */
static struct sv_str called_name(const struct sv_work *w)
{
	const struct sv_pathname *n = &w->in.name[0];

	if (n->len == 0)
		return program_path(w);
	return (struct sv_str){ (const uint8_t *)n->text, (size_t)n->len };
}

/* argv is read only where a rule looks at it or a steer carries it on. */
static int judge(struct sv_work *w, struct sv_argvec *argv, bool *known)
{
	const struct sv_policy *p = w->sh->policy;
	struct sv_str path = program_path(w), name = called_name(w);
	int rc = 0;

	w->ops |= SV_OP_EXEC;
	w->starts |= sv_blocks_start(p, path, name);
	*known = sv_match_needs_argv_in(p, sv_blocks_in(w), path, name);
	if (*known)
		rc = sv_argvec_read(&w->t, w->in.argv, argv);
	if (rc < 0)
		return rc;
	sv_match_exec_in(p, sv_blocks_in(w), path, name, argv->v, argv->argc, *known, &w->match);
	return 0;
}

static char *copy_bytes(const char *p, size_t n)
{
	char *c = malloc(n + 1);

	if (c) {
		memcpy(c, p, n);
		c[n] = 0;
	}
	return c;
}

static struct sv_exec_memo *make_memo(const struct sv_work *w)
{
	const struct sv_place *p = &w->place[0];
	struct sv_exec_memo *m = malloc(sizeof(*m) + (size_t)p->len);

	if (m) {
		m->ops = w->ops;
		m->err = w->match.err;
		m->counted = false;
		m->path_len = (size_t)p->len;
		memcpy(m->path, p->path, m->path_len);
	}
	return m;
}

void sv_plan_call(const struct sv_work *w, struct sv_exec_plan *plan)
{
	plan->id = w->call.id;
	plan->tid = w->call.tid;
	plan->nr = w->call.nr;
	memcpy(plan->args, w->call.args, sizeof(plan->args));
	plan->rule = w->match.rule;
	plan->action = w->match.action;
	plan->user = make_memo(w);
	plan->blocks = w->blocks;
	plan->starts = w->starts;
}

/* AT_EXECFN is the path as given, unless it starts from a descriptor. */
static bool plain_execfn(const struct sv_pathname *n)
{
	return n->len > 0 && (n->dirfd == AT_FDCWD || n->text[0] == '/');
}

static int fill_plan(const struct sv_work *w, struct sv_exec_plan *plan, struct sv_image *image,
		     struct sv_argvec *argv, bool known)
{
	const struct sv_pathname *n = &w->in.name[0];

	sv_plan_call(w, plan);
	plan->dev = image->dev;
	plan->ino = image->ino;
	plan->script = image->script;
	plan->pin_fd = take_fd(&image->fd);
	if (image->pin) {
		plan->pinned = true;
		if (w->match.action == SV_ALLOW)
			plan->rule = image->pin - 1;
		memcpy(plan->digest, w->sh->policy->rules[image->pin - 1].digest,
		       sizeof(plan->digest));
	}
	if (plain_execfn(n)) {
		plan->execfn = copy_bytes(n->text, (size_t)n->len);
		plan->execfn_len = (size_t)n->len;
	}
	plan->check_argv = known;
	if (known) {
		plan->argv = copy_bytes(argv->bytes ? argv->bytes : "", argv->len);
		plan->argv_len = argv->len;
		plan->head = copy_bytes(image->head.bytes ? image->head.bytes : "", image->head.len);
		plan->head_len = image->head.len;
	}
	return plan->user && (!plain_execfn(n) || plan->execfn) ? 0 : -ENOMEM;
}

/* The program that the rule names instead, with its arguments and, where the
 * rule says so, the caller's. */
static int steer_argv(const struct sv_work *w, const struct sv_rule *rule, struct sv_argvec *out)
{
	struct sv_argvec theirs = { 0 };
	int i, rc = 0;

	for (i = 0; rc == 0 && i < rule->dest_argc; i++)
		rc = sv_argvec_add(out, (const char *)rule->dest_argv[i].p, rule->dest_argv[i].n);
	if (rc == 0 && rule->append)
		rc = sv_argvec_read(&w->t, w->in.argv, &theirs);
	for (i = 1; rc == 0 && i < theirs.argc; i++)
		rc = sv_argvec_add(out, (const char *)theirs.v[i].p, theirs.v[i].n);
	sv_argvec_free(&theirs);
	return rc;
}

static int steer_env(const struct sv_work *w, struct sv_exec_plan *plan)
{
	struct sv_argvec env = { 0 };
	int rc = sv_environ_build(w, &env);

	if (rc == 0) {
		plan->set_env = true;
		plan->new_env = copy_bytes(env.bytes ? env.bytes : "", env.len);
		plan->new_env_len = env.len;
		rc = plan->new_env ? 0 : -ENOMEM;
	}
	sv_argvec_free(&env);
	return rc;
}

static int pin_steered(struct sv_work *w, const struct sv_rule *rule, struct sv_image *image)
{
	struct sv_pathname name = { .dirfd = AT_FDCWD, .at = -1 };
	struct sv_place *p = &w->place[1];
	struct sv_match saved = w->match;
	struct sv_str path;
	int rc;

	if (rule->dest_argc < 1 || rule->dest_argv[0].n >= sizeof(name.text))
		return -EACCES;
	memcpy(name.text, rule->dest_argv[0].p, rule->dest_argv[0].n);
	name.len = (int)rule->dest_argv[0].n;
	rc = sv_pin(&w->paths, &w->t, &name, 0, 0, p);
	if (rc < 0)
		return rc;
	path = (struct sv_str){ (const uint8_t *)p->path, (size_t)p->len };
	sv_match_path_in(w->sh->policy, sv_blocks_in(w), path, SV_OP_EXEC, &w->match);
	w->starts |= sv_blocks_start(w->sh->policy, path, rule->dest_argv[0]);
	rc = w->match.action == SV_ALLOW ? sv_image_find(w, p, name.text, image) : -EACCES;
	w->match = saved;
	return rc > 0 ? -EACCES : rc;
}

static void drop(struct sv_exec_plan *plan)
{
	if (plan)
		free(plan->user);
	sv_exec_plan_free(plan);
}

static void hand_over(struct sv_work *w, struct sv_exec_plan *plan, bool check_only)
{
	struct sv_exec_memo *m = plan->user;
	int rc = check_only ? 0 : sv_take(w, SV_LIMIT_EXECS);

	m->counted = !check_only;
	if (rc < 0) {
		drop(plan);
		sv_fail_call(w, -rc);
	} else if (plan->pinned)
		sv_digest_first(w, plan, check_only);
	else
		sv_tracer_submit(w->sh->tracer, plan);
}

static void steer(struct sv_work *w)
{
	const struct sv_rule *rule = &w->sh->policy->rules[w->match.rule];
	struct sv_image image = { .fd = -1 };
	struct sv_argvec argv = { 0 };
	struct sv_exec_plan *plan = sv_exec_plan_new();
	int rc = plan ? pin_steered(w, rule, &image) : -ENOMEM;
	const char *why;

	if (rc == 0)
		rc = steer_argv(w, rule, &argv);
	if (rc == 0)
		rc = fill_plan(w, plan, &image, &argv, true);
	if (rc == 0 && w->sh->policy->env.rules)
		rc = steer_env(w, plan);
	if (rc == 0) {
		plan->kind = SV_PLAN_STEER;
		plan->new_path = copy_bytes((const char *)rule->dest_argv[0].p,
					    rule->dest_argv[0].n);
		plan->new_path_len = rule->dest_argv[0].n;
		plan->new_argv = copy_bytes(argv.bytes, argv.len);
		plan->new_argv_len = argv.len;
		rc = plan->new_path && plan->new_argv ? 0 : -ENOMEM;
	}
	why = image.why ? image.why : "the program it is steered to cannot run";
	sv_argvec_free(&argv);
	sv_image_free(&image);
	if (rc < 0) {
		drop(plan);
		return sv_refuse_why(w, rc == -EACCES ? EACCES : -rc, why);
	}
	atomic_fetch_add_explicit(&w->sh->steered, 1, memory_order_relaxed);
	hand_over(w, plan, false);
}

/* Need nobody look at what starts? */
static bool may_go_unseen(const struct sv_work *w, const struct sv_exec_plan *plan)
{
	return !plan->check_argv && !plan->pinned &&
	       (w->sh->observe || w->sh->policy->flags & SV_POLICY_DEBUG);
}

static void verify(struct sv_work *w, struct sv_argvec *argv, bool known)
{
	struct sv_image image = { .fd = -1 };
	struct sv_match judged = w->match;
	struct sv_exec_plan *plan;
	int rc = sv_image_find(w, &w->place[0], w->in.name[0].text, &image);

	if (rc > 0) {
		sv_image_free(&image);
		return image.why ? sv_refuse_rule(w, image.why) : sv_refuse(w);
	}
	w->match = judged;
	if (image.against) {	/* observing */
		w->match.action = SV_DENY;
		w->match.rule = image.against - 1;
	}
	plan = rc == 0 ? sv_exec_plan_new() : NULL;
	if (rc == 0)
		rc = plan ? fill_plan(w, plan, &image, argv, known) : -ENOMEM;
	sv_image_free(&image);
	if (rc == 0)
		plan->unwatched = may_go_unseen(w, plan);
	if (rc == 0 && (plan->pinned || !(w->in.flags & EXECVE_CHECK)))
		return hand_over(w, plan, w->in.flags & EXECVE_CHECK);
	drop(plan);
	if (rc < 0)
		sv_fail_call(w, -rc);
	else
		sv_let_go(w);
}

void sv_do_exec(struct sv_work *w)
{
	struct sv_argvec argv = { 0 };
	bool known = false;
	int rc = pin_program(w);

	if (rc == 0)
		rc = judge(w, &argv, &known);
	if (rc < 0)
		sv_fail_call(w, -rc);
	else if (w->match.action == SV_ALLOW || w->sh->observe)
		verify(w, &argv, known && !w->sh->observe);
	else if (w->match.action == SV_STEER)
		steer(w);
	else
		sv_refuse_telling(w, (struct sv_str){ (const uint8_t *)argv.bytes, argv.len });
	sv_argvec_free(&argv);
}
