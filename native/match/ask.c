/* ask.c - one question to a policy without a session, for Python. */
#include "base/err.h"
#include "match/blocks.h"
#include "match/judge.h"
#include "match/net.h"
#include "match/signal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void answer_in(struct sv_question *q, uint32_t blocks, struct sv_match *out)
{
	const struct sv_policy *p = q->p;
	struct sv_match m;

	sv_answer(q, out);
	for (uint32_t i = 0; i < p->nblocks; i++)
		if (blocks >> i & 1) {
			q->p = &p->blocks[i];
			sv_answer(q, &m);
			sv_match_stricter(out, &m);
		}
	q->p = p;
}

/* argv as one string with NULs between; the caller frees. */
static struct sv_str *split_argv(const uint8_t *argv, size_t len, int *argc)
{
	struct sv_str *out;
	size_t count = 1;

	for (size_t i = 0; i < len; i++)
		count += !argv[i];
	out = calloc(count, sizeof(*out));
	if (!out)
		return NULL;
	*argc = (int)count;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *nul = len ? memchr(argv, 0, len) : NULL;

		out[i].p = argv;
		out[i].n = nul ? (size_t)(nul - argv) : len;
		len -= nul ? out[i].n + 1 : len;
		argv += nul ? out[i].n + 1 : 0;
	}
	return out;
}

static void to_verdict(const struct sv_match *m, struct sv_verdict *out)
{
	memset(out, 0, sizeof(*out));
	out->action = (int32_t)m->action;
	out->rule = m->rule;
	out->err = m->err;
	out->matched = m->matched;
	for (int i = 0; i < m->matched && i < 16; i++)
		out->rules[i] = m->rules[i];
}

int sv_decide(const uint8_t *blob, size_t len, const char *tmp, uint32_t op,
	      const uint8_t *path, size_t path_len, const uint8_t *name, size_t name_len,
	      const uint8_t *argv, size_t argv_len, uint32_t blocks, struct sv_verdict *out,
	      struct sv_err *err)
{
	struct sv_question q = { .path = { path, path_len }, .name = { name, name_len }, .ops = op };
	struct sv_str *words = NULL;
	struct sv_match m;
	struct sv_policy *p;
	int argc = 0;

	if (!op || op & ~(uint32_t)SV_OPS_ALL || argv_len > INT32_MAX)
		return sv_fail(err, EINVAL, "decide", "no such operation or too many arguments");
	if (argv) {
		words = split_argv(argv, argv_len, &argc);
		if (!words)
			return sv_fail(err, ENOMEM, "decide", "out of memory");
	}
	p = sv_policy_load(blob, len, tmp, err);
	if (!p) {
		free(words);
		return err && err->code ? -err->code : -EINVAL;
	}
	q.p = p;
	q.known = argv != NULL;
	q.args = argc > 1 ? words + 1 : NULL;
	q.nargs = argc > 1 ? argc - 1 : 0;
	answer_in(&q, blocks, &m);
	to_verdict(&m, out);
	sv_policy_free(p);
	free(words);
	return 0;
}

/* False when the subject is no such thing. */
static bool to_peer(int kind, const uint8_t *subject, size_t n, int port, struct sv_peer *out)
{
	*out = (struct sv_peer){ .kind = (enum sv_net_kind)kind, .name = { subject, n },
				 .port = (uint16_t)port };
	if (port < 0 || port > UINT16_MAX || (kind != SV_NET_ADDRESS && port))
		return false;
	if (kind != SV_NET_ADDRESS)
		return kind == SV_NET_PATH || kind == SV_NET_ABSTRACT;
	if (n != 4 && n != 16)
		return false;
	out->ip = n == 4 ? sv_ip4(subject) : sv_ip6(subject);
	return true;
}

int sv_decide_net(const uint8_t *blob, size_t len, const char *tmp, uint32_t op, int kind,
		  const uint8_t *subject, size_t n, int port, uint32_t blocks,
		  struct sv_verdict *out, struct sv_err *err)
{
	struct sv_peer peer;
	struct sv_match m;
	struct sv_policy *p;

	if (!to_peer(kind, subject, n, port, &peer))
		return sv_fail(err, EINVAL, "decide", "no address or port");
	p = sv_policy_load(blob, len, tmp, err);
	if (!p)
		return err && err->code ? -err->code : -EINVAL;
	sv_match_peer_told(p, blocks, op, &peer, &m);
	to_verdict(&m, out);
	sv_policy_free(p);
	return 0;
}

int sv_decide_signal(const uint8_t *blob, size_t len, const char *tmp, int sig, uint32_t who,
		     struct sv_verdict *out, struct sv_err *err)
{
	struct sv_match m;
	struct sv_policy *p;

	if (sig < 1 || sig > SV_SIGNALS || !who || who & ~(uint32_t)SV_WHO_TREE)
		return sv_fail(err, EINVAL, "decide", "no such signal or target");
	p = sv_policy_load(blob, len, tmp, err);
	if (!p)
		return err && err->code ? -err->code : -EINVAL;
	sv_match_signal(p, sig, who, &m);
	to_verdict(&m, out);
	sv_policy_free(p);
	return 0;
}

int sv_starts(const uint8_t *blob, size_t len, const char *tmp, const uint8_t *path, size_t path_len,
	      const uint8_t *name, size_t name_len, struct sv_err *err)
{
	struct sv_policy *p = sv_policy_load(blob, len, tmp, err);
	struct sv_str file = { path, path_len }, called = { name, name_len };
	uint32_t found;

	if (!p)
		return err && err->code ? -err->code : -EINVAL;
	found = sv_blocks_start(p, file, called) & ((1u << p->nblocks) - 1);
	sv_policy_free(p);
	return (int)found;
}
