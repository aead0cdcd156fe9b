/* make_blob.h - builds blobs part by part, for tests and benchmarks. */
#ifndef SV_TESTS_MAKE_BLOB_H
#define SV_TESTS_MAKE_BLOB_H

#include "base/mpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part {
	uint8_t *p;
	size_t n;
	size_t cap;
	uint32_t count;
};

enum { MAKE_BLOCKS = 3 };

struct make_block {
	int fallback;		/* 0 = open, else 1 + the rule */
	struct part paths, names, argvs, starts, start_names, net;
};

struct make {
	struct make_block block[MAKE_BLOCKS];
	int blocks;
	int now;		/* rules and what they match go to this block; 0 = none */
	struct part rules, paths, names, argvs, floor, net, limits, signals;
	struct part env[3];	/* keep, drop, and names and values */
	uint32_t flags;
};

static inline struct sv_mw part_begin(struct part *t, size_t more)
{
	struct sv_mw w;

	if (t->n + more > t->cap) {
		t->cap = (t->n + more) * 2;
		t->p = realloc(t->p, t->cap);
		if (!t->p)
			abort();
	}
	sv_mw_init(&w, t->p + t->n, t->cap - t->n);
	t->count++;
	return w;
}

static inline void part_end(struct part *t, const struct sv_mw *w)
{
	if (w->over)
		abort();
	t->n += w->n;
}

static inline struct sv_str make_str(const char *text)
{
	struct sv_str s = { (const uint8_t *)text, strlen(text) };

	return s;
}

/* to: NULL, a path, or the program of an exec steer; digest: NULL, or text that stands
 * for one, 32 bytes where it is to be loaded. Returns the rule's index. */
static inline int make_pinned(struct make *m, const char *id, int kind, int action, uint32_t ops,
			      int code, int dest_kind, const char *to, const char *digest)
{
	struct sv_mw w = part_begin(&m->rules, 8192);

	sv_mw_array(&w, 11);
	sv_mw_str(&w, make_str(id));
	sv_mw_int(&w, kind);
	sv_mw_int(&w, action);
	sv_mw_uint(&w, ops);
	sv_mw_int(&w, code);
	sv_mw_str(&w, make_str("say"));
	sv_mw_str(&w, make_str("test.yaml:1"));
	sv_mw_int(&w, dest_kind);
	if (dest_kind == SV_DEST_ARGV)
		sv_mw_array(&w, 1);
	if (dest_kind == SV_DEST_NONE || (dest_kind == SV_DEST_TRASH && !to))
		sv_mw_nil(&w);
	else
		sv_mw_bin(&w, make_str(to));
	if (digest)
		sv_mw_bin(&w, make_str(digest));
	else
		sv_mw_nil(&w);
	sv_mw_int(&w, m->now);
	part_end(&m->rules, &w);
	return (int)m->rules.count - 1;
}

static inline int make_rule(struct make *m, const char *id, int kind, int action, uint32_t ops,
			    int code, int dest_kind, const char *to)
{
	return make_pinned(m, id, kind, action, ops, code, dest_kind, to, NULL);
}

/* An allow of the exec section for these bytes only. */
static inline int make_pin(struct make *m, const char *id, const char *digest)
{
	return make_pinned(m, id, SV_RULE_EXEC, SV_ALLOW, SV_OP_EXEC, 0, SV_DEST_NONE, NULL, digest);
}

static inline void make_path(struct make *m, int rule, int except, const char *pattern)
{
	struct part *to = m->now ? &m->block[m->now - 1].paths : &m->paths;
	struct sv_mw w = part_begin(to, 8192);

	sv_mw_array(&w, 3);
	sv_mw_int(&w, rule);
	sv_mw_int(&w, except);
	sv_mw_bin(&w, make_str(pattern));
	part_end(to, &w);
}

static inline void make_name(struct make *m, int rule, const char *name)
{
	struct part *to = m->now ? &m->block[m->now - 1].names : &m->names;
	struct sv_mw w = part_begin(to, 8192);

	sv_mw_array(&w, 2);
	sv_mw_int(&w, rule);
	sv_mw_bin(&w, make_str(name));
	part_end(to, &w);
}

/* patterns: separated by blanks; NULL = any arguments. */
static inline void make_argv(struct make *m, int rule, int append, const char *patterns)
{
	struct part *to = m->now ? &m->block[m->now - 1].argvs : &m->argvs;
	struct sv_mw w = part_begin(to, 8192);
	uint32_t n = patterns && *patterns ? 1 : 0;

	sv_mw_array(&w, 3);
	sv_mw_int(&w, rule);
	sv_mw_int(&w, append);
	if (!patterns) {
		sv_mw_nil(&w);
	} else {
		for (const char *c = patterns; *c; c++)
			n += *c == ' ';
		sv_mw_array(&w, n);
		for (; n; n--) {
			struct sv_str s = { (const uint8_t *)patterns, strcspn(patterns, " ") };

			sv_mw_bin(&w, s);
			patterns += s.n + 1;
		}
	}
	part_end(to, &w);
}

static inline void make_floor(struct make *m, const char *path)
{
	struct sv_mw w = part_begin(&m->floor, 8192);

	sv_mw_array(&w, 2);
	sv_mw_bin(&w, make_str(path));
	sv_mw_uint(&w, 1);
	part_end(&m->floor, &w);
}

