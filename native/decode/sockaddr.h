/* sockaddr.h - a socket address of the target, copied once. */
#ifndef SV_DECODE_SOCKADDR_H
#define SV_DECODE_SOCKADDR_H

#include "decode/tracee.h"

#include <sys/socket.h>

/* Copies len bytes at addr. Returns the length, or -errno as the kernel's
 * move_addr_to_kernel(): -EINVAL past sizeof(struct sockaddr_storage), -EFAULT. */
int sv_read_sockaddr(const struct sv_tracee *t, uint64_t addr, uint32_t len,
		     struct sockaddr_storage *out);
/* For people and the audit: "unix:/run/x", "unix:@name", "1.2.3.4:80",
 * "[::1]:80", "family 16". Returns the length written, less than cap. */
int sv_show_sockaddr(const struct sockaddr_storage *a, int len, char *buf, size_t cap);

#endif
