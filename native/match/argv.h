/* argv.h - argument lists against the argv patterns of an exec rule.
 *
 * Every element is a glob over one whole argument; the element `**` stands for
 * any number of arguments, none included. No allocation, no recursion. */
#ifndef SV_MATCH_ARGV_H
#define SV_MATCH_ARGV_H

#include "model.h"

/* False when an element is no valid glob. */
bool sv_argv_check(const struct sv_str *pats, int npats);
/* args are the arguments without argv[0]. */
bool sv_argv_match(const struct sv_str *pats, int npats, const struct sv_str *args, int nargs);

#endif
