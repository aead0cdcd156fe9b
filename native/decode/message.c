/* message.c - struct msghdr and all that it points to. */
#include "decode/message.h"

#include "base/fd.h"
#include "decode/dupfd.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* A datagram over IP cannot be longer; a local one is bounded by the socket's buffer. */
enum { DATAGRAM_MAX = 65535, IOV_MAX_KERNEL = 1024, UDP_SEGMENT_OPTION = 103 };

void sv_message_init(struct sv_message *m)
{
	m->data = m->control = NULL;
	m->n = m->control_n = 0;
	m->nfds = 0;
	m->refused = NULL;
}

void sv_message_release(struct sv_message *m)
{
	for (int i = 0; i < m->nfds; i++)
		close(m->fds[i]);
	free(m->data);
	free(m->control);
	sv_message_init(m);
}

int sv_read_msghdr(const struct sv_tracee *t, uint64_t addr, struct msghdr *out)
{
	int rc = sv_read_mem(t, addr, out, sizeof(*out));

	if (rc < 0)
		return rc;
	if (!out->msg_name)
		out->msg_namelen = 0;
	if ((int)out->msg_namelen < 0)
		return -EINVAL;
	if (out->msg_namelen > sizeof(struct sockaddr_storage))
		out->msg_namelen = sizeof(struct sockaddr_storage);
	return out->msg_iovlen > IOV_MAX_KERNEL ? -EMSGSIZE : 0;
}

/* Makes room for n bytes, or for as many as are sent at once. */
static int make_room(struct sv_message *m, uint64_t n, bool stream)
{
	if (n > SSIZE_MAX)
		return -EINVAL;
	if (!stream && n > DATAGRAM_MAX)
		return -EMSGSIZE;
	m->n = n > SV_SEND_MAX ? SV_SEND_MAX : (size_t)n;
	m->data = malloc(m->n ? m->n : 1);
	return m->data ? 0 : -ENOMEM;
}

int sv_read_buffer(const struct sv_tracee *t, uint64_t addr, uint64_t n, bool stream,
		   struct sv_message *out)
{
	int rc = make_room(out, n, stream);

	return rc < 0 ? rc : sv_read_mem(t, addr, out->data, out->n);
}

static int read_data(const struct sv_tracee *t, const struct msghdr *h, bool stream,
		     struct sv_message *out)
{
	const size_t count = h->msg_iovlen;
	struct iovec iov[IOV_MAX_KERNEL];
	uint64_t total = 0;
	size_t done = 0;
	int rc = sv_read_mem(t, (uintptr_t)h->msg_iov, iov, count * sizeof(*iov));

	for (size_t i = 0; rc == 0 && i < count; i++) {
		total += iov[i].iov_len;
		if (iov[i].iov_len > SSIZE_MAX || total > SSIZE_MAX)
			rc = -EINVAL;
	}
	if (rc == 0)
		rc = make_room(out, total, stream);
	for (size_t i = 0; rc == 0 && i < count && done < out->n; i++) {
		const size_t left = out->n - done;
		const size_t n = iov[i].iov_len < left ? iov[i].iov_len : left;

		rc = sv_read_mem(t, (uintptr_t)iov[i].iov_base, out->data + done, n);
		done += n;
	}
	return rc;
}

/* Kinds of control data that change nothing of where a message goes. */
static bool harmless(const struct cmsghdr *c)
{
	const int level = c->cmsg_level, type = c->cmsg_type;

	if (level == SOL_SOCKET)
		return type == SO_TIMESTAMPING || type == SCM_TXTIME || type == SO_PRIORITY;
	if (level == IPPROTO_IP)
		return type == IP_PKTINFO || type == IP_TTL || type == IP_TOS;
	if (level == IPPROTO_IPV6)
		return type == IPV6_PKTINFO || type == IPV6_HOPLIMIT || type == IPV6_TCLASS ||
		       type == IPV6_DONTFRAG;
	return (level == IPPROTO_UDP && type == UDP_SEGMENT_OPTION) || level == SOL_TLS;
}

/* The caller's descriptors become ours: the same open files. */
static int take_fds(const struct sv_tracee *t, struct cmsghdr *c, struct sv_message *m)
{
	const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int *numbers = (int *)(void *)CMSG_DATA(c);

	if (n > (size_t)(SV_FDS_MAX - m->nfds))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		int fd, number;

		memcpy(&number, numbers + i, sizeof(number));
		fd = sv_duplicate(t, number);
		if (fd < 0)
			return fd;
		m->fds[m->nfds++] = fd;
		memcpy(numbers + i, &fd, sizeof(fd));
	}
	return 0;
}

static int look_at_control(const struct sv_tracee *t, struct sv_message *m)
{
	struct msghdr h = { .msg_control = m->control, .msg_controllen = m->control_n };
	struct cmsghdr *c;
	int rc = 0;

	for (c = CMSG_FIRSTHDR(&h); rc == 0 && c; c = CMSG_NXTHDR(&h, c)) {
		const size_t left = m->control_n - (size_t)((uint8_t *)c - m->control);

		if (c->cmsg_len < CMSG_LEN(0) || c->cmsg_len > left)
			return -EINVAL;
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			rc = take_fds(t, c, m);
		else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
			m->refused = "credentials would be the supervisor's, who sends for the caller";
		else if (!harmless(c))
			m->refused = "control data that may change where the message goes";
	}
	return rc;
}

static int read_control(const struct sv_tracee *t, const struct msghdr *h, struct sv_message *out)
{
	int rc;

	if (!h->msg_control || !h->msg_controllen)
		return 0;
	if (h->msg_controllen > SV_CONTROL_MAX)
		return -ENOBUFS;
	out->control = calloc(1, h->msg_controllen);
	if (!out->control)
		return -ENOMEM;
	rc = sv_read_mem(t, (uintptr_t)h->msg_control, out->control, h->msg_controllen);
	if (rc < 0)
		return rc;
	out->control_n = h->msg_controllen;
	return look_at_control(t, out);
}

int sv_read_message(const struct sv_tracee *t, const struct msghdr *h, bool stream,
		    struct sv_message *out)
{
	int rc = read_data(t, h, stream, out);

	return rc < 0 ? rc : read_control(t, h, out);
}
