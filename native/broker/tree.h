/* tree.h - calls with two names, where writes of one or both go to a tree.
 *
 * To programs the tree is a file system of its own: within it names are moved and linked
 * below the folder that was opened before the run; across its border it is EXDEV, on which
 * they copy. What the original holds stays there, and counts as there. */
#ifndef SV_BROKER_TREE_H
#define SV_BROKER_TREE_H

#include "broker/work.h"

/* Pins the folder of name[i] into place[i], or the deepest one that is there, where what
 * is missing (*missing) may lie in a tree. 0 or -errno. */
int sv_tree_pin(struct sv_work *w, int i, bool *missing);
/* rename with both folders pinned so: does it concern a tree? Then it was answered. */
bool sv_tree_rename(struct sv_work *w, const bool missing[2]);
/* link: place[0] is the pinned object, found in a tree under the path `called` (NULL: not),
 * place[1] the pinned folder of the new name, as above. */
bool sv_tree_link(struct sv_work *w, const char *called, bool missing);

#endif
