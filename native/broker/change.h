/* change.h - one change of an existing object's mode, owner, times, length or attributes:
 * done on a pin, or on the copy of it that a rule's tree gets. */
#ifndef SV_BROKER_CHANGE_H
#define SV_BROKER_CHANGE_H

#include "broker/work.h"

enum sv_change_kind {
	SV_CHANGE_MODE,
	SV_CHANGE_OWNER,
	SV_CHANGE_TIMES,
	SV_CHANGE_LENGTH,
	SV_CHANGE_ATTR
};

struct sv_change {
	enum sv_change_kind kind;
	mode_t mode;
	uid_t owner;
	gid_t group;
	bool now;		/* times: the present one for both */
	struct timespec times[2];
	int64_t length;
	struct sv_attr attr;	/* value owned */
};

/* On an O_PATH or other descriptor of ours. 0 or -errno. */
int sv_change_apply(int fd, const struct sv_change *c);
/* Pins name[0] into place[0], in a tree where it lies there; called: as sv_shadow_pin(). */
int sv_change_pin(struct sv_work *w, char *called);
/* Judges place[0] for ops, under the name it was called by in a tree, if any. False = refused
 * or steered, and answered, or nobody waits. What is steered and lies in the original alone
 * is copied to the tree, with the change made to the copy. named: was it reached by name? */
bool sv_change_judge(struct sv_work *w, uint32_t ops, const char *called, bool named,
		     struct sv_change *c);

#endif
