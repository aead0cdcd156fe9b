/* test_cidr.c - the prefix tree against a plain list, with random addresses. */
#include "match/cidr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RULES = 600, ROUNDS = 40, QUESTIONS = 5000, ALL = RULES };

struct rule {
	uint8_t b[16];
	bool is4;
	unsigned len;
	uint16_t lo, hi;
	int32_t value;
	uint32_t rank;
};

static uint64_t seed = 88172645463325252U;
static int failures;

#define CHECK(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			failures++; \
		} \
	} while (0)

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Few distinct bytes, so that prefixes nest and addresses hit. */
static void random_address(uint8_t b[16], bool is4, unsigned spread)
{
	for (unsigned i = 0; i < 16; i++)
		b[i] = (uint8_t)(rnd() % 4 ? rnd() % spread : rnd());
	if (!is4 && rnd() % 6 == 0) {
		memset(b, 0, 10);
		b[10] = b[11] = 0xff;
	}
}

static void clip(uint8_t b[16], unsigned len)
{
	for (unsigned i = 0; i < 128; i++)
		if (i >= len)
			b[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
}

static void random_rule(struct rule *r, int value, unsigned spread, unsigned plain)
{
	r->is4 = rnd() % 2;
	random_address(r->b, r->is4, spread);
	r->len = (unsigned)(rnd() % (r->is4 ? 33 : 129));
	if (rnd() % 4 == 0)
		r->len = r->is4 ? 32 : 128;
	clip(r->b, r->len);
	r->lo = 0;
	r->hi = UINT16_MAX;
	if (rnd() % 100 >= plain) {
		r->lo = (uint16_t)(rnd() % 50);
		r->hi = (uint16_t)(r->lo + rnd() % 20);
		if (rnd() % 8 == 0)
			r->hi = UINT16_MAX;
	}
	r->rank = (uint32_t)(rnd() % 4);
	r->value = value;
}

/* The family, bits and length as the tree must see them. */
static unsigned fold(const uint8_t *b, bool is4, unsigned len, const uint8_t **at, bool *v4)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	*at = b;
	*v4 = is4;
	if (!is4 && !memcmp(b, mapped, 12)) {
		*at = b + 12;
		*v4 = true;
		return len - 96;
	}
	return len;
}

static bool holds(const struct rule *r, const uint8_t *b, bool is4, uint16_t port, unsigned *len)
{
	const uint8_t *x, *y;
	bool fx, fy;

	*len = fold(r->b, r->is4, r->len, &x, &fx);
	fold(b, is4, 128, &y, &fy);
	if (fx != fy || port < r->lo || port > r->hi)
		return false;
	for (unsigned i = 0; i < *len; i++)
		if ((x[i / 8] ^ y[i / 8]) & (0x80 >> i % 8))
			return false;
	return true;
}

/* What the plain list says. */
struct answer {
	int32_t best, longest;
	unsigned best_len, long_len;
	uint32_t best_rank, long_rank;
	size_t count;
};

static void consider(struct answer *a, const struct rule *r, unsigned len)
{
	a->count++;
	if (a->best < 0 || r->rank > a->best_rank ||
	    (r->rank == a->best_rank && len > a->best_len)) {
		a->best = r->value;
		a->best_rank = r->rank;
		a->best_len = len;
	}
	if (a->longest < 0 || len > a->long_len ||
	    (len == a->long_len && r->rank > a->long_rank)) {
		a->longest = r->value;
		a->long_len = len;
		a->long_rank = r->rank;
	}
}

static void check_all(const struct rule *rules, const int32_t *got, size_t n, const uint8_t *b,
		      bool is4, uint16_t port)
{
	for (size_t i = 0; i < n; i++) {
		unsigned len;

		CHECK(holds(&rules[got[i]], b, is4, port, &len));
		for (size_t j = 0; j < i; j++)
			CHECK(got[i] != got[j]);
	}
}

static void ask(const struct sv_cidr *c, const struct rule *rules, int n, unsigned spread)
{
	struct answer a = { .best = SV_CIDR_NONE, .longest = SV_CIDR_NONE };
	bool is4 = rnd() % 2;
	uint16_t port = (uint16_t)(rnd() % 8 ? rnd() % 75 : rnd());
	int32_t got[ALL];
	uint8_t b[16];
	struct sv_ip ip;
	size_t found;

	random_address(b, is4, spread);
	if (n && rnd() % 2) {	/* near a prefix */
		const struct rule *r = &rules[rnd() % (unsigned)n];

		is4 = r->is4;
		memcpy(b, r->b, 16);
		b[is4 ? 3 : 15] ^= (uint8_t)(rnd() % 3);
	}
	ip = is4 ? sv_ip4(b) : sv_ip6(b);
	for (int i = 0; i < n; i++) {
		unsigned len;

		if (holds(&rules[i], b, is4, port, &len))
			consider(&a, &rules[i], len);
	}
	CHECK(sv_cidr_best(c, ip, port) == a.best);
	CHECK(sv_cidr_longest(c, ip, port) == a.longest);
	found = sv_cidr_all(c, ip, port, got, ALL);
	CHECK(found == a.count);
	CHECK(!found || got[0] == a.longest);
	if (found <= ALL)
		check_all(rules, got, found, b, is4, port);
}

