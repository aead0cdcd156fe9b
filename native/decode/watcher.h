/* watcher.h - the caller's inotify instance, to add a watch in its place. */
#ifndef SV_DECODE_WATCHER_H
#define SV_DECODE_WATCHER_H

#include "decode/tracee.h"

/* Duplicates descriptor number of the caller, which must be an inotify
 * instance, into *out (owned). Also takes the kernel's checks of mask, in its
 * order. -EINVAL, -EBADF as the kernel; 0 with *out < 0, an errno, where the
 * machine does not let a descriptor be duplicated. Call it with the
 * supervisor's own identity. */
int sv_take_watcher(const struct sv_tracee *t, int number, uint32_t mask, int *out);

#endif
