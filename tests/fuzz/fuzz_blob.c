/* fuzz_blob.c - any bytes as a policy; what loads must answer. Build with
 * clang -fsanitize=fuzzer,address,undefined; seeds: corpus/blob (test_blob FOLDER writes them). */
#include "match/blocks.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sv_str str(const char *text)
{
	struct sv_str s = { (const uint8_t *)text, strlen(text) };

	return s;
}

static void ask(const struct sv_policy *p)
{
	static const char *const paths[] = { "/", "/work/a.pem", "/work/.git/hooks/x", "/home/u/.env",
					     "/keys/a.kem", "/tmp/s/x", "/a/b/c/d/e/f/g", "bad", "/.." };
	const struct sv_str argv[] = { str("git"), str("push"), str("-f") };
	struct sv_match m;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct sv_str path = str(paths[i]);

		for (uint32_t op = 1; op <= 0x100; op <<= 1) {
			sv_match_path(p, path, op, &m);
			if (m.rule >= (int)p->nrules || m.err <= 0 || m.matched < 0 ||
			    (m.rule < 0 && m.action != SV_DENY) || (size_t)m.prefix > path.n)
				abort();
		}
		sv_match_path_in(p, 5, path, 0xff, &m);
		if (m.rule >= (int)p->nrules || m.err <= 0)
			abort();
		sv_match_exec_in(p, SV_LABEL_ALL, path, argv[0], argv, 3, i & 1, &m);
		sv_match_needs_argv_in(p, 3, path, argv[0]);
		sv_match_may_move(p, 3, path, str(paths[2]), i & 1);
		sv_blocks_start(p, path, argv[0]);
		sv_match_exec(p, path, argv[0], argv, 3, i & 1, &m);
		sv_match_needs_argv(p, path, argv[0]);
		sv_match_looser(p, path, str(paths[1]));
		if (path.p[0] == '/' && i < 7 && !sv_match_same_future(p, path, path))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sv_err err = { 0 };
	struct sv_policy *p = sv_policy_load(data, size, size & 1 ? "/tmp/s" : "", &err);

	if (p)
		ask(p);
	else if (!err.code)
		abort();
	sv_policy_free(p);
	return 0;
}
