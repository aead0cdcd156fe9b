/* decide.h - the answer of a policy to one question. The only matcher there is.
 *
 * The strictest rule that matches wins (deny, approve, steer, allow); of equally
 * strict ones that with the longest literal prefix, then the first id. An operation
 * that no rule speaks about is denied: rule -1, EACCES. A question about several
 * operations gets the strictest of their answers.
 *
 * Paths are absolute and normalised ("/a/b"; the root is "/"). Anything else, and a
 * path for which a bound of the walk is passed, gets the default: deny.
 * out->matched counts at most 64 rules and is exact up to there, but of the rules
 * that share one pattern only the strictest 32 are looked at once every operation
 * has its answer.
 *
 * No allocation, no lock, no system call (sv_decide() loads a policy and so
 * allocates); 25 KiB of stack, twice that for the two that compare. */
#ifndef SV_MATCH_DECIDE_H
#define SV_MATCH_DECIDE_H

#include "model.h"
#include "policy/blob.h"

/* ops: enum sv_op bits. SV_OP_EXEC asks the exec rules too, with the last
 * component as name and unknown arguments. */
void sv_match_path(const struct sv_policy *p, struct sv_str path, uint32_t ops, struct sv_match *out);

/* Does the answer come from a rule that hides names? */
bool sv_match_hides(const struct sv_policy *p, const struct sv_match *m);

/* The files rules with SV_OP_EXEC and the exec rules together. path is the true path,
 * name the program as called (its last component counts). Arguments that are not
 * known match the argv patterns of every rule that is stricter than allow. */
void sv_match_exec(const struct sv_policy *p, struct sv_str path, struct sv_str name,
		   const struct sv_str *argv, int argc, bool argv_known, struct sv_match *out);

/* Whether a rule for this program looks at its arguments. */
bool sv_match_needs_argv(const struct sv_policy *p, struct sv_str path, struct sv_str name);

/* True only if every path below a is decided as the same path below b, for every
 * operation: same action, errno and (steer) rule. False may also mean "not sure". */
bool sv_match_same_future(const struct sv_policy *p, struct sv_str a, struct sv_str b);

/* True only if every path below a is matched by the same patterns as the same path
 * below b. */
bool sv_trie_same_below(const struct sv_trie *t, struct sv_str a, struct sv_str b);

/* Whether any operation is decided less strictly at `to` than at `from`. */
bool sv_match_looser(const struct sv_policy *p, struct sv_str from, struct sv_str to);

#endif
