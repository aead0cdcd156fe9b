/* copyup.h - a file's bytes copied to where writes to it are steered. */
#ifndef SV_BROKER_COPYUP_H
#define SV_BROKER_COPYUP_H

#include "broker/change.h"

/* All bytes of a file, on a side thread; 0, -errno, -EINTR when the call is over. */
int sv_copy_bytes(int from, int to);
/* Copies the pinned original to dir/last (atomically: the name appears whole
 * or not at all), opens the copy with the call's flags and hands it over, on a
 * side thread. Always closes dir; answers the call. */
void sv_copy_up(struct sv_work *w, const struct sv_place *orig, int dir, const char *last);
/* The same with the copy changed before it appears, and not opened. What the change's
 * attribute owns, the copy owns then. */
void sv_copy_up_changed(struct sv_work *w, const struct sv_place *orig, int dir, const char *last,
			struct sv_change *c);

#endif
