/* environ.c - the caller's variables that pass, then those that the policy sets. */
#include "broker/environ.h"

#include "match/environ.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static int add_set(const struct sv_env *e, struct sv_argvec *out)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < e->set.n; i += 2) {
		const struct sv_str *name = &e->set.v[i], *value = &e->set.v[i + 1];
		char *both = malloc(name->n + value->n + 1);

		if (!both)
			return -ENOMEM;
		memcpy(both, name->p, name->n);
		both[name->n] = '=';
		if (value->n)
			memcpy(both + name->n + 1, value->p, value->n);
		rc = sv_argvec_add(out, both, name->n + value->n + 1);
		free(both);
	}
	return rc;
}

int sv_environ_build(const struct sv_work *w, struct sv_argvec *out)
{
	const struct sv_env *e = &w->sh->policy->env;
	struct sv_argvec theirs = { 0 };
	int rc = sv_argvec_read(&w->t, w->call.args[w->call.nr == SYS_execveat ? 3 : 2], &theirs);

	for (int i = 0; rc == 0 && i < theirs.argc; i++)
		if (sv_environ_passes(e, theirs.v[i]))
			rc = sv_argvec_add(out, (const char *)theirs.v[i].p, theirs.v[i].n);
	sv_argvec_free(&theirs);
	return rc < 0 ? rc : add_set(e, out);
}
