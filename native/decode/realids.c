/* realids.c - real ids and permitted capabilities, from /proc/TID/status. */
#include "decode/realids.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number(const char *text, const char *key, int base, unsigned long long *out)
{
	const char *p = strstr(text, key);
	char *end;

	if (!p)
		return -EPROTO;
	p += strlen(key);
	*out = strtoull(p, &end, base);
	return end == p ? -EPROTO : 0;
}

int sv_tracee_real_ids(const struct sv_tracee *t, struct sv_creds *creds)
{
	unsigned long long uid, gid, caps;
	char name[32], text[8192];
	cleanup_fd int fd = -1;
	ssize_t k;

	snprintf(name, sizeof(name), "%d/status", (int)t->call->tid);
	fd = openat(t->proc_fd, name, O_RDONLY | O_CLOEXEC);
	k = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (k <= 0)
		return -ESRCH;
	text[k] = 0;
	if (number(text, "\nUid:", 10, &uid) || number(text, "\nGid:", 10, &gid) ||
	    number(text, "\nCapPrm:", 16, &caps))
		return -EPROTO;
	creds->fsuid = (uid_t)uid;
	creds->fsgid = (gid_t)gid;
	creds->caps = uid ? 0 : caps;
	return 0;
}
