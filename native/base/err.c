/* err.c - fills struct sv_err. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int sv_fail(struct sv_err *err, int code, const char *where, const char *fmt, ...)
{
	if (code <= 0)
		code = EINVAL;
	if (err) {
		va_list ap;

		err->code = code;
		snprintf(err->where, sizeof(err->where), "%s", where);
		va_start(ap, fmt);
		vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
		va_end(ap);
	}
	return -code;
}
