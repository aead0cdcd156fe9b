/* cidr_bench.c - speed of the prefix tree with random prefixes and addresses.
 *
 * One line for each family:
 *   cidr PREFIXES LOOKUPS_PER_SECOND
 * Usage: cidr_bench [PREFIXES [ADDRESSES]]. Half of the addresses lie inside a
 * prefix, half are random. With few addresses (the default, 4096: what a busy
 * tree of programs talks to) the caches help; with a million each lookup is a
 * series of cache misses and the machine's memory latency is what is measured. */
#include "match/cidr.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LOOKUPS = 1 << 24 };

static uint64_t seed = 88172645463325252U;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Lengths much as in a full routing table: 85 % are /20../24 or /32../48. */
static unsigned random_length(bool is4)
{
	unsigned dice = (unsigned)(rnd() % 100);

	if (dice < 85)
		return is4 ? 20 + (unsigned)(rnd() % 5) : 32 + (unsigned)(rnd() % 17);
	if (dice < 93)
		return is4 ? 12 + (unsigned)(rnd() % 8) : 24 + (unsigned)(rnd() % 8);
	return is4 ? 25 + (unsigned)(rnd() % 8) : 49 + (unsigned)(rnd() % 80);
}

static unsigned random_prefix(uint8_t b[16], bool is4)
{
	unsigned len = random_length(is4);

	for (unsigned i = 0; i < 16; i++)
		b[i] = (uint8_t)rnd();
	if (!is4)
		b[0] = 0x20 | (b[0] & 3);
	for (unsigned i = 0; i < 128; i++)
		if (i >= len)
			b[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
	return len;
}

static int measure(size_t prefixes, size_t addresses, bool is4)
{
	struct sv_cidr *c = sv_cidr_new();
	struct sv_ip *ips = calloc(addresses, sizeof(*ips));
	uint64_t sum = 0;
	double start;

	if (!c || !ips)
		return 1;
	for (size_t i = 0; i < prefixes || i < addresses; i++) {
		uint8_t b[16];
		unsigned len = random_prefix(b, is4);

		if (i < prefixes &&
		    sv_cidr_add(c, b, is4, len, 0, UINT16_MAX, (int32_t)i, (uint32_t)(i % 4)))
			return 1;
		b[is4 ? 3 : 15] |= 1;
		if (rnd() % 2)
			random_prefix(b, is4);
		ips[i % addresses] = is4 ? sv_ip4(b) : sv_ip6(b);
	}
	if (sv_cidr_build(c))
		return 1;
	start = now();
	for (size_t i = 0, j = 0; i < LOOKUPS; i++) {
		sum += (uint64_t)sv_cidr_best(c, ips[j], 443);
		j = j + 1 < addresses ? j + 1 : 0;
	}
	printf("cidr %zu %.0f\n", prefixes, LOOKUPS / (now() - start));
	fprintf(stderr, "# %s, checksum %llu\n", is4 ? "IPv4" : "IPv6", (unsigned long long)sum);
	sv_cidr_free(c);
	free(ips);
	return 0;
}

int main(int argc, char **argv)
{
	long prefixes = argc > 1 ? strtol(argv[1], NULL, 10) : 500000;
	long addresses = argc > 2 ? strtol(argv[2], NULL, 10) : 4096;

	if (prefixes < 1 || prefixes > SV_CIDR_MAX || addresses < 1 || addresses > 1 << 24)
		return 2;
	return measure((size_t)prefixes, (size_t)addresses, true) ||
	       measure((size_t)prefixes, (size_t)addresses, false);
}
