/* blob.c - header and rules of a blob; what they match is read in blob_match.c. */
#include "policy/blob.h"

#include "base/err.h"
#include "policy/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t net_ops = SV_OP_CONNECT | SV_OP_BIND;
static const uint32_t rule_ops = SV_OP_CONNECT | SV_OP_BIND | SV_OP_SIGNAL | SV_BLOB_HIDE | 0xff;

static int read_header(struct sv_load *l)
{
	struct sv_policy *p = l->p;
	uint64_t version, flags, record;
	struct sv_str magic;
	size_t n;

	if (!sv_mp_array(&l->r, 15, &n) || n != 15 || !sv_mp_str(&l->r, 3, &magic) ||
	    magic.n != 3 || memcmp(magic.p, "SVB", 3) != 0)
		return sv_load_damaged(l, "no policy blob at all");
	if (!sv_mp_uint(&l->r, UINT32_MAX, &version) || version != SV_BLOB_VERSION)
		return sv_load_damaged(l, "another version");
	if (!sv_mp_uint(&l->r, SV_POLICY_ALL, &flags) ||
	    !sv_mp_uint(&l->r, SV_RECORD_ALL, &record) ||
	    !sv_mp_bin(&l->r, SV_BLOB_FILTER * 8, &p->filter) || p->filter.n % 8)
		return sv_load_damaged(l, "flags, record or filter");
	p->flags = (uint32_t)flags;
	p->record = (enum sv_record)record;
	return 0;
}

static int read_dest(struct sv_load *l, struct sv_rule *r)
{
	struct sv_str *words = NULL;
	int rc;

	switch (r->dest_kind) {
	case SV_DEST_NONE:
	case SV_DEST_TRASH:
		return sv_mp_nil(&l->r) ? 0 : sv_load_damaged(l, "a destination where none belongs");
	case SV_DEST_FILE:
	case SV_DEST_TREE:
		if (!sv_mp_bin(&l->r, SV_BLOB_PATTERN, &r->dest))
			return sv_load_damaged(l, "a destination");
		return sv_load_keep_path(l, &r->dest);
	case SV_DEST_ARGV:
		rc = sv_load_words(l, &words, &r->dest_argc);
		r->dest_argv = words;
		for (int i = 0; !rc && i < r->dest_argc; i++)
			rc = sv_load_keep(l, &words[i]);
		if (!rc && (!r->dest_argc || !r->dest_argv[0].n))
			rc = sv_load_damaged(l, "a destination without a program");
		return rc;
	}
	return sv_load_damaged(l, "a destination");
}

static bool may_hide(const struct sv_rule *r)
{
	return r->kind == SV_RULE_FILES && r->action == SV_DENY && r->ops == 0xff && r->err == ENOENT;
}

static bool fits_network(const struct sv_rule *r)
{
	return !(r->ops & ~net_ops) && !r->hides && r->dest_kind == SV_DEST_NONE &&
	       (r->action == SV_ALLOW || r->action == SV_DENY);
}

static bool fits_signal(const struct sv_rule *r)
{
	return r->ops == SV_OP_SIGNAL && !r->hides && r->dest_kind == SV_DEST_NONE &&
	       (r->action == SV_STEER || r->action == SV_DENY);
}

/* What the four numbers of a rule may be together. */
static bool fits(const struct sv_rule *r)
{
	if (!r->ops || !r->id.n)
		return false;
	if (r->kind == SV_RULE_NETWORK)
		return fits_network(r);
	if (r->kind == SV_RULE_SIGNAL)
		return fits_signal(r);
	if (r->ops > 0xff)
		return false;
	if (r->kind == SV_RULE_EXEC && r->ops != SV_OP_EXEC)
		return false;
	if (r->hides && !may_hide(r))
		return false;
	if (r->action != SV_STEER)
		return r->dest_kind == SV_DEST_NONE;
	if (r->kind == SV_RULE_EXEC)
		return r->dest_kind == SV_DEST_ARGV;
	if (r->ops & SV_OP_DELETE)
		return r->ops == SV_OP_DELETE && r->dest_kind == SV_DEST_TRASH;
	return r->dest_kind == SV_DEST_FILE || r->dest_kind == SV_DEST_TREE;
}

static bool read_texts(struct sv_load *l, struct sv_rule *r)
{
	return sv_mp_str(&l->r, SV_BLOB_SAY, &r->say) && sv_mp_str(&l->r, SV_BLOB_SRC, &r->src);
}

/* An allow that names bytes stands for "these or none". */
static int read_digest(struct sv_load *l, struct sv_rule *r)
{
	struct sv_str digest;

	if (sv_mp_nil(&l->r))
		return 0;
	if (r->kind != SV_RULE_EXEC || r->action != SV_ALLOW ||
	    !sv_mp_bin(&l->r, SV_BLOB_DIGEST, &digest) || digest.n != SV_BLOB_DIGEST)
		return sv_load_damaged(l, "a digest");
	r->digest = digest.p;
	return 0;
}

/* A block only narrows what is there: it neither steers nor pins. */
static int read_block(struct sv_load *l, struct sv_rule *r)
{
	uint64_t block;

	if (!sv_mp_uint(&l->r, SV_BLOCKS, &block))
		return sv_load_damaged(l, "the block of a rule");
	r->block = (uint8_t)block;
	if (block && (r->digest || r->kind == SV_RULE_SIGNAL ||
		      (r->action != SV_ALLOW && r->action != SV_DENY)))
		return sv_load_damaged(l, "a rule that no block may have");
	return 0;
}

