/* shadow.h - what a rule's tree holds of a path whose writes it takes. */
#ifndef SV_BROKER_SHADOW_H
#define SV_BROKER_SHADOW_H

#include "broker/work.h"

#include <errno.h>

enum { SV_NO_SHADOW = -EAGAIN };

/* The object that lies at the destination of a rule that steers this path to a tree:
 * an O_PATH descriptor (owned) with w->match the rule, -ENOENT where it could only lie
 * there and does not, the errno of a way that leads there and fails, or SV_NO_SHADOW: the path means what it says, w->match is reset.
 * A folder that is at both places is no shadow. */
int sv_shadow(struct sv_work *w, const struct sv_place *p);
static inline bool sv_shadow_fails(int fd)
{
	return fd < 0 && fd != -ENOENT && fd != SV_NO_SHADOW;
}
/* What sv_pin() made of name[0] in place[0] (rc), with what lies in the tree put in its
 * place; w->match is the steer, called (room for SV_PATH_MAX) the path it was asked for by,
 * else empty. how: as for sv_pin(). 0 or -errno. */
int sv_shadow_pin(struct sv_work *w, int how, int rc, char *called);
/* Is reading steered as well, so that what lies in the tree is all there is? */
bool sv_shadow_only(struct sv_work *w, const struct sv_place *p);
/* Does a rule deny ops on this name, wherever its object lies? Then w->match is that rule;
 * what no rule speaks of was decided when it was steered. */
bool sv_shadow_refused(struct sv_work *w, struct sv_str path, uint32_t ops);
/* How much of the object's true path names the folder that the rule's tree is, with its
 * slash; 0 = the object does not lie below it. */
int sv_shadow_below(const struct sv_work *w, int rule, const struct sv_place *object);
/* Does a rule keep what is deleted under this name? Then w->match is that rule. */
bool sv_shadow_kept(struct sv_work *w, struct sv_str path);
/* sv_shadow() for an open that only reads: was it steered, and answered? What was written
 * is read again, unless a rule denies reading. */
bool sv_shadow_open(struct sv_work *w, struct sv_place *p);
/* The same for an open with O_PATH: what lies in the tree is opened for reading, as the
 * kernel lets no such descriptor be handed over. */
bool sv_shadow_open_path(struct sv_work *w);
/* The same for the removal of a name whose folder was pinned, or not (rc): what lies in
 * the tree alone is removed there. */
bool sv_shadow_unlink(struct sv_work *w, int rc);

#endif
