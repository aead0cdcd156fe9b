/* hash.c - reads through the page cache, which is what a program is mapped from. */
#include "effect/hash.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 32 * 1024 };

int sv_hash_file(int fd, const atomic_bool *stop, uint8_t out[SV_SHA256_BYTES])
{
	struct sv_sha256 s;
	uint8_t buf[PIECE];
	struct stat st;
	uint64_t at = 0;

	/* what is too large from the start is not read; what grows is told below */
	if (fstat(fd, &st) == 0 && st.st_size > (off_t)SV_HASH_MAX)
		return -EFBIG;
	sv_sha256_init(&s);
	for (;;) {
		ssize_t n = pread(fd, buf, sizeof(buf), (off_t)at);

		if (stop && atomic_load_explicit(stop, memory_order_relaxed))
			return -ECANCELED;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		at += (uint64_t)n;
		if (at > SV_HASH_MAX)
			return -EFBIG;
		sv_sha256_add(&s, buf, (size_t)n);
	}
	sv_sha256_end(&s, out);
	return 0;
}

bool sv_hash_is(int fd, const atomic_bool *stop, const uint8_t want[SV_SHA256_BYTES],
		char why[SV_HASH_WHY])
{
	char seen_hex[2 * SV_SHA256_BYTES + 1], want_hex[2 * SV_SHA256_BYTES + 1];
	uint8_t seen[SV_SHA256_BYTES];
	int rc = sv_hash_file(fd, stop, seen);

	sv_sha256_hex(want, want_hex);
	if (rc == -EFBIG)
		snprintf(why, SV_HASH_WHY, "the program is larger than %u MiB: too large for a digest",
			 (unsigned int)(SV_HASH_MAX >> 20));
	else if (rc < 0)
		snprintf(why, SV_HASH_WHY, "the program could not be read for its digest: %s",
			 strerror(-rc));
	else if (memcmp(seen, want, sizeof(seen)) == 0)
		return true;
	else {
		sv_sha256_hex(seen, seen_hex);
		snprintf(why, SV_HASH_WHY, "the program's sha256 is %s and not %s", seen_hex, want_hex);
	}
	return false;
}
