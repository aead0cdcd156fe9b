/* rlimits.h - limits that the kernel itself holds each process to. */
#ifndef SV_FILTER_RLIMITS_H
#define SV_FILTER_RLIMITS_H

#include "model.h"

#include <sys/resource.h>

/* We hold descriptors for many calls at once; old gets what the command shall have. */
void sv_rlimits_raise(struct rlimit *old);
/* Before the command starts: files as above, and no more than these (UINT64_MAX = as it
 * is); all of them are passed on to whatever it starts. 0 or -errno. */
int sv_rlimits_set(pid_t pid, const struct rlimit *files, uint64_t open_files, uint64_t file_size,
		   uint64_t cpu);
/* In the child: gives up for good, as there are no new privileges, what raising takes. */
int sv_rlimits_keep(void);

#endif
