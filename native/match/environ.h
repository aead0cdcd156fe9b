/* environ.h - which variables of a caller's environment a started program gets. The
 * same meaning as supervisor/policy/environ.py, which makes that of the command. */
#ifndef SV_MATCH_ENVIRON_H
#define SV_MATCH_ENVIRON_H

#include "policy/blob.h"

/* Whether "NAME=VALUE" of the caller is passed on as it is. What has no '=' is no
 * variable, and what `set` speaks of gets its value from there. */
bool sv_environ_passes(const struct sv_env *e, struct sv_str variable);

#endif
