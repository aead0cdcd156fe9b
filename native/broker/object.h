/* object.h - an existing object that a call changes or watches: pinned, judged, and
 * then reached through the pin alone. For the handlers of metadata and watches. */
#ifndef SV_BROKER_OBJECT_H
#define SV_BROKER_OBJECT_H

#include "broker/work.h"

/* Pin what descriptor fd of the caller is open on into w->place[0]. 0 or -errno,
 * -EBADF for one of O_PATH, which most calls do not take. */
int sv_object_pin_fd(struct sv_work *w, int fd);
/* Judge w->place[0] for ops; false = refused and answered, or nobody waits any
 * more. What only a descriptor leads to needs no rule; a steer is refused, as
 * there is nothing to hand over. */
bool sv_object_judge(struct sv_work *w, uint32_t ops);
/* A name of the pinned object that nobody can lead elsewhere. */
void sv_object_name(const struct sv_place *p, char *buf, size_t cap);

#endif
