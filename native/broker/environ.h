/* environ.h - the environment of a program that a call is steered to. */
#ifndef SV_BROKER_ENVIRON_H
#define SV_BROKER_ENVIRON_H

#include "broker/argvec.h"
#include "broker/work.h"

/* Puts the caller's environment, read once, with the policy's keep, drop and set
 * applied, into out, to be freed in every case. -errno as for sv_argvec_read(). */
int sv_environ_build(const struct sv_work *w, struct sv_argvec *out);

#endif