static void differential(int n, unsigned spread, unsigned plain)
{
	static struct rule rules[RULES];
	struct sv_cidr *c = sv_cidr_new();

	for (int i = 0; i < n;) {
		struct rule *r = &rules[i];
		int rc;

		random_rule(r, i, spread, plain);
		rc = sv_cidr_add(c, r->b, r->is4, r->len, r->lo, r->hi, r->value, r->rank);
		if (rc == 0)
			i++;
		else	/* only a mapped address cut short is no prefix */
			CHECK(rc == -EINVAL && !r->is4 && r->len < 96);
	}
	CHECK(sv_cidr_build(c) == 0);
	for (int i = 0; i < QUESTIONS && failures < 20; i++)
		ask(c, rules, n, spread);
	sv_cidr_free(c);
}

/* More ranges than the differential has: all ports of one prefix, one by one. */
static void every_port(void)
{
	struct sv_cidr *c = sv_cidr_new();
	const uint8_t net[4] = { 10 }, host[4] = { 10, 1, 2, 3 };

	for (int port = 0; port <= UINT16_MAX; port++)
		CHECK(sv_cidr_add(c, net, true, 8, (uint16_t)port, (uint16_t)port, port,
				  (uint32_t)port % 4) == 0);
	CHECK(sv_cidr_build(c) == 0);
	for (int port = 0; port <= UINT16_MAX; port++)
		CHECK(sv_cidr_best(c, sv_ip4(host), (uint16_t)port) == port);
	sv_cidr_free(c);
}

static void edges(void)
{
	struct sv_cidr *c = sv_cidr_new();
	const uint8_t zero[16] = { 0 }, one[16] = { [15] = 1 }, v4[4] = { 127, 0, 0, 1 };
	const uint8_t mapped[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };

	CHECK(sv_cidr_best(c, sv_ip4(v4), 1) == SV_CIDR_NONE);
	CHECK(sv_cidr_add(c, zero, true, 33, 0, 1, 0, 0) == -EINVAL);
	CHECK(sv_cidr_add(c, zero, false, 129, 0, 1, 0, 0) == -EINVAL);
	CHECK(sv_cidr_add(c, one, false, 127, 0, 1, 0, 0) == -EINVAL);
	CHECK(sv_cidr_add(c, v4, true, 31, 0, 1, 0, 0) == -EINVAL);
	CHECK(sv_cidr_add(c, v4, true, 32, 2, 1, 0, 0) == -EINVAL);
	CHECK(sv_cidr_add(c, v4, true, 32, 1, 1, -1, 0) == -EINVAL);
	CHECK(sv_cidr_add(c, zero, false, 0, 0, UINT16_MAX, 6, 3) == 0);
	CHECK(sv_cidr_add(c, zero, true, 0, 0, UINT16_MAX, 4, 0) == 0);
	CHECK(sv_cidr_add(c, mapped, false, 128, 443, 443, 5, 1) == 0);
	CHECK(sv_cidr_build(c) == 0);
	CHECK(sv_cidr_build(c) == -EBUSY);
	CHECK(sv_cidr_add(c, zero, true, 0, 0, 1, 1, 1) == -EBUSY);
	CHECK(sv_cidr_best(c, sv_ip6(one), 9) == 6);
	CHECK(sv_cidr_best(c, sv_ip6(mapped), 9) == 4);
	CHECK(sv_cidr_best(c, sv_ip6(mapped), 443) == 5);
	CHECK(sv_cidr_best(c, sv_ip4(v4), 443) == 5);
	sv_cidr_free(c);
	c = sv_cidr_new();
	CHECK(sv_cidr_build(c) == 0);
	CHECK(sv_cidr_best(c, sv_ip4(v4), 443) == SV_CIDR_NONE);
	sv_cidr_free(c);
}

int main(void)
{
	edges();
	every_port();
	differential(0, 4, 100);
	differential(1, 4, 100);
	for (unsigned i = 0; i < ROUNDS && failures < 20; i++)
		differential((int)(rnd() % RULES) + 1, 1 + i % 7, i % 3 * 50);
	return failures ? 1 : 0;
}
