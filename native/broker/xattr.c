/* xattr.c - extended attributes set and removed.
 *
 * Name and value were copied before (decode/xattr.c); the object is pinned,
 * decided as metadata, and changed through the pin. */
#include "broker/object.h"

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

static int pin(struct sv_work *w)
{
	const struct sv_pathname *name = &w->in.name[0];
	const int how = w->in.flags & AT_SYMLINK_NOFOLLOW ? SV_PIN_NOFOLLOW : 0;

	if (name->len == 0 && w->in.flags & AT_EMPTY_PATH)
		return pin_nameless(w);
	return sv_pin(&w->paths, &w->t, name, how, 0, &w->place[0]);
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
	const struct sv_attr *a = &w->in.attr;
	char self[32];
	int rc = pin(w);

	if (rc < 0)
		return sv_fail_call(w, -rc);
	if (!sv_object_judge(w, SV_OP_METADATA))
		return;
	if (is_reserved(a->name))
		return sv_refuse_why(w, EPERM, "a trusted or security attribute means something to the "
					       "system outside the tree");
	sv_object_name(&w->place[0], self, sizeof(self));
	if (a->set)
		rc = setxattr(self, a->name, a->value, a->size, a->flags);
	else
		rc = removexattr(self, a->name);
	sv_give_result(w, rc < 0 ? -errno : 0);
}
