/* landlock.h - the floor: the target's own Landlock domain.
 *
 * The supervisor stays outside it, so the floor may grant less than the
 * policy: no write right at all, and read and execute only below the folders
 * from which programs start (the kernel asks for both at execve). Whatever
 * else is allowed is opened by the broker, and rights bind at open(2). */
#ifndef SV_FILTER_LANDLOCK_H
#define SV_FILTER_LANDLOCK_H

#include "model.h"

struct sv_floor_entry {
	char *path;		/* NUL-terminated */
	int rights;		/* 1 = execute and read */
};

/* The kernel's Landlock version, or -errno. */
int sv_landlock_abi(void);
/* Builds the ruleset; open = grant everything below "/" (observe mode), which
 * still keeps ptrace, signals and abstract sockets inside. A path that does
 * not exist is skipped: nothing can run from it. Returns a descriptor. */
int sv_landlock_build(const struct sv_floor_entry *floor, size_t n, bool open, struct sv_err *err);
/* After no_new_privs, in the child. Async-signal-safe. */
int sv_landlock_enter(int ruleset);

#endif