static int read_rule(struct sv_load *l, struct sv_rule *r)
{
	uint64_t kind, action, ops, code, dest;
	size_t n;
	int rc;

	if (!sv_mp_array(&l->r, 11, &n) || n != 11)
		return sv_load_damaged(l, "a rule");
	if (!sv_mp_str(&l->r, SV_BLOB_ID, &r->id) || !sv_mp_uint(&l->r, SV_RULE_SIGNAL, &kind) ||
	    !sv_mp_uint(&l->r, SV_DENY, &action) || !sv_mp_uint(&l->r, rule_ops, &ops) ||
	    !sv_mp_uint(&l->r, 4095, &code) || !read_texts(l, r) ||
	    !sv_mp_uint(&l->r, SV_DEST_TRASH, &dest))
		return sv_load_damaged(l, "a rule");
	r->kind = (enum sv_rule_kind)kind;
	r->action = (enum sv_action)action;
	r->ops = (uint32_t)ops & ~(uint32_t)SV_BLOB_HIDE;
	r->hides = ops & SV_BLOB_HIDE;
	r->err = code ? (int)code : EACCES;
	r->dest_kind = (enum sv_dest_kind)dest;
	if (!fits(r))
		return sv_load_damaged(l, "a rule that cannot be");
	rc = read_dest(l, r);
	if (!rc)
		rc = read_digest(l, r);
	return rc ? rc : read_block(l, r);
}

static int by_id(const void *va, const void *vb)
{
	const struct sv_rule *a = *(const struct sv_rule *const *)va;
	const struct sv_rule *b = *(const struct sv_rule *const *)vb;
	int c = sv_load_order(a->id, b->id);

	return c ? c : (a > b) - (a < b);
}

/* Ids, and not the order of the file, decide between rules that are equal. */
static int rank_rules(struct sv_load *l)
{
	struct sv_policy *p = l->p;
	struct sv_rule **order = sv_load_array(p->nrules, sizeof(struct sv_rule *));

	if (!order)
		return sv_load_memory(l);
	for (uint32_t i = 0; i < p->nrules; i++)
		order[i] = &p->rules[i];
	qsort(order, p->nrules, sizeof(struct sv_rule *), by_id);
	p->by_rank = sv_load_array(p->nrules, sizeof(*p->by_rank));
	for (uint32_t i = 0; p->by_rank && i < p->nrules; i++) {
		order[i]->rank = i;
		p->by_rank[i] = (uint32_t)(order[i] - p->rules);
	}
	free(order);
	return p->by_rank ? 0 : sv_load_memory(l);
}

static int read_rules(struct sv_load *l)
{
	size_t n;
	int rc = 0;

	if (!sv_mp_array(&l->r, SV_BLOB_RULES, &n))
		return sv_load_damaged(l, "the rules");
	l->p->rules = sv_load_array(n, sizeof(*l->p->rules));
	if (!l->p->rules)
		return sv_load_memory(l);
	l->p->nrules = (uint32_t)n;
	for (size_t i = 0; !rc && i < n; i++)
		rc = read_rule(l, &l->p->rules[i]);
	return rc ? rc : rank_rules(l);
}

static int load_all(struct sv_load *l)
{
	int (*const parts[])(struct sv_load *) = { read_header, read_rules, sv_load_paths, sv_load_names,
						sv_load_argvs, sv_load_floor,
						sv_load_env, sv_load_blocks, sv_load_network, sv_load_limits,
						sv_load_signals };
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(parts) / sizeof(parts[0]); i++)
		rc = parts[i](l);
	if (!rc && !sv_mp_done(&l->r))
		rc = sv_load_damaged(l, "bytes after the end");
	return rc;
}

static struct sv_policy *copy_blob(const uint8_t *blob, size_t len)
{
	struct sv_policy *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->blob = malloc(len ? len : 1);
	p->fallback = -1;
	if (!p->blob) {
		free(p);
		return NULL;
	}
	if (len)
		memcpy(p->blob, blob, len);
	return p;
}

struct sv_policy *sv_policy_load(const uint8_t *blob, size_t len, const char *tmp,
				 struct sv_err *err)
{
	struct sv_load l = { .err = err };

	l.tmp.p = (const uint8_t *)(tmp ? tmp : "");
	l.tmp.n = strlen((const char *)l.tmp.p);
	if (len > SV_BLOB_MAX) {
		sv_fail(err, E2BIG, "policy blob", "larger than %d bytes", SV_BLOB_MAX);
		return NULL;
	}
	if (l.tmp.n && (l.tmp.p[0] != '/' || l.tmp.n == 1 || l.tmp.n >= SV_PATH_MAX)) {
		sv_fail(err, EINVAL, "policy blob", "the private folder is no absolute path");
		return NULL;
	}
	l.p = copy_blob(blob, len);
	if (!l.p) {
		sv_load_memory(&l);
		return NULL;
	}
	l.start = l.p->blob;
	sv_mp_init(&l.r, l.p->blob, len);
	if (load_all(&l) < 0) {
		sv_policy_free(l.p);
		return NULL;
	}
	return l.p;
}

void sv_policy_free(struct sv_policy *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->nrules; i++) {
		free((void *)p->rules[i].dest_argv);
		free((void *)p->rules[i].argv);
	}
	sv_load_free_blocks(p);
	sv_load_free_network(&p->net);
	free(p->by_rank);
	free((void *)p->env.keep.v);
	free((void *)p->env.drop.v);
	free((void *)p->env.set.v);
	sv_load_free_kept(p->owned);
	sv_trie_free(p->trie);
	free(p->rules);
	free(p->floor);
	free(p->signals);
	free(p->names);
	free(p->blob);
	free(p);
}
