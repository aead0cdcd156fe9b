/* debug.h - may this open change the memory of a process? */
#ifndef SV_BROKER_DEBUG_H
#define SV_BROKER_DEBUG_H

#include "broker/work.h"

/* True for /proc/PID/mem opened for writing by anybody but the process itself and
 * its debugger, and where no debugger may work. The supervisor opens it, so the
 * kernel would ask for the supervisor's rights. */
bool sv_foreign_memory(struct sv_work *w, const struct sv_place *p);

#endif
