/* sha256.c - as the standard writes it; the constants are the fractions of the
 * cube and square roots of the first primes. */
#include "base/sha256.h"

#include <string.h>

static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static const uint32_t START[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint32_t turn(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t load(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store(uint8_t *p, uint32_t x)
{
	p[0] = (uint8_t)(x >> 24);
	p[1] = (uint8_t)(x >> 16);
	p[2] = (uint8_t)(x >> 8);
	p[3] = (uint8_t)x;
}

/* One round; the caller turns the names instead of moving the values. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                           \
	do {                                                                                       \
		uint32_t one = (h) + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +                    \
			       (((e) & (f)) ^ (~(e) & (g))) + K[i] + w[i];                         \
		(d) += one;                                                                        \
		(h) = one + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +                             \
		      (((a) & (b)) ^ ((a) & (c)) ^ ((b) & (c)));                                   \
	} while (0)

static void block(uint32_t at[8], const uint8_t *p)
{
	uint32_t a = at[0], b = at[1], c = at[2], d = at[3];
	uint32_t e = at[4], f = at[5], g = at[6], h = at[7], w[64];

	for (int i = 0; i < 16; i++)
		w[i] = load(p + 4 * i);
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	for (int i = 0; i < 64; i += 8) {
		ROUND(a, b, c, d, e, f, g, h, i);
		ROUND(h, a, b, c, d, e, f, g, i + 1);
		ROUND(g, h, a, b, c, d, e, f, i + 2);
		ROUND(f, g, h, a, b, c, d, e, i + 3);
		ROUND(e, f, g, h, a, b, c, d, i + 4);
		ROUND(d, e, f, g, h, a, b, c, i + 5);
		ROUND(c, d, e, f, g, h, a, b, i + 6);
		ROUND(b, c, d, e, f, g, h, a, i + 7);
	}
	at[0] += a;
	at[1] += b;
	at[2] += c;
	at[3] += d;
	at[4] += e;
	at[5] += f;
	at[6] += g;
	at[7] += h;
}

void sv_sha256_init(struct sv_sha256 *s)
{
	memcpy(s->h, START, sizeof(s->h));
	s->n = 0;
}

void sv_sha256_add(struct sv_sha256 *s, const void *from, size_t n)
{
	const uint8_t *p = from;
	size_t have = s->n % sizeof(s->tail);

	s->n += n;
	if (have) {
		size_t more = sizeof(s->tail) - have < n ? sizeof(s->tail) - have : n;

		memcpy(s->tail + have, p, more);
		p += more;
		n -= more;
		if (have + more < sizeof(s->tail))
			return;
		block(s->h, s->tail);
	}
	for (; n >= sizeof(s->tail); n -= sizeof(s->tail), p += sizeof(s->tail))
		block(s->h, p);
	if (n)
		memcpy(s->tail, p, n);
}

void sv_sha256_end(struct sv_sha256 *s, uint8_t out[SV_SHA256_BYTES])
{
	uint8_t pad[72] = { 0x80 };
	uint64_t bits = s->n * 8;
	size_t have = s->n % 64, zeros = have < 56 ? 56 - have : 120 - have;

	store(pad + zeros, (uint32_t)(bits >> 32));
	store(pad + zeros + 4, (uint32_t)bits);
	sv_sha256_add(s, pad, zeros + 8);
	for (int i = 0; i < 8; i++)
		store(out + 4 * i, s->h[i]);
}

void sv_sha256_hex(const uint8_t digest[SV_SHA256_BYTES], char out[2 * SV_SHA256_BYTES + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < SV_SHA256_BYTES; i++) {
		out[2 * i] = digits[digest[i] >> 4];
		out[2 * i + 1] = digits[digest[i] & 15];
	}
	out[2 * SV_SHA256_BYTES] = 0;
}