/* A limit; UINT64_MAX = no value. */
static inline void make_limit(struct make *m, int kind, uint64_t hard, uint64_t soft, int halt, int rule)
{
	struct sv_mw w = part_begin(&m->limits, 64);

	sv_mw_array(&w, 5);
	sv_mw_int(&w, kind);
	if (hard == UINT64_MAX)
		sv_mw_nil(&w);
	else
		sv_mw_uint(&w, hard);
	if (soft == UINT64_MAX)
		sv_mw_nil(&w);
	else
		sv_mw_uint(&w, soft);
	sv_mw_int(&w, halt);
	sv_mw_int(&w, rule);
	part_end(&m->limits, &w);
}

/* What a network rule speaks of. */
static inline void make_target(struct make *m, int rule, enum sv_net_kind kind, struct sv_str what,
			       unsigned prefix, unsigned lo, unsigned hi)
{
	struct part *to = m->now ? &m->block[m->now - 1].net : &m->net;
	struct sv_mw w = part_begin(to, 8192);

	sv_mw_array(&w, 6);
	sv_mw_int(&w, rule);
	sv_mw_int(&w, (int64_t)kind);
	sv_mw_bin(&w, what);
	sv_mw_uint(&w, prefix);
	sv_mw_uint(&w, lo);
	sv_mw_uint(&w, hi);
	part_end(to, &w);
}

/* A signal rule: bit n - 1 of mask for signal n. Returns its index. */
static inline int make_signal(struct make *m, const char *id, int action, uint64_t mask, unsigned who,
			      unsigned to)
{
	int r = make_rule(m, id, SV_RULE_SIGNAL, action, SV_OP_SIGNAL, 1, SV_DEST_NONE, NULL);
	struct sv_mw w = part_begin(&m->signals, 8192);

	sv_mw_array(&w, 4);
	sv_mw_int(&w, r);
	sv_mw_uint(&w, mask);
	sv_mw_uint(&w, who);
	sv_mw_uint(&w, to);
	part_end(&m->signals, &w);
	return r;
}

/* kind: 0 keep, 1 drop, 2 a name or a value, by turns. */
static inline void make_env(struct make *m, int kind, const char *text)
{
	struct sv_mw w = part_begin(&m->env[kind], 8192);

	sv_mw_bin(&w, make_str(text));
	part_end(&m->env[kind], &w);
}

/* Rules from here on are those of a new block; its number. */
static inline int make_block(struct make *m)
{
	m->now = ++m->blocks;
	return m->now;
}

/* The block at hand denies what no rule of it speaks of, by this rule. */
static inline int make_fallback(struct make *m, const char *id)
{
	int r = make_rule(m, id, SV_RULE_FILES, SV_DENY, 0xff, 0, SV_DEST_NONE, NULL);

	m->block[m->now - 1].fallback = r + 1;
	return r;
}

/* A program that the block at hand is for: a pattern, or a bare name. */
static inline void make_start(struct make *m, const char *program)
{
	struct make_block *b = &m->block[m->now - 1];
	struct part *to = strchr(program, '/') || *program == 1 ? &b->starts : &b->start_names;
	struct sv_mw w = part_begin(to, 8192);

	sv_mw_bin(&w, make_str(program));
	part_end(to, &w);
}

static inline void put_part(struct sv_mw *w, struct part *t)
{
	sv_mw_array(w, t->count);
	if (t->n)
		memcpy(w->p + w->n, t->p, t->n);
	w->n += t->n;
	free(t->p);
}

static inline void put_blocks(struct sv_mw *w, struct make *m)
{
	sv_mw_array(w, (uint32_t)m->blocks);
	for (int i = 0; i < m->blocks; i++) {
		struct make_block *b = &m->block[i];

		sv_mw_array(w, 7);
		if (b->fallback)
			sv_mw_int(w, b->fallback - 1);
		else
			sv_mw_nil(w);
		put_part(w, &b->paths);
		put_part(w, &b->names);
		put_part(w, &b->argvs);
		put_part(w, &b->starts);
		put_part(w, &b->start_names);
		put_part(w, &b->net);
	}
}

/* The whole blob, to be freed; empties m. */
static inline uint8_t *make_done(struct make *m, size_t *len)
{
	struct part *parts[] = { &m->rules, &m->paths, &m->names, &m->argvs, &m->floor,
				 &m->env[0], &m->env[1], &m->env[2] };
	const uint8_t filter[16] = { 6, 0, 0, 0, 0, 0, 0xff, 0x7f, 6, 0, 0, 0, 0, 0, 0, 0 };
	const struct sv_str code = { filter, sizeof(filter) };
	size_t cap = 512 + m->net.n + m->limits.n + m->signals.n;
	struct sv_mw w;
	uint8_t *out;

	for (size_t i = 0; i < 8; i++)
		cap += parts[i]->n + 8;
	for (int i = 0; i < m->blocks; i++)
		cap += m->block[i].paths.n + m->block[i].names.n + m->block[i].argvs.n +
		       m->block[i].starts.n + m->block[i].start_names.n +
		       m->block[i].net.n;
	out = malloc(cap);
	if (!out)
		abort();
	sv_mw_init(&w, out, cap);
	sv_mw_array(&w, 15);
	sv_mw_str(&w, make_str("SVB"));
	sv_mw_uint(&w, SV_BLOB_VERSION);
	sv_mw_uint(&w, m->flags);
	sv_mw_uint(&w, SV_RECORD_CHANGES);
	sv_mw_bin(&w, code);
	for (size_t i = 0; i < 8; i++) {
		if (i == 5)
			sv_mw_array(&w, 3);
		put_part(&w, parts[i]);
	}
	put_blocks(&w, m);
	put_part(&w, &m->net);
	put_part(&w, &m->limits);
	put_part(&w, &m->signals);
	if (w.over)
		abort();
	memset(m, 0, sizeof(*m));
	*len = w.n;
	return out;
}

#endif
