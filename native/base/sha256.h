/* sha256.h - SHA-256 (FIPS 180-4), for digests of programs. No allocation. */
#ifndef SV_BASE_SHA256_H
#define SV_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SV_SHA256_BYTES = 32 };

struct sv_sha256 {
	uint32_t h[8];
	uint64_t n;		/* bytes so far */
	uint8_t tail[64];	/* n % 64 of them that fill no block yet */
};

void sv_sha256_init(struct sv_sha256 *s);
void sv_sha256_add(struct sv_sha256 *s, const void *p, size_t n);
/* s is used up. */
void sv_sha256_end(struct sv_sha256 *s, uint8_t out[SV_SHA256_BYTES]);
/* 64 lower case digits and a NUL. */
void sv_sha256_hex(const uint8_t digest[SV_SHA256_BYTES], char out[2 * SV_SHA256_BYTES + 1]);

#endif
