/* blocks.h - decisions for processes that are in blocks of the policy. A block only
 * narrows: the answer is the strictest of the policy's own and of every block's.
 *
 * blocks: bit k for block k; bits that the policy has no block for are left out. As
 * decide.h: no allocation, no lock, no system call; 50 KiB of stack. */
#ifndef SV_MATCH_BLOCKS_H
#define SV_MATCH_BLOCKS_H

#include "match/decide.h"

/* The blocks that a program starts: path is its true path, name what it was called
 * by. Every one where that cannot be told. */
uint32_t sv_blocks_start(const struct sv_policy *p, struct sv_str path, struct sv_str name);

void sv_match_path_in(const struct sv_policy *p, uint32_t blocks, struct sv_str path, uint32_t ops,
		      struct sv_match *out);
void sv_match_exec_in(const struct sv_policy *p, uint32_t blocks, struct sv_str path,
		      struct sv_str name, const struct sv_str *argv, int argc, bool argv_known,
		      struct sv_match *out);
bool sv_match_needs_argv_in(const struct sv_policy *p, uint32_t blocks, struct sv_str path,
			    struct sv_str name);

/* Whether what has the name `from` may get the name `to`: neither the policy nor a
 * block decides anything less strictly there, and no block is for a program of the old
 * name alone; folder: nor for any path below. Somebody in a block is held against all
 * of them: what it moves, others may read. */
bool sv_match_may_move(const struct sv_policy *p, uint32_t blocks, struct sv_str from,
		       struct sv_str to, bool folder);

/* out becomes the stricter of the two. */
void sv_match_stricter(struct sv_match *out, const struct sv_match *other);

#endif
