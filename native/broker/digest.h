/* digest.h - programs of which a rule says the bytes (`sha256`).
 *
 * Looked at twice, each time on a thread that nobody waits for: before the call
 * goes on, for an errno, and at the exec stop (effect/exec_hash.c), where the kernel
 * keeps writers away and what was read is what runs. No digest is remembered: on
 * tmpfs a mapped file changes without its times changing, so nothing that stat
 * tells says that bytes are still the same. */
#ifndef SV_BROKER_DIGEST_H
#define SV_BROKER_DIGEST_H

#include "broker/work.h"

/* Takes the plan and the answer over: refused when the bytes are others, else
 * handed to the tracer; check_only (AT_EXECVE_CHECK): else let go. */
void sv_digest_first(struct sv_work *w, struct sv_exec_plan *plan, bool check_only);

/* broker/exec.c: the end of a plan that was not submitted, with a record. err 0: the
 * check said yes, and the call goes on. */
void sv_exec_over(struct sv_shared *sh, struct sv_exec_plan *plan, int err, const char *why);

#endif
