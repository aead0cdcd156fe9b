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
	m->parts = NULL;
	m->n = m->control_n = m->first = m->nparts = 0;
	m->nfds = 0;
	m->refused = NULL;
	m->credentials = false;
}

void sv_message_release(struct sv_message *m)
{
	for (int i = 0; i < m->nfds; i++)
		close(m->fds[i]);
	free(m->data);
	free(m->parts);
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

int sv_read_on(const struct sv_tracee *t, struct sv_message *m)
{
	m->n = 0;
	while (m->first < m->nparts && m->n < SV_SEND_MAX) {
		struct iovec *part = &m->parts[m->first];
		const size_t left = SV_SEND_MAX - m->n;
		const size_t n = part->iov_len < left ? part->iov_len : left;
		int rc = sv_read_mem(t, (uintptr_t)part->iov_base, m->data + m->n, n);

		if (rc < 0)
			return rc;
		part->iov_base = (uint8_t *)part->iov_base + n;
		part->iov_len -= n;
		m->n += n;
		if (!part->iov_len)
			m->first++;
	}
	return 0;
}

/* All of a packet, or the beginning of a stream. */
static int read_parts(const struct sv_tracee *t, enum sv_sending kind, struct sv_message *m)
{
	const uint64_t most = kind == SV_SEND_DATAGRAM ? DATAGRAM_MAX : SV_PACKET_MAX;
	uint64_t total = 0;
	size_t done = 0;
	int rc = 0;

	for (size_t i = 0; i < m->nparts; i++) {
		total += m->parts[i].iov_len;
		if (m->parts[i].iov_len > SSIZE_MAX || total > SSIZE_MAX)
			return -EINVAL;
	}
	if (kind != SV_SEND_STREAM && total > most)
		return -EMSGSIZE;
	m->data = malloc(kind == SV_SEND_STREAM && total > SV_SEND_MAX ? SV_SEND_MAX : total + 1);
	if (!m->data)
		return -ENOMEM;
	if (kind == SV_SEND_STREAM)
		return sv_read_on(t, m);
	for (size_t i = 0; rc == 0 && i < m->nparts; i++) {
		rc = sv_read_mem(t, (uintptr_t)m->parts[i].iov_base, m->data + done,
				 m->parts[i].iov_len);
		done += m->parts[i].iov_len;
	}
	m->n = done;
	return rc;
}

int sv_read_buffer(const struct sv_tracee *t, uint64_t addr, uint64_t n, enum sv_sending kind,
		   struct sv_message *out)
{
	out->parts = calloc(1, sizeof(*out->parts));
	if (!out->parts)
		return -ENOMEM;
	out->parts[0] = (struct iovec){ (void *)(uintptr_t)addr, n };
	out->nparts = 1;
	return read_parts(t, kind, out);
}

static int read_data(const struct sv_tracee *t, const struct msghdr *h, enum sv_sending kind,
		     struct sv_message *out)
{
	const size_t count = h->msg_iovlen;
	int rc;

	out->parts = calloc(count + 1, sizeof(*out->parts));
	if (!out->parts)
		return -ENOMEM;
	rc = sv_read_mem(t, (uintptr_t)h->msg_iov, out->parts, count * sizeof(*out->parts));
	out->nparts = count;
	return rc < 0 ? rc : read_parts(t, kind, out);
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

/* Who sends is the supervisor: for the caller's own number the kernel wants ours. Of
 * ids it judges itself. */
static int take_credentials(const struct sv_tracee *t, struct cmsghdr *c, struct sv_message *m)
{
	struct ucred said;
	pid_t pid;
	int rc;

	m->credentials = true;
	if (c->cmsg_len != CMSG_LEN(sizeof(said)))
		return -EINVAL;
	rc = sv_tracee_tgid(t, &pid);
	if (rc < 0)
		return rc;
	memcpy(&said, CMSG_DATA(c), sizeof(said));
	if (said.pid == pid)
		said.pid = getpid();
	memcpy(CMSG_DATA(c), &said, sizeof(said));
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
			rc = take_credentials(t, c, m);
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

int sv_read_message(const struct sv_tracee *t, const struct msghdr *h, enum sv_sending kind,
		    struct sv_message *out)
{
	int rc = read_data(t, h, kind, out);

	return rc < 0 ? rc : read_control(t, h, out);
}
