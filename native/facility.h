/* facility.h - what the machine offers, by trying it. */
#ifndef SV_FACILITY_H
#define SV_FACILITY_H

#include "model.h"

/* Indexes of sv_facility(); bits of sv_start.degraded. */
enum sv_facility_id {
	SV_FACILITY_LISTENER,
	SV_FACILITY_WAIT_KILLABLE,
	SV_FACILITY_LANDLOCK,
	SV_FACILITY_LANDLOCK_SCOPE,
	SV_FACILITY_READ_MEMORY,
	SV_FACILITY_INJECT,
	SV_FACILITY_EXEC_STOP,
	SV_FACILITY_PROC,
	SV_FACILITY_OPENAT2,
	SV_FACILITY_SYNC_WAKE_UP,
	SV_FACILITY_PIDFD_GETFD,
	SV_FACILITY_USER_NAMESPACES,
	SV_FACILITY_IDENTITIES,
	SV_FACILITIES
};

/* For a policy that cannot do without: may the descriptors of this child, which waits, be
 * duplicated? 0, or -errno with err filled. */
int sv_need_duplicates(pid_t pid, struct sv_err *err);

#endif
