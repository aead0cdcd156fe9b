/* check.h - what the C tests share: a check that counts, and a fixed random source. */
#ifndef SV_TESTS_CHECK_H
#define SV_TESTS_CHECK_H

#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;
static int check_count;

#define CHECK(cond)                                                              \
	do {                                                                     \
		check_count++;                                                   \
		if (!(cond) && check_failures++ < 20)                            \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #cond); \
	} while (0)

/* The last line of main: says what happened and gives the exit code. */
static inline int check_end(void)
{
	printf("%d checks, %d failed\n", check_count, check_failures);
	return check_failures != 0;
}

static uint64_t check_state = 0x5eed5eed5eed5eedULL;

static inline uint32_t check_random(uint32_t below)
{
	check_state ^= check_state << 13;
	check_state ^= check_state >> 7;
	check_state ^= check_state << 17;
	return (uint32_t)(check_state >> 33) % below;
}

static inline struct sv_str check_str(const char *text)
{
	struct sv_str s = { (const uint8_t *)text, strlen(text) };

	return s;
}

#endif
