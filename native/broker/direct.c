/* direct.c - the short way to an existing file: decided as written.
 *
 * An absolute name with no link, "." or ".." in it is the object's true path.
 * So the decision is made on the name, and one openat2 that follows no link
 * opens it: no pin, no reading back, no second open. What is not that simple
 * (links, FIFOs, devices, file systems that fold names, refusals, errors) is
 * left to the pinned way, which also finds the kernel's errno. */
#include "broker/direct.h"

#include "base/fd.h"
#include "broker/reopen.h"
#include "decode/lexical.h"
#include "decode/openhow.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

static bool is_simple(const struct sv_subject *in)
{
	const struct sv_pathname *name = &in->name[0];

	return !in->resolve && !(in->flags & O_EXCL) && name->len > 1 && name->text[0] == '/' &&
	       name->text[name->len - 1] != '/' && sv_plain_names(name->text + 1);
}

/* Files and folders can be opened for nothing; whoever opens a FIFO or a device
 * has already done something to it. This is a guess, made sure after the open. */
static bool looks_simple(struct sv_work *w, const char *path, struct stat *st)
{
	const bool changes = w->in.flags & (O_CREAT | O_ACCMODE | O_TRUNC);

	if (fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    sv_fs_known(&w->paths, st->st_dev) != SV_FS_EXACT)
		return false;
	return S_ISREG(st->st_mode) || (S_ISDIR(st->st_mode) && !changes);
}

static bool allowed(struct sv_work *w, struct sv_place *p)
{
	uint32_t ops = sv_open_ops(w->in.flags);

	if (w->sh->steers)	/* what it was steered to may be there as well */
		return false;
	if (S_ISDIR(p->st.st_mode) && ops & SV_OP_READ)
		ops = (ops & ~(uint32_t)SV_OP_READ) | SV_OP_LIST;
	return sv_decide_call(w, ops, p) && w->match.action == SV_ALLOW;
}

static int open_no_links(const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = (unsigned)(sv_settled_flags(flags) | O_NONBLOCK),
		.resolve = RESOLVE_NO_SYMLINKS,
	};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* What was opened is what the decision was about. */
static bool as_decided(const struct sv_place *p)
{
	struct stat now;

	return fstat(p->fd, &now) == 0 && now.st_dev == p->st.st_dev &&
	       (now.st_mode & S_IFMT) == (p->st.st_mode & S_IFMT);
}

static bool open_and_check(struct sv_work *w, struct sv_place *p)
{
	const uint64_t flags = w->in.flags;

	if (!looks_simple(w, w->in.name[0].text, &p->st))
		return false;
	memcpy(p->path, w->in.name[0].text, (size_t)w->in.name[0].len + 1);
	p->len = w->in.name[0].len;
	if (!allowed(w, p) || (flags & O_TRUNC && sv_still_valid(&w->t) < 0))
		return false;
	p->fd = open_no_links(p->path, flags);
	return p->fd >= 0 && as_decided(p) &&
	       (flags & O_NONBLOCK || sv_make_blocking(p->fd, flags) == 0);
}

bool sv_open_directly(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];

	if (!is_simple(&w->in))
		return false;
	if (open_and_check(w, p)) {
		sv_give_fd(w, take_fd(&p->fd), w->in.flags & O_CLOEXEC,
			   (w->in.flags & O_ACCMODE) != O_RDONLY);
		return true;
	}
	sv_place_close(p);
	sv_place_init(p);
	w->ops = 0;
	w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	return false;
}
