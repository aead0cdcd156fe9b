/* install.h - the seccomp filter and its listener, and how the listener gets
 * from the child to the supervisor. Async-signal-safe throughout: the child
 * runs this between fork and exec. */
#ifndef SV_FILTER_INSTALL_H
#define SV_FILTER_INSTALL_H

#include "model.h"

/* Installs the program on the calling task and returns its listener (close-on-
 * exec). *killable says whether the kernel took WAIT_KILLABLE_RECV. -EBUSY:
 * another listener already supervises this task. */
int sv_filter_install(const uint8_t *program, size_t bytes, bool *killable);
int sv_send_fd(int sock, int fd, uint8_t note);
/* Returns the descriptor, or -errno; *note is the byte sent along. */
int sv_recv_fd(int sock, uint8_t *note);
/* Answers come from the CPU that the target waits on, where the kernel can. */
void sv_listener_tune(int listener);

#endif
