/* bound.h - the sockets that programs of the tree bound: local ones to a path, others to an
 * address. */
#ifndef SV_BROKER_BOUND_H
#define SV_BROKER_BOUND_H

#include "broker/work.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* The name to bind last by, in the folder that is our descriptor dir; no other socket
 * of the session has it. -ENAMETOOLONG where it does not fit, -ENOSPC where there are
 * too many already. */
int sv_bound_name(struct sv_bound *b, int dir, const char *last, struct sockaddr_un *out);
/* Remember the socket file pin (owned, O_PATH), bound by that name, which its program
 * calls `as`. -ENOSPC when there are too many: it was not remembered, pin is closed. */
int sv_bound_add(struct sv_bound *b, int pin, const struct sockaddr_un *name,
		 const struct sockaddr_un *as, socklen_t as_len);
/* Was this file bound inside? Its inode is held, so no other file has its number. */
bool sv_bound_has(struct sv_bound *b, const struct stat *st);
bool sv_bound_any(struct sv_bound *b);
/* A descriptor of our own (O_PATH) of the socket that we bound by this name, which programs
 * are told where it sends; -ENOENT. */
int sv_bound_pin(struct sv_bound *b, const struct sockaddr_un *name);
/* Puts what the program calls the socket in place of the name that we bound it by.
 * False: the name is none of ours. */
bool sv_bound_as(struct sv_bound *b, const struct sockaddr_un *name, struct sockaddr_un *as,
		 socklen_t *as_len);
/* A socket of IP that was bound as decided. Its address stays bound for good, also where a
 * connect that fails or is dissolved gives its port back. */
void sv_bound_note(struct sv_bound *b, int sock);
bool sv_bound_noted(struct sv_bound *b, int sock);

#endif
