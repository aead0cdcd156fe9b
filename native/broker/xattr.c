/* xattr.c - extended attributes set and removed.
 *
 * Name and value were copied before (decode/xattr.c); the object is pinned,
 * decided as metadata, and changed through the pin. */
#include "broker/change.h"
#include "broker/object.h"

#include "decode/lexical.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

/* No name, or an empty one that may be: the descriptor itself. The kernel takes
 * AT_FDCWD for the working folder when it sets, and not when it removes. */
static int pin_nameless(struct sv_work *w)
{
	const int fd = w->in.name[0].dirfd;

	if (fd == AT_FDCWD && w->in.attr.set)
		return sv_place_adopt(&w->paths, &w->t, sv_tracee_cwd(&w->t), false, &w->place[0]);
	return sv_object_pin_fd(w, fd);
}

static bool starts_with(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

/* What steers overlays, labels, signatures and the like: its readers are outside
 * of the tree, and the kernel asks for a capability. security.capability is let
 * through for whoever may give it, as a set-user-id mode is. */
static bool is_reserved(const char *name)
{
	if (starts_with(name, "trusted."))
		return true;
	return starts_with(name, "security.") && strcmp(name, "security.capability") != 0;
}

void sv_do_xattr(struct sv_work *w)
{
	struct sv_change c = { .kind = SV_CHANGE_ATTR };
	const bool named = !sv_names_start(&w->in.name[0], w->in.flags);
	const bool reserved = is_reserved(w->in.attr.name);
	char called[SV_PATH_MAX] = "";
	int rc = named ? sv_change_pin(w, called) : pin_nameless(w);

	if (rc < 0)
		return sv_fail_call(w, -rc);
	c.attr = w->in.attr;
	sv_attr_init(&w->in.attr);
	if (!sv_change_judge(w, SV_OP_METADATA, called, named && !reserved, &c))
		;	/* answered */
	else if (reserved)
		sv_refuse_why(w, EPERM, "a trusted or security attribute means something to the "
					"system outside the tree");
	else
		sv_give_result(w, sv_change_apply(w->place[0].fd, &c));
	sv_attr_free(&c.attr);
}
