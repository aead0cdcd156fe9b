/* label.h - in which blocks of the policy a process is, kept where the kernel hands it
 * on: the limit RLIMIT_MSGQUEUE. fork copies limits, exec keeps them, threads share
 * them, and nobody in the tree may set this one (broker/process.c). Nothing there
 * needs it: message queues are not made by the tree itself.
 *
 * The limit is SV_LABEL_BASE less a bit for each block, hard and soft alike, so it only
 * ever falls, which needs no privilege. The command starts with SV_LABEL_BASE
 * (filter/spawn.c). */
#ifndef SV_EFFECT_LABEL_H
#define SV_EFFECT_LABEL_H

#include "model.h"

/* The bits of a process or thread; SV_LABEL_ALL where the limit cannot be read or is
 * none of ours. proc_fd: a descriptor of /proc; -1: by its path. */
uint32_t sv_label_read(int proc_fd, pid_t pid);
/* Adds bits to a stopped process. 0 or -errno; it must not go on after a failure. */
int sv_label_add(pid_t pid, uint32_t bits);
#endif
