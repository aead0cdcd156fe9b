/* image.c - "#!" chains, read from pinned files. */
#include "broker/image.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX = 256, DEPTH_MAX = 5 };	/* BINPRM_BUF_SIZE; as exec_binprm() */

/* First bytes of a pinned regular file. */
static int read_start(const struct sv_work *w, int fd, char *buf)
{
	cleanup_fd int in = -1;
	char n[16];
	ssize_t k;

	snprintf(n, sizeof(n), "%d", fd);
	in = openat(w->paths.self_fd, n, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (in < 0)
		return -errno;
	memset(buf, 0, LINE_MAX + 1);
	k = pread(in, buf, LINE_MAX, 0);
	return k < 0 ? -errno : (int)k;
}

/* "#! interpreter [argument]" as load_script() cuts it. Returns 1 for a script,
 * 0 for none, -ENOEXEC for a line that the kernel refuses. */
static int parse_line(char *buf, char **interp, char **arg)
{
	char *end, *p;

	*arg = NULL;
	if (buf[0] != '#' || buf[1] != '!')
		return 0;
	end = strpbrk(buf, "\n");
	if (!end) {
		/* a cut line is only taken when the interpreter is whole */
		p = buf + 2 + strspn(buf + 2, " \t");
		if (strlen(buf) >= LINE_MAX && !strpbrk(p, " \t"))
			return -ENOEXEC;
		end = buf + strlen(buf);
	}
	while (end > buf + 2 && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = 0;
	p = buf + 2 + strspn(buf + 2, " \t");
	if (!*p)
		return -ENOEXEC;
	*interp = p;
	p += strcspn(p, " \t");
	if (*p) {
		*p++ = 0;
		p += strspn(p, " \t");
		if (*p)
			*arg = p;
	}
	return 1;
}

/* The new strings go in front of those of the scripts before. */
static int put_head(struct sv_argvec *head, const char *interp, const char *arg, const char *path)
{
	struct sv_argvec next = { 0 };
	int rc = sv_argvec_add(&next, interp, strlen(interp));
	size_t at, skip = head->len ? strlen(head->bytes) + 1 : 0;

	if (rc == 0 && arg)
		rc = sv_argvec_add(&next, arg, strlen(arg));
	if (rc == 0)
		rc = sv_argvec_add(&next, path, strlen(path));
	for (at = skip; rc == 0 && at < head->len; at += strlen(head->bytes + at) + 1)
		rc = sv_argvec_add(&next, head->bytes + at, strlen(head->bytes + at));
	sv_argvec_free(head);
	*head = next;
	return rc;
}

static int judge_program(struct sv_work *w, const struct sv_place *p, const char *called)
{
	struct sv_str path = { (const uint8_t *)p->path, (size_t)p->len };
	struct sv_str name = { (const uint8_t *)called, strlen(called) };

	sv_match_exec_in(w->sh->policy, sv_blocks_in(w), path, name, NULL, 0, false, &w->match);
	w->starts |= sv_blocks_start(w->sh->policy, path, name);
	return w->match.action == SV_ALLOW || w->sh->observe ? 0 : 1;
}

static int take_image(struct sv_place *p, struct sv_image *out)
{
	sv_close_fd(&out->fd);
	out->fd = take_fd(&p->fd);
	out->dev = p->st.st_dev;
	out->ino = p->st.st_ino;
	return S_ISREG(p->st.st_mode) ? 0 : -EACCES;
}

/* Its interpreter reads a script later, by its name, when its bytes may be others. */
static int pinned_script(struct sv_work *w, struct sv_image *out)
{
	w->match.action = SV_DENY;
	w->match.rule = out->pin - 1;
	w->match.err = EACCES;
	out->why = "a script is read again by its interpreter, so no digest can hold for it";
	out->against = out->pin;
	out->pin = 0;
	return w->sh->observe ? 0 : 1;
}

int sv_image_find(struct sv_work *w, struct sv_place *place, const char *path,
		  struct sv_image *out)
{
	struct sv_place *next = &w->place[1];
	struct sv_pathname name = { .dirfd = AT_FDCWD, .at = -1 };
	char buf[LINE_MAX + 1], *interp, *arg;
	int depth, rc = take_image(place, out);

	out->pin = w->match.pin;
	snprintf(name.text, sizeof(name.text), "%s", path);
	for (depth = 0; rc == 0 && depth <= DEPTH_MAX; depth++) {
		rc = read_start(w, out->fd, buf);
		if (rc < 0)
			return rc;
		rc = parse_line(buf, &interp, &arg);
		if (rc <= 0)
			return rc;
		out->script = true;
		rc = out->pin ? pinned_script(w, out) : 0;
		if (rc == 0)
			rc = put_head(&out->head, interp, arg, name.text);
		if (rc != 0)
			return rc;
		name.len = snprintf(name.text, sizeof(name.text), "%s", interp);
		sv_place_close(next);
		rc = sv_pin(&w->paths, &w->t, &name, 0, 0, next);
		if (rc == 0)
			rc = judge_program(w, next, interp);
		out->pin = w->match.pin;
		if (rc == 0)
			rc = take_image(next, out);
	}
	return rc ? rc : -ELOOP;
}

void sv_image_free(struct sv_image *image)
{
	sv_close_fd(&image->fd);
	sv_argvec_free(&image->head);
}
