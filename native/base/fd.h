/* fd.h - descriptors that close themselves.
 *
 * `cleanup_fd int fd = open(...)` closes at the end of the scope; take_fd()
 * moves ownership out of it. Every descriptor of the core is close-on-exec. */
#ifndef SV_BASE_FD_H
#define SV_BASE_FD_H

#include <errno.h>
#include <unistd.h>

static inline void sv_close_fd(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		close(*fd);
		errno = saved;
		*fd = -1;
	}
}

static inline int take_fd(int *fd)
{
	int n = *fd;

	*fd = -1;
	return n;
}

#define cleanup_fd __attribute__((cleanup(sv_close_fd)))

#endif
