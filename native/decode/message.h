/* message.h - what a program sends, copied once. */
#ifndef SV_DECODE_MESSAGE_H
#define SV_DECODE_MESSAGE_H

#include "decode/tracee.h"

#include <sys/socket.h>
#include <sys/uio.h>

enum {
	SV_SEND_MAX = 1 << 20,		/* bytes of a stream that are copied at once */
	SV_PACKET_MAX = 4 << 20,	/* of a local packet: more than a socket's buffer can be made */
	SV_CONTROL_MAX = 16384,
	SV_FDS_MAX = 253		/* SCM_MAX_FD */
};

/* How much of the caller's data one message may be. */
enum sv_sending { SV_SEND_STREAM, SV_SEND_DATAGRAM, SV_SEND_PACKET };

/* A message of ours; everything in it is owned. */
struct sv_message {
	uint8_t *data;
	size_t n;
	struct iovec *parts;	/* where the data lies; what of it was copied is taken off */
	size_t first;		/* of the parts that are left */
	size_t nparts;
	uint8_t *control;	/* with our own descriptors in SCM_RIGHTS */
	size_t control_n;
	int fds[SV_FDS_MAX];
	int nfds;
	bool credentials;	/* in the control data */
	const char *refused;	/* why this control data is not sent, or NULL */
};

/* The header that lies at addr (struct msghdr): where its parts are. 0 or what the kernel
 * says of it: -EFAULT, -EINVAL, -EMSGSIZE. */
int sv_read_msghdr(const struct sv_tracee *t, uint64_t addr, struct msghdr *out);
/* Copies data and control of a header that was read: too much of a datagram or packet is
 * -EMSGSIZE, of a stream it is left for later. 0 or -errno; to be released in any case. */
int sv_read_message(const struct sv_tracee *t, const struct msghdr *h, enum sv_sending kind,
		    struct sv_message *out);
/* The same for one buffer without control data. */
int sv_read_buffer(const struct sv_tracee *t, uint64_t addr, uint64_t n, enum sv_sending kind,
		   struct sv_message *out);
/* Copies what comes next of a stream's data in place of what was there; n is 0 at the end.
 * 0 or -errno. */
int sv_read_on(const struct sv_tracee *t, struct sv_message *m);
void sv_message_init(struct sv_message *m);
void sv_message_release(struct sv_message *m);

#endif
