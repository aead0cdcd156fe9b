/* queue.c - queues known by their file system. */
#include "decode/queue.h"

#include <errno.h>
#include <string.h>
#include <sys/vfs.h>

enum { MQUEUE_MAGIC = 0x19800202 };

int sv_name_queue(int fd, struct sv_place *place)
{
	static const char folder[] = "/dev/mqueue";
	const size_t n = sizeof(folder) - 1;
	struct statfs fs;

	if (!S_ISREG(place->st.st_mode) || strchr(place->path + 1, '/'))
		return 0;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	if (fs.f_type != MQUEUE_MAGIC)
		return 0;
	if ((size_t)place->len + n >= sizeof(place->path))
		return -ENAMETOOLONG;
	memmove(place->path + n, place->path, (size_t)place->len + 1);
	memcpy(place->path, folder, n);
	place->len += (int)n;
	return 0;
}
