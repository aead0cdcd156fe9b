/* signal.h - decisions about signals inside the tree, and how signals are called.
 *
 * As decide.h: the strictest rule that matches wins, of equally strict ones that with
 * the first id; but what no rule speaks of is allowed, as the kernel keeps signals inside
 * the tree. No allocation, no lock, no system call. */
#ifndef SV_MATCH_SIGNAL_H
#define SV_MATCH_SIGNAL_H

#include "policy/blob.h"

enum { SV_SIGNALS = 64, SV_SIGNAL_NAME = 20, SV_SIGNAL_TORN = -1 };

/* who: one or more enum sv_who; several, where a call is for a group: then every rule
 * that speaks of any of them matches. Returns what is sent: sig itself, another signal,
 * 0 = nothing; SV_SIGNAL_TORN where two rules of a group steer to different ones. */
int sv_match_signal(const struct sv_policy *p, int sig, uint32_t who, struct sv_match *out);

/* Whether a rule speaks of this signal (0 = of any) to one of these. */
bool sv_match_signal_asked(const struct sv_policy *p, int sig, uint32_t who);

/* "KILL", "RTMIN+3"; out has SV_SIGNAL_NAME bytes. Returns out. */
const char *sv_signal_name(int sig, char *out);

#endif
