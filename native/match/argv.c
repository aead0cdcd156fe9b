/* argv.c - the glob matcher once more, with arguments for bytes. */
#include "match/argv.h"

#include "match/glob.h"

static bool any_number(struct sv_str pat)
{
	return pat.n == 2 && pat.p[0] == '*' && pat.p[1] == '*';
}

bool sv_argv_check(const struct sv_str *pats, int npats)
{
	for (int i = 0; i < npats; i++)
		if (sv_glob_check(pats[i]) == SV_GLOB_BAD)
			return false;
	return true;
}

bool sv_argv_match(const struct sv_str *pats, int npats, const struct sv_str *args, int nargs)
{
	int p = 0, i = 0, back_p = -1, back_i = 0;

	while (i < nargs) {
		if (p < npats && any_number(pats[p])) {
			back_p = ++p;
			back_i = i;
			continue;
		}
		if (p < npats && sv_glob_match(pats[p], args[i])) {
			p++;
			i++;
			continue;
		}
		if (back_p < 0)
			return false;
		p = back_p;
		i = ++back_i;
	}
	while (p < npats && any_number(pats[p]))
		p++;
	return p == npats;
}
