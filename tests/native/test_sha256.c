/* test_sha256.c - the examples of FIPS 180-4 and of NIST's long test, in every cut; with
 * an argument: the digest of stdin, for test_sha256.py to compare. */
#include "check.h"

#include "base/sha256.h"

#include <stdlib.h>
#include <unistd.h>

static bool gives(const char *text, size_t n, const char *want)
{
	uint8_t out[SV_SHA256_BYTES];
	char hex[2 * SV_SHA256_BYTES + 1];
	struct sv_sha256 s;

	sv_sha256_init(&s);
	sv_sha256_add(&s, text, n);
	sv_sha256_end(&s, out);
	sv_sha256_hex(out, hex);
	return strcmp(hex, want) == 0;
}

static void test_vectors(void)
{
	static char million[1000000];
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	static const char four[] = "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
				   "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";

	memset(million, 'a', sizeof(million));
	CHECK(gives("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
	CHECK(gives("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
	CHECK(gives(two, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
	CHECK(gives(four, 112, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"));
	CHECK(gives(million, sizeof(million),
		    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
	CHECK(!gives("abd", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
}

/* However the bytes come in pieces, the digest is that of the whole. */
static void test_pieces(void)
{
	uint8_t data[300], whole[SV_SHA256_BYTES], cut[SV_SHA256_BYTES];
	struct sv_sha256 s;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)check_random(256);
	for (size_t n = 0; n <= sizeof(data); n++) {
		sv_sha256_init(&s);
		sv_sha256_add(&s, data, n);
		sv_sha256_end(&s, whole);
		sv_sha256_init(&s);
		for (size_t at = 0, k; at < n; at += k) {
			k = 1 + check_random(70);
			k = k < n - at ? k : n - at;
			sv_sha256_add(&s, data + at, k);
		}
		sv_sha256_end(&s, cut);
		CHECK(!memcmp(whole, cut, sizeof(cut)));
	}
}

static int digest_of_stdin(void)
{
	uint8_t buf[1000], out[SV_SHA256_BYTES];
	char hex[2 * SV_SHA256_BYTES + 1];
	struct sv_sha256 s;
	ssize_t n;

	sv_sha256_init(&s);
	while ((n = read(0, buf, sizeof(buf))) > 0)
		sv_sha256_add(&s, buf, (size_t)n);
	sv_sha256_end(&s, out);
	sv_sha256_hex(out, hex);
	return puts(hex) < 0 || n < 0;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc == 2)
		return digest_of_stdin();
	printf("seed %#llx\n", (unsigned long long)check_state);
	test_vectors();
	test_pieces();
	return check_end();
}
