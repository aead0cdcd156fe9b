/* watch.h - execs of tasks that a debugger of the tree holds; private to the tracer.
 *
 * A task has one tracer, so the exec stop is not ours then. It is the debugger's,
 * and only a ptrace call of the debugger ends it: every such call, and every
 * notified call of the task itself, comes here first, and the tracer's thread
 * looks once a millisecond besides. Until one of them has compared the program
 * with what was judged, the debugger cannot let it run. Should the debugger die
 * in that moment, the program runs until the first of the other two; when it is
 * the wrong one then, the whole session ends. */
#ifndef SV_EFFECT_WATCH_H
#define SV_EFFECT_WATCH_H

#include "effect/tracer.h"

/* The task could not be seized: lets its exec go, to be looked at. False = it is
 * nobody's of the tree, or no stop is certain; *why says it then. */
bool sv_watch_begin(struct sv_tracer *t, struct sv_task *task, const char **why);
/* Looks at all; on the tracer's thread. */
void sv_watch_look(struct sv_tracer *t);
/* The tracer ends. */
void sv_watch_end(struct sv_tracer *t);

#endif
