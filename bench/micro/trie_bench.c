/* trie_bench.c - lookups per second with 10, 1,000 and 100,000 rules.
 *
 * Prints "name rules lookups_per_second" lines. `mixed` asks 16 paths in turn, hits
 * and misses; `spread` asks for a different rule's path each time, so that with many
 * rules nearly every step leaves the processor's cache. Also "memory rules bytes" (of
 * the trie) and "load rules milliseconds". Best of five; one core. */
#include "../../tests/native/make_blob.h"

#include "match/decide.h"

#include <stdio.h>
#include <time.h>

enum { PATHS = 16, SPREAD = 4096, ROUNDS = 5 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Pattern i, and a path that it matches. */
static void rule_text(int i, char *pattern, char *path, size_t cap)
{
	int d = i / 10;

	if (i % 10 < 4) {
		snprintf(pattern, cap, "/srv/app%d/module%d/src/file%d.c", d % 97, d % 1009, i);
		snprintf(path, cap, "%s", pattern);
	} else if (i % 10 < 7) {
		snprintf(pattern, cap, "/home/user%d/project%d/**", d % 211, i);
		snprintf(path, cap, "/home/user%d/project%d/src/lib/main.py", d % 211, i);
	} else if (i % 10 == 7) {
		snprintf(pattern, cap, "**/secret%d", i);
		snprintf(path, cap, "/home/user%d/project/secret%d", d % 211, i);
	} else if (i % 10 == 8) {
		snprintf(pattern, cap, "**/cache%d/**", i);
		snprintf(path, cap, "/var/lib/cache%d/blob/00", i);
	} else {
		snprintf(pattern, cap, "/etc/conf%d/*.ext%d", d % 50, i);
		snprintf(path, cap, "/etc/conf%d/name.ext%d", d % 50, i);
	}
}

static struct sv_policy *build(int rules)
{
	static const enum sv_action actions[] = { SV_ALLOW, SV_DENY };
	struct make m = { 0 };
	struct sv_err err = { 0 };
	struct sv_policy *p;
	char pattern[128], path[128], id[32];
	double from = now();
	uint8_t *blob;
	size_t len;

	for (int i = 0; i < rules; i++) {
		snprintf(id, sizeof(id), "rule-%d", i);
		rule_text(i, pattern, path, sizeof(path));
		make_path(&m, make_rule(&m, id, SV_RULE_FILES, actions[i % 2], SV_OP_READ, 13,
					SV_DEST_NONE, NULL), 0, pattern);
	}
	blob = make_done(&m, &len);
	from = now();
	p = sv_policy_load(blob, len, "", &err);
	free(blob);
	if (!p) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	printf("load %d %.1f\n", rules, (now() - from) * 1e3);
	printf("memory %d %zu\n", rules, sv_trie_bytes(p->trie));
	return p;
}

static void measure(const char *name, int rules, const struct sv_policy *p, char (*paths)[128], int n)
{
	struct sv_str s[SPREAD];
	struct sv_match m;
	double best = 0;
	unsigned int sum = 0;

	for (int i = 0; i < n; i++)
		s[i] = make_str(paths[i]);
	for (int r = 0; r < ROUNDS; r++) {
		const int count = 300000;
		double from = now(), rate;

		for (int i = 0; i < count; i++) {
			sv_match_path(p, s[i % n], SV_OP_READ, &m);
			sum += (unsigned int)m.action;
		}
		rate = count / (now() - from);
		best = rate > best ? rate : best;
	}
	printf("%s %d %.0f\n", name, rules, best);
	if (sum == 1)
		printf("\n");
}

int main(void)
{
	static const int sizes[] = { 10, 1000, 100000 };
	static char spread[SPREAD][128];
	static char mixed[PATHS][128] = {
		"/usr/lib/x86_64-linux-gnu/libc.so.6", "/home/user0/project4/src/lib/main.py",
		"/srv/app0/module0/src/file1.c", "/srv/app0/module0/src/file1.h", "/etc/conf0/name.ext9",
		"/etc/conf0/name.none", "/var/lib/cache8/blob/00", "/home/user0/x/y/z/secret7",
		"/home/user0/project5/node_modules/pkg/index.js", "/tmp/a", "/", "/proc/self/status",
		"/usr/share/zoneinfo/Europe/Berlin", "/home/user0/project6", "/srv/app0/module0/src",
		"/dev/null",
	};
	char pattern[128];

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct sv_policy *p = build(sizes[k]);

		for (int i = 0; i < SPREAD; i++)
			rule_text((int)(((long)i * 7919) % sizes[k]), pattern, spread[i], sizeof(spread[i]));
		measure("mixed", sizes[k], p, mixed, PATHS);
		measure("spread", sizes[k], p, spread, SPREAD);
		sv_policy_free(p);
	}
	return 0;
}
