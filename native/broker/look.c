/* look.c - pinning, hiding and answering for calls that only look. */
#include "broker/look.h"

#include "base/fd.h"
#include "broker/shadow.h"
#include "decode/dupfd.h"
#include "decode/lexical.h"
#include "effect/creds.h"
#include "effect/respond.h"
#include "effect/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

bool sv_look_hidden(const struct sv_work *w, const char *path, int len, struct sv_match *m)
{
	if (path[0] != '/')
		return false;
	sv_match_path(w->sh->policy, (struct sv_str){ (const uint8_t *)path, (size_t)len }, SV_OP_READ, m);
	return sv_match_hides(w->sh->policy, m);
}

/* Two names below /proc are there for everybody: /proc/PID/stat. */
static bool known_to_all(const char *path)
{
	int slashes = 0;

	for (; *path; path++)
		slashes += *path == '/';
	return slashes <= 3;
}

/* What may not be opened may be looked at: nameless objects that a descriptor leads
 * to, and other programs' folders in /proc as far as they are no secret. */
static int as_looked_at(const struct sv_work *w, bool text, int rc)
{
	const struct sv_place *p = &w->place[0];

	if (rc != -EACCES || p->fd < 0)
		return rc;
	if (p->path[0] != '/')
		return 0;
	if (text && S_ISLNK(p->st.st_mode))
		return rc;
	return p->st.st_dev == w->paths.proc_dev && known_to_all(p->path) ? 0 : rc;
}

/* A descriptor that can do more than name its object was decided when it was opened,
 * or handed over. */
static bool is_open(struct sv_work *w, int number)
{
	cleanup_fd int fd = -1;
	struct stat st;

	if (number < 0 || w->switched)
		return false;
	fd = sv_duplicate(&w->t, number);
	if (fd < 0 || fcntl(fd, F_GETFL) & O_PATH)
		return false;
	return fstat(fd, &st) == 0 && st.st_dev == w->place[0].st.st_dev &&
	       st.st_ino == w->place[0].st.st_ino;
}

/* Is this the name of something in the process's own folder of /proc, or of what one of
 * its descriptors is open on, and no way on from there? */
static bool is_own(const char *name, pid_t tgid)
{
	char numbered[32];
	const char *const starts[] = { numbered, "/proc/self/", "/proc/thread-self/", "/dev/" };
	const char *rest = NULL, *slash;
	size_t i;

	snprintf(numbered, sizeof(numbered), "/proc/%d/", (int)tgid);
	for (i = 0; i < sizeof(starts) / sizeof(starts[0]) && !rest; i++)
		if (!strncmp(name, starts[i], strlen(starts[i])))
			rest = name + strlen(starts[i]);
	if (!rest || !sv_leads_to_proc(name) || !sv_plain_names(rest))
		return false;
	slash = strchr(rest, '/');
	return !slash || (!strchr(slash + 1, '/') && strncmp(rest, "cwd/", 4) && strncmp(rest, "root/", 5));
}

bool sv_look_as_ourselves(struct sv_work *w)
{
	pid_t tgid;

	if (!w->switched || w->row->how == SV_HOW_access || sv_tracee_tgid(&w->t, &tgid) < 0 ||
	    !is_own(w->in.name[0].text, tgid))
		return false;
	sv_creds_leave();
	w->switched = false;
	return true;
}

static int pin_name(struct sv_work *w, int how)
{
	struct sv_place *p = &w->place[0];
	int rc = sv_pin(&w->paths, &w->t, &w->in.name[0], how, 0, p);
	char called[SV_PATH_MAX];

	rc = sv_shadow_pin(w, how, rc, called);
	w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	if (rc != -EACCES || p->fd >= 0 || !sv_look_as_ourselves(w))
		return rc;
	sv_place_init(p);
	return sv_pin(&w->paths, &w->t, &w->in.name[0], how, 0, p);
}

bool sv_look_pin(struct sv_work *w, bool text)
{
	const struct sv_pathname *name = &w->in.name[0];
	const int how = w->in.flags & AT_SYMLINK_NOFOLLOW ? SV_PIN_NOFOLLOW : 0;
	struct sv_place *p = &w->place[0];
	int rc, number = -1;

	if (w->row->roles[0] == SV_ROLE_FD) {
		number = w->in.fd;
		rc = number < 0 ? -EBADF : sv_pin_fd(&w->paths, &w->t, number, p);
	} else if (sv_names_start(name, w->in.flags)) {
		number = name->dirfd;
		rc = sv_pin_fd(&w->paths, &w->t, number, p);
	} else {
		rc = pin_name(w, how);
	}
	rc = as_looked_at(w, text, rc);
	if (rc < 0) {
		sv_look_fail(w, -rc);
		return false;
	}
	if (p->held || !sv_look_hidden(w, p->path, p->len, &w->match) || is_open(w, number)) {
		w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
		return true;
	}
	w->ops |= S_ISDIR(p->st.st_mode) ? SV_OP_LIST : SV_OP_READ;
	sv_refuse(w);
	return false;
}

/* Who watches a file hears of its end only when our pin is gone, too. */
static void let_go(struct sv_work *w)
{
	sv_place_close(&w->place[0]);
	sv_tracee_forget(&w->t);
}

void sv_look_fail(struct sv_work *w, int err)
{
	let_go(w);
	sv_fail_call(w, err);
}

/* The call is known to be pending right before the write, so the memory is the
 * caller's; after that only its death could end the call, and its memory with it. */
int sv_look_put(struct sv_work *w, const void *buf, size_t n)
{
	int rc;

	if (!n)
		return 0;
	if (w->switched) {	/* a task that changed its ids hides its memory from others */
		sv_creds_leave();
		w->switched = false;
	}
	if (sv_still_valid(&w->t) < 0)
		return -ECANCELED;
	rc = sv_poke(w->call.tid, w->in.buf, buf, n);
	if (rc < 0 && sv_still_valid(&w->t) < 0)
		return -ECANCELED;
	return rc == -EIO ? -EFAULT : rc;
}

void sv_look_answer(struct sv_work *w, int put, int64_t value)
{
	let_go(w);
	if (put == -EFAULT)
		sv_answer_errno(w->sh->listener, w->call.id, EFAULT);
	else if (put < 0 && put != -ECANCELED)
		sv_refuse_why(w, EACCES, "the caller's memory cannot be written");
	else if (put == 0)
		sv_answer_value(w->sh->listener, w->call.id, value);
}

void sv_look_give(struct sv_work *w, const void *buf, size_t n, int64_t value)
{
	sv_look_answer(w, sv_look_put(w, buf, n), value);
}
