/* err.h - the one way a function of the core reports failure.
 *
 * A failing function fills struct sv_err and returns a negative errno; on
 * success it leaves the struct alone. err may be NULL: the caller then only
 * wants the number. Never aborts, never prints. */
#ifndef SV_BASE_ERR_H
#define SV_BASE_ERR_H

#include "supervise.h"

/* Fill err with a positive errno, the step and a sentence; returns -code. */
int sv_fail(struct sv_err *err, int code, const char *where, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
