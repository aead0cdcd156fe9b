/* cidr.c - filling the prefix tree, and asking it. */
#include "match/cidr_tree.h"

#include <errno.h>
#include <stdlib.h>

enum { SLOTS_MAX = 1 << 27 };	/* 1.5 GiB */

static uint64_t be(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

struct sv_ip sv_ip4(const uint8_t bytes[4])
{
	struct sv_ip ip = { .hi = be(bytes, 4) << 32, .v4 = true };

	return ip;
}

struct sv_ip sv_ip6(const uint8_t bytes[16])
{
	struct sv_ip ip = { .hi = be(bytes, 8), .lo = be(bytes + 8, 8) };

	return ip.hi == 0 && ip.lo >> 32 == 0xffff ? sv_ip4(bytes + 12) : ip;
}

int sv_cidr_room(void **array, size_t n, size_t more, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap : 64;
	void *p;

	if (more > SLOTS_MAX || n > SLOTS_MAX - more)
		return -E2BIG;
	if (n + more <= *cap)
		return 0;
	while (want < n + more)
		want *= 2;
	p = realloc(*array, want * size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = want;
	return 0;
}

struct sv_cidr *sv_cidr_new(void)
{
	struct sv_cidr *c = calloc(1, sizeof(*c));

	if (c)
		c->root[0] = c->root[1] = (struct slot){ .to = NONE, .best = SV_CIDR_NONE };
	return c;
}

void sv_cidr_free(struct sv_cidr *c)
{
	if (!c)
		return;
	free(c->entries);
	free(c->prefixes);
	free(c->parts);
	free(c->runs);
	free(c->slots);
	free(c);
}

/* Folds a mapped prefix and checks its length; false = not a prefix. */
static bool fold(struct sv_ip ip, bool is4, unsigned *len)
{
	struct key m;

	if (*len > (is4 ? 32U : 128U))
		return false;
	if (ip.v4 && !is4) {
		if (*len < 96)	/* bits are set behind the prefix */
			return false;
		*len -= 96;
	}
	m = mask_of(*len);
	return !(ip.hi & ~m.hi) && !(ip.lo & ~m.lo);
}

int sv_cidr_add(struct sv_cidr *c, const uint8_t *bytes, bool is4, unsigned len,
		uint16_t lo, uint16_t hi, int32_t value, uint32_t rank)
{
	struct sv_ip ip = is4 ? sv_ip4(bytes) : sv_ip6(bytes);
	int rc;

	if (c->built)
		return -EBUSY;
	if (!fold(ip, is4, &len) || lo > hi || value < 0)
		return -EINVAL;
	if (c->n >= SV_CIDR_MAX)
		return -E2BIG;
	rc = ROOM(c->entries, c->n, 1, c->cap);
	if (rc)
		return rc;
	c->entries[c->n++] = (struct entry){
		.key = { ip.hi, ip.lo }, .len = len, .lo = lo, .hi = hi,
		.value = value, .rank = rank, .v4 = ip.v4,
	};
	return 0;
}

/* ---- asking ---- */

/* The longest of p and the prefixes around it that covers k, or NONE. */
static uint32_t fitting(const struct sv_cidr *c, uint32_t p, struct key k)
{
	while (p != NONE && !covers(c->prefixes[p].key, c->prefixes[p].len, k))
		p = c->prefixes[p].parent;
	return p;
}

static uint32_t find(const struct sv_cidr *c, struct sv_ip ip)
{
	struct slot s = c->root[ip.v4];
	struct key k = { ip.hi, ip.lo };

	while (s.bits)
		s = c->slots[s.to + bits_at(k, s.at, s.bits)];
	return fitting(c, s.to, k);
}

/* The strictest entry of prefix p for the port, or NONE. */
static uint32_t at_port(const struct sv_cidr *c, uint32_t p, uint16_t port)
{
	const struct run *r = c->runs + c->parts[p].run;
	size_t n = c->parts[p + 1].run - c->parts[p].run;

	while (n > 1) {
		size_t half = n / 2;

		if (r[half].start <= port)
			r += half;
		n -= half;
	}
	return r->entry;
}

/* The strictest entry for the port in p and the prefixes around it. */
static int32_t strictest(const struct sv_cidr *c, uint32_t p, uint16_t port)
{
	const struct entry *best = NULL;

	for (; p != NONE; p = c->prefixes[p].parent) {
		uint32_t e;

		if (best && c->prefixes[p].top <= best->rank)
			break;
		e = at_port(c, p, port);
		if (e != NONE && (!best || c->entries[e].rank > best->rank))
			best = &c->entries[e];
	}
	return best ? best->value : SV_CIDR_NONE;
}

int32_t sv_cidr_best(const struct sv_cidr *c, struct sv_ip ip, uint16_t port)
{
	struct slot s = c->root[ip.v4];
	struct key k = { ip.hi, ip.lo };
	unsigned depth = 0, skipped = 0;
	uint32_t p;

	while (s.bits) {
		skipped |= s.at ^ depth;
		depth = (unsigned)s.at + s.bits;
		s = c->slots[s.to + bits_at(k, s.at, s.bits)];
	}
	p = s.to;
	if (!skipped && s.best != BY_PORT &&
	    (!s.single || !covers(c->prefixes[p].key, c->prefixes[p].len, k)))
		return s.best;
	p = fitting(c, p, k);
	if (p == NONE)
		return SV_CIDR_NONE;
	return c->prefixes[p].best != BY_PORT ? c->prefixes[p].best : strictest(c, p, port);
}

int32_t sv_cidr_longest(const struct sv_cidr *c, struct sv_ip ip, uint16_t port)
{
	uint32_t p = find(c, ip);

	for (; p != NONE; p = c->prefixes[p].parent) {
		uint32_t e = at_port(c, p, port);

		if (e != NONE)
			return c->entries[e].value;
	}
	return SV_CIDR_NONE;
}

size_t sv_cidr_all(const struct sv_cidr *c, struct sv_ip ip, uint16_t port,
		   int32_t *values, size_t max)
{
	uint32_t p = find(c, ip);
	size_t n = 0;

	for (; p != NONE; p = c->prefixes[p].parent) {
		for (uint32_t e = c->parts[p].entry; e < c->parts[p + 1].entry; e++) {
			if (port < c->entries[e].lo || port > c->entries[e].hi)
				continue;
			if (n < max)
				values[n] = c->entries[e].value;
			n++;
		}
	}
	return n;
}
