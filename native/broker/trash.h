/* trash.h - what a steered delete keeps.
 *
 * Item n of a session's folder is the object itself (a hard link of it, or a
 * copy with mode, owner, times and extended attributes where the folder lies on
 * another file system), and the symbolic link n.path tells where it was. A
 * folder is kept as an empty one, as only empty ones are ever removed. */
#ifndef SV_BROKER_TRASH_H
#define SV_BROKER_TRASH_H

#include "broker/work.h"

struct sv_kept {
	unsigned long long item;
	int64_t size;
};

/* Keeps what stands at the place's name, before it is removed. The caller holds
 * the names' lock for writing. -EXDEV: it cannot be linked there, only copied;
 * -EDQUOT: no room is left. */
int sv_trash_keep(struct sv_work *w, const struct sv_place *at, struct sv_kept *k);
/* It was not removed after all. */
void sv_trash_drop(struct sv_trash *t, const struct sv_kept *k);
/* unlink and rmdir, with what is removed kept. Answers the call. */
void sv_trash_unlink(struct sv_work *w);
/* rename over something that sv_trash_keep answered -EXDEV for: copied on a side
 * thread, then renamed if both names still mean what they meant. Answers the call. */
void sv_trash_copy_and_rename(struct sv_work *w);
/* Why a delete was not carried out, for the record; NULL = the kernel's reason. */
const char *sv_trash_reason(int err);

#endif
