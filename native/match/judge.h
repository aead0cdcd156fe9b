/* judge.h - one walk, one question, and the best entry for each operation. */
#ifndef SV_MATCH_JUDGE_H
#define SV_MATCH_JUDGE_H

#include "match/decide.h"

enum {
	SV_OPS = 8,
	SV_OPS_ALL = 0xff,
	SV_TALLY = 64,		/* rules that are counted */
	SV_SCAN = 32		/* entries of one pattern that are looked at for the count */
};

struct sv_question {
	const struct sv_policy *p;
	struct sv_str path;
	struct sv_str name;		/* the program as called, or empty */
	const struct sv_str *args;	/* argv[1:] */
	int nargs;
	bool known;
	uint32_t ops;
};

struct sv_judged {
	const struct sv_entry *best[SV_OPS];	/* by bit number; NULL = default */
	const struct sv_rule *pin;	/* a rule that says which bytes the program has */
	bool clash;			/* another one says other bytes */
	int n;
	const struct sv_entry *tally[SV_TALLY];	/* one per rule, strictest first */
};

/* decide.c: the answer of q->p alone. */
void sv_answer(const struct sv_question *q, struct sv_match *out);

/* False when the walk failed: then everything is the default. */
bool sv_judge(const struct sv_question *q, struct sv_walk *w, struct sv_judged *out);
/* The action of one operation. */
enum sv_action sv_judged_action(const struct sv_policy *p, const struct sv_judged *j, int bit);
/* All entries by bare name for the last component of a path or name. */
const struct sv_name *sv_names_of(const struct sv_policy *p, struct sv_str path, uint32_t *count);
/* The same for the programs that blocks are for; an entry's rule is a block. */
const struct sv_name *sv_starts_of(const struct sv_policy *p, struct sv_str path, uint32_t *count);
struct sv_str sv_last_name(struct sv_str path);

#endif
