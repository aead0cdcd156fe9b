/* messenger.h - how the listener leaves a child whose own sendmsg is already parked.
 *
 * A policy may have sendmsg notified, and who would answer is who waits for the listener.
 * So the child starts, before its filter, a process that shares its memory and its
 * descriptors: that one is not filtered, sends, and is gone before the first exec.
 * Async-signal-safe. */
#ifndef SV_FILTER_MESSENGER_H
#define SV_FILTER_MESSENGER_H

#include "model.h"

struct sv_messenger {
	_Alignas(16) uint8_t stack[16384];
	pid_t pid, parent;
	int wake[2];
	int sock;
	int fd;			/* to send; < 0: nothing */
	uint8_t note;
	int rc;
};

/* 0 or -errno. The socket is the one that the listener is sent by. */
int sv_messenger_start(struct sv_messenger *m, int sock);
/* Has it send fd (or nothing, where that is negative), and waits for its end. */
int sv_messenger_send(struct sv_messenger *m, int fd, bool killable);

#endif
