/* respond.h - the answers that the kernel takes for a notification.
 *
 * Each returns 0, or -ENOENT when the target is gone: then whatever was done
 * for it stays done and only the record can say so. */
#ifndef SV_EFFECT_RESPOND_H
#define SV_EFFECT_RESPOND_H

#include "model.h"

int sv_answer_errno(int listener, uint64_t id, int err);
int sv_answer_value(int listener, uint64_t id, int64_t value);
/* Only where the floor bounds every value that the pointers could take, or an
 * exec stop verifies the outcome. */
int sv_answer_continue(int listener, uint64_t id);

/* Hand fd over as the lowest free descriptor of the target and answer with its
 * number. Always closes fd. Descriptors that can write go in two steps: with
 * one, our copy would still be open when the target runs on, and a file it
 * writes, closes and executes would be busy (ETXTBSY). Returns 0 or -errno; on
 * -EMFILE and the like the call is still unanswered. */
int sv_inject(int listener, uint64_t id, int fd, bool cloexec, bool writable);

/* Give the target a descriptor for the length of its call, which is not answered yet: its
 * number, or -errno. Always closes fd. */
int sv_lend(int listener, uint64_t id, int fd);

#endif
