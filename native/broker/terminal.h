/* terminal.h - which terminals belong to the tree. */
#ifndef SV_BROKER_TERMINAL_H
#define SV_BROKER_TERMINAL_H

#include "broker/work.h"

/* A pseudo-terminal that is neither the caller's controlling one nor one whose
 * master some task of the tree holds: another program's, with what is typed
 * and shown there. */
bool sv_foreign_terminal(const struct sv_work *w, const struct sv_place *p);
/* Opens what /dev/tty means for the caller, -ENXIO when it has none. */
int sv_open_own_tty(const struct sv_work *w, int flags);

#endif
