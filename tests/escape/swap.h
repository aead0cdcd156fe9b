/* swap.h - two names that change places for as long as a race lasts.
 *
 * "link" and "spare" lie in a writable folder. They are exchanged at once with
 * RENAME_EXCHANGE; where that is refused by renaming in three steps; where that
 * is refused too (links only) by removing and making the link anew. */
#ifndef SWAP_H
#define SWAP_H

#include "race.h"

#include <linux/fs.h>

struct swap {
	char link[RACE_BUF];	/* opened through */
	char spare[RACE_BUF];
	char aside[RACE_BUF];
	const char *allowed;
	const char *forbidden;
	volatile int stop;
	volatile long done;
	int way;
};

static inline void swap_path(char *out, const char *dir, const char *name)
{
	if (snprintf(out, RACE_BUF, "%s/%s", dir, name) >= RACE_BUF)
		race_fail("path too long");
}

/* Makes WORK/link and WORK/spare: two links, or ("folder") a real folder with
 * one file and a link. What already stands there is kept. */
static inline void swap_init(struct swap *s, const char *work, const char *allowed,
			     const char *forbidden, bool folder)
{
	char data[RACE_BUF + 8];
	int fd;

	memset(s, 0, sizeof(*s));
	s->allowed = allowed;
	s->forbidden = forbidden;
	swap_path(s->link, work, "link");
	swap_path(s->spare, work, "spare");
	swap_path(s->aside, work, "aside");
	if (symlink(forbidden, s->spare) && errno != EEXIST)
		race_fail(s->spare);
	if (!folder) {
		if (symlink(allowed, s->link) && errno != EEXIST)
			race_fail(s->link);
		return;
	}
	/* a run before may have ended with the two the other way round */
	if (readlink(s->link, data, sizeof(data)) > 0)
		syscall(SYS_renameat2, AT_FDCWD, s->link, AT_FDCWD, s->spare, RENAME_EXCHANGE);
	if (mkdir(s->link, 0700) && errno != EEXIST)
		race_fail(s->link);
	snprintf(data, sizeof(data), "%s/data", s->link);
	fd = open(data, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "A\n", 2) != 2)
		race_fail(data);
	close(fd);
}

static inline int swap_once(struct swap *s, const char *target)
{
	switch (s->way) {
	case 0:
		return (int)syscall(SYS_renameat2, AT_FDCWD, s->link, AT_FDCWD, s->spare,
				    RENAME_EXCHANGE);
	case 1:
		return rename(s->link, s->aside) || rename(s->spare, s->link) ||
		       rename(s->aside, s->spare);
	case 2:
		unlink(s->aside);
		return symlink(target, s->aside) || rename(s->aside, s->link);
	default:
		return unlink(s->link) || symlink(target, s->link);
	}
}

static inline void *swap_run(void *arg)
{
	struct swap *s = arg;
	uint32_t seed = 362436069u;

	for (unsigned int i = 0; !s->stop; i++) {
		if (swap_once(s, i & 1 ? s->allowed : s->forbidden) == 0)
			s->done++;
		else if (s->way < 3)
			s->way++;
		race_dwell(&seed);
	}
	return NULL;
}

/* Ends the swapping. A race in which nothing ever moved proves nothing. */
static inline void swap_end(struct swap *s, pthread_t t)
{
	s->stop = 1;
	pthread_join(t, NULL);
	fprintf(stderr, "swaps %ld way %d\n", s->done, s->way);
	if (s->done == 0)
		exit(3);
	unlink(s->aside);
}

#endif
