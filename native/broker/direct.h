/* direct.h - the short way to an existing file. */
#ifndef SV_BROKER_DIRECT_H
#define SV_BROKER_DIRECT_H

#include "broker/work.h"

/* Opens and hands over when everything is simple. False = nothing was done or
 * said: take the pinned way. w->in.flags were checked; they ask for no O_PATH
 * and no O_TMPFILE. */
bool sv_open_directly(struct sv_work *w);

#endif
