/* trash_item.h - one object into the trash folder, whole. */
#ifndef SV_BROKER_TRASH_ITEM_H
#define SV_BROKER_TRASH_ITEM_H

#include <stdint.h>
#include <sys/stat.h>

/* Another name for the object pinned by fd. -EXDEV where none can be made there. */
int sv_item_link(int fd, int trash, const char *name);
/* A copy of it with mode, owner, times and extended attributes. On a side thread. */
int sv_item_copy(int fd, const struct stat *st, int trash, const char *name);
/* An empty folder like the one that fd pins. */
int sv_item_folder(int fd, const struct stat *st, int trash, const char *name);

#endif
