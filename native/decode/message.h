/* message.h - what a program sends, copied once. */
#ifndef SV_DECODE_MESSAGE_H
#define SV_DECODE_MESSAGE_H

#include "decode/tracee.h"

#include <sys/socket.h>

enum {
	SV_SEND_MAX = 1 << 20,		/* bytes of one call on a stream; more is sent in parts */
	SV_CONTROL_MAX = 16384,
	SV_FDS_MAX = 253		/* SCM_MAX_FD */
};

/* A message of ours; everything in it is owned. */
struct sv_message {
	uint8_t *data;
	size_t n;
	uint8_t *control;	/* with our own descriptors in SCM_RIGHTS */
	size_t control_n;
	int fds[SV_FDS_MAX];
	int nfds;
	const char *refused;	/* why this control data is not sent, or NULL */
};

/* The header that lies at addr (struct msghdr): where its parts are. 0 or what the kernel
 * says of it: -EFAULT, -EINVAL, -EMSGSIZE. */
int sv_read_msghdr(const struct sv_tracee *t, uint64_t addr, struct msghdr *out);
/* Copies data and control of a header that was read. most: bytes of data that are worth
 * sending; more of a datagram is -EMSGSIZE, of a stream it is cut. 0 or -errno; to be
 * released in any case. */
int sv_read_message(const struct sv_tracee *t, const struct msghdr *h, bool stream,
		    struct sv_message *out);
/* The same for one buffer without control data. */
int sv_read_buffer(const struct sv_tracee *t, uint64_t addr, uint64_t n, bool stream,
		   struct sv_message *out);
void sv_message_init(struct sv_message *m);
void sv_message_release(struct sv_message *m);

#endif
