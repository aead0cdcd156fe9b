/* realids.h - the identity that access(2) asks for: the real one. */
#ifndef SV_DECODE_REALIDS_H
#define SV_DECODE_REALIDS_H

#include "decode/tracee.h"

/* Makes of creds (see sv_tracee_creds) what access(2) goes by: real ids, and the
 * permitted capabilities for root, none for others. 0 or -errno. */
int sv_tracee_real_ids(const struct sv_tracee *t, struct sv_creds *creds);

#endif
