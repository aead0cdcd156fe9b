/* killtree.h - ends every descendant of this process. */
#ifndef SV_LIFE_KILLTREE_H
#define SV_LIFE_KILLTREE_H

#include <sys/types.h>

/* One pass: SIGKILL to all that descend from root at this moment (zombies
 * apart). Returns how many were met, or -errno without /proc. As root is a
 * subreaper nothing leaves its subtree, so passes until 0 end it all. */
int sv_kill_descendants(pid_t root, int sig);

#endif
