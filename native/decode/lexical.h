/* lexical.h - what can be said of a name without asking the kernel. */
#ifndef SV_DECODE_LEXICAL_H
#define SV_DECODE_LEXICAL_H

#include "decode/roles.h"

/* Plain names between single slashes, none of them "." or "..", so that joining
 * them to a folder's path is no guess. The empty text is plain. */
bool sv_plain_names(const char *rest);
/* Does AT_EMPTY_PATH mean the start itself? */
bool sv_names_start(const struct sv_pathname *name, uint64_t flags);
/* Names through which the supervisor's own /proc folder could answer. */
bool sv_leads_to_proc(const char *path);
/* Drops the last component; false when none is left to drop. */
bool sv_drop_last(struct sv_pathname *name);

#endif
