/* sockaddr.c - reads and names socket addresses. */
#include "decode/sockaddr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

int sv_read_sockaddr(const struct sv_tracee *t, uint64_t addr, uint32_t len,
		     struct sockaddr_storage *out)
{
	int rc;

	memset(out, 0, sizeof(*out));
	if (len > sizeof(*out))
		return -EINVAL;
	rc = len ? sv_read_mem(t, addr, out, len) : 0;
	return rc < 0 ? rc : (int)len;
}

static int show_unix(const struct sockaddr_un *u, int len, char *buf, size_t cap)
{
	int n = len - (int)offsetof(struct sockaddr_un, sun_path);
	const bool abstract = n > 0 && u->sun_path[0] == 0;

	if (n > (int)sizeof(u->sun_path))
		n = (int)sizeof(u->sun_path);
	if (n <= 0)
		return snprintf(buf, cap, "unix:");
	if (abstract)
		return snprintf(buf, cap, "unix:@%.*s", n - 1, u->sun_path + 1);
	return snprintf(buf, cap, "unix:%.*s", n, u->sun_path);
}

int sv_show_sockaddr(const struct sockaddr_storage *a, int len, char *buf, size_t cap)
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;
	char text[INET6_ADDRSTRLEN] = "";
	int n;

	if (len < (int)sizeof(a->ss_family))
		n = snprintf(buf, cap, "no address");
	else if (a->ss_family == AF_UNIX)
		n = show_unix((const void *)a, len, buf, cap);
	else if (a->ss_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text)))
		n = snprintf(buf, cap, "%s:%u", text, ntohs(v4->sin_port));
	else if (a->ss_family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text)))
		n = snprintf(buf, cap, "[%s]:%u", text, ntohs(v6->sin6_port));
	else
		n = snprintf(buf, cap, "family %u", (unsigned)a->ss_family);
	return n < (int)cap ? n : (int)cap - 1;
}
