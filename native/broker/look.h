/* look.h - what the calls that only look share, where the policy hides names.
 *
 * The object is pinned as the kernel would walk for the call, its true path is read
 * back, and a name that a rule hides is not there. All else is looked at through
 * the pin, and the result is written into the caller's memory. */
#ifndef SV_BROKER_LOOK_H
#define SV_BROKER_LOOK_H

#include "broker/work.h"

/* Pin what the call names into w->place[0]: a descriptor, the start itself, or a
 * name. False = failed, hidden or refused, and answered. text: of another program's
 * links in /proc this would tell where they lead, which only the program may know. */
bool sv_look_pin(struct sv_work *w, bool text);
/* Its own links in /proc a process may follow whatever its identity, and we in its place
 * only with ours: true = that was it, and the identity is left. */
bool sv_look_as_ourselves(struct sv_work *w);
/* Does a rule hide this true path? The answer is left in *m. */
bool sv_look_hidden(const struct sv_work *w, const char *path, int len, struct sv_match *m);
/* Write n bytes to in.buf. 0, -EFAULT, -ECANCELED (nobody waits any more), or what
 * keeps us from the caller's memory. */
int sv_look_put(struct sv_work *w, const void *buf, size_t n);
/* Answer with value, or as sv_look_put() came out. */
void sv_look_answer(struct sv_work *w, int put, int64_t value);
/* Both. */
void sv_look_give(struct sv_work *w, const void *buf, size_t n, int64_t value);
/* Answer with an errno (> 0) of the kernel's. */
void sv_look_fail(struct sv_work *w, int err);

#endif
