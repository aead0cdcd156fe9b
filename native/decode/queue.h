/* queue.h - the path that stands for a POSIX message queue. */
#ifndef SV_DECODE_QUEUE_H
#define SV_DECODE_QUEUE_H

#include "decode/path.h"

/* A queue's descriptor has a true path in a mount that nobody sees, so that it
 * looks like a file of the root folder: made /dev/mqueue/NAME, which is what rules
 * call it. Anything else stays as it is. */
int sv_name_queue(int fd, struct sv_place *place);

#endif
