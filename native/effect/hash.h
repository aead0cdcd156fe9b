/* hash.h - the digest of an open file, read in pieces, for a thread that may be
 * told to stop. */
#ifndef SV_EFFECT_HASH_H
#define SV_EFFECT_HASH_H

#include "base/sha256.h"
#include "model.h"

#include <stdatomic.h>

/* More than this is nobody's program, and would keep a thread for seconds. */
#define SV_HASH_MAX ((uint64_t)1 << 30)
enum { SV_HASH_WHY = 256 };

/* Reads fd from its start. 0, -EFBIG beyond SV_HASH_MAX, -ECANCELED when *stop
 * became true (NULL = never), or the errno of a read. */
int sv_hash_file(int fd, const atomic_bool *stop, uint8_t out[SV_SHA256_BYTES]);
/* The same, compared: true = these bytes. Else why holds a sentence. */
bool sv_hash_is(int fd, const atomic_bool *stop, const uint8_t want[SV_SHA256_BYTES],
		char why[SV_HASH_WHY]);

#endif
