/* dupfd.h - duplicates of the caller's descriptors: the same open file, offset and all.
 *
 * Call these with the supervisor's own identity. */
#ifndef SV_DECODE_DUPFD_H
#define SV_DECODE_DUPFD_H

#include "decode/tracee.h"

/* A duplicate of descriptor number of the caller, also of one of O_PATH, or -errno:
 * -EBADF, or what keeps us from it. */
int sv_duplicate(const struct sv_tracee *t, int number);
/* The same of an open folder, into *out (owned). -EBADF, -ENOTDIR as getdents; 0
 * with *out < 0, an errno, where the machine does not let it. */
int sv_take_folder(const struct sv_tracee *t, int number, int *out);

/* The same of a socket. -EBADF, -ENOTSOCK as the kernel; 0 with *out < 0, an errno. */
int sv_take_socket(const struct sv_tracee *t, int number, int *out);

#endif
