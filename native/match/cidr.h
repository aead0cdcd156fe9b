/* cidr.h - which rules speak about this address and port?
 *
 * A prefix tree for IPv4 and IPv6 whose entries carry a port range, a value
 * (a rule's index) and a rank (how strict the rule is). It is filled with
 * sv_cidr_add(), frozen once with sv_cidr_build() and read-only from then on:
 * any number of threads may look up, with no lock and no system call.
 *
 * IPv4-mapped IPv6 is IPv4 here, for addresses and for prefixes of 96 bits and
 * more; a shorter IPv6 prefix, "::/0" too, never covers an IPv4 address.
 *
 * Cost of a lookup: one table step for the first 22 bits at most, and one more
 * for each further branching of prefixes that share these; one comparison with
 * the prefix found. Only where port ranges are used are the enclosing prefixes
 * visited as well, each with a binary search in its ports.
 * Memory: about 110 bytes for each prefix; -E2BIG beyond 1.5 GiB of slots. */
#ifndef SV_MATCH_CIDR_H
#define SV_MATCH_CIDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SV_CIDR_NONE = -1, SV_CIDR_MAX = 4000000 };

struct sv_cidr;

/* An address, most significant bit first; IPv4 fills the top half of hi. */
struct sv_ip {
	uint64_t hi;
	uint64_t lo;
	bool v4;
};

struct sv_ip sv_ip4(const uint8_t bytes[4]);
/* Folds ::ffff:a.b.c.d to a.b.c.d. */
struct sv_ip sv_ip6(const uint8_t bytes[16]);

/* NULL = out of memory. */
struct sv_cidr *sv_cidr_new(void);
void sv_cidr_free(struct sv_cidr *c);

/* Adds bytes/len for the ports lo..hi. is4 says whether bytes holds 4 or 16
 * of them. value must not be negative. Returns -EINVAL for a length that the
 * family does not have, for bits set behind the prefix, or lo > hi; -E2BIG
 * past SV_CIDR_MAX entries; -EBUSY once built; -ENOMEM. */
int sv_cidr_add(struct sv_cidr *c, const uint8_t *bytes, bool is4, unsigned len,
		uint16_t lo, uint16_t hi, int32_t value, uint32_t rank);

/* Freezes the table. -ENOMEM, -E2BIG, or -EBUSY when it is frozen already; after a
 * failure the table may only be freed. */
int sv_cidr_build(struct sv_cidr *c);

/* The value of the highest rank among all entries that hold (ip, port); the
 * longer prefix among equals, then the smaller value. SV_CIDR_NONE = no entry,
 * also for a table that was not built. */
int32_t sv_cidr_best(const struct sv_cidr *c, struct sv_ip ip, uint16_t port);

/* As above, but the longest prefix with an entry for the port wins. */
int32_t sv_cidr_longest(const struct sv_cidr *c, struct sv_ip ip, uint16_t port);

/* Every matching entry, longest prefix first, the higher rank first within one
 * prefix. Stores up to max values and returns how many entries match. */
size_t sv_cidr_all(const struct sv_cidr *c, struct sv_ip ip, uint16_t port,
		   int32_t *values, size_t max);

#endif
