/* image.h - which program file an execve really starts. */
#ifndef SV_BROKER_IMAGE_H
#define SV_BROKER_IMAGE_H

#include "broker/argvec.h"
#include "broker/work.h"

struct sv_image {
	int fd;			/* O_PATH of the file that will be mapped; owned by the caller */
	dev_t dev;
	ino_t ino;
	bool script;
	int pin;		/* 1 + the rule that says which bytes it has, 0 = none */
	int against;		/* 1 + the rule that refuses it for its digest, or would, observing */
	const char *why;	/* not allowed: a sentence, where w->match alone says too little */
	struct sv_argvec head;	/* script: what the kernel puts before argv[1:] */
};

/* Follows "#!" lines from the program pinned in place (its fd is taken) to the
 * file that will be mapped; path is the name it was called by. Every
 * interpreter on the way is judged into w->match: > 0 = one of them is not
 * allowed. -errno as execve(2) would give; -EACCES for a program that cannot
 * be read, as it could not be supervised. */
int sv_image_find(struct sv_work *w, struct sv_place *place, const char *path,
		  struct sv_image *out);
void sv_image_free(struct sv_image *image);

#endif
