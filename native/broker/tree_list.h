/* tree_list.h - the second half of a listing: what the tree holds beside the original.
 *
 * A folder's own entries come first, then those that only the tree has, in the order of
 * their names' hashes. Where a listing is lies in the descriptor's offset alone: MARK and
 * the key that comes next. No file system that is listed by hashes gives offsets as large
 * as MARK, nor do those that count. A key depends on the name (and on few others with its
 * hash), so names that come and go meanwhile neither hide others nor let it run for ever. */
#ifndef SV_BROKER_TREE_LIST_H
#define SV_BROKER_TREE_LIST_H

#include "broker/work.h"

/* Is the offset one of the second half? */
bool sv_tree_list_at(int64_t offset);
/* The first offset of the second half. */
int64_t sv_tree_list_start(void);
/* Entries from `offset` on that the tree alone holds of the folder place[0] (a descriptor
 * that can be read), as getdents64 writes them, or getdents (old); what rules deny reading
 * is left out. *next: the offset behind them. Bytes, 0 = the end, or -errno. */
ssize_t sv_tree_list(struct sv_work *w, bool old, int64_t offset, char *buf, size_t room,
		     int64_t *next);

#endif
