/* flip_how.c - openat2: its flags live in memory, where no filter sees them.
 * "flags" turns O_RDONLY into O_RDWR|O_TRUNC on a file that may only be read
 * (hit: a writable descriptor, or the file cut to nothing); "path" flips the
 * path beside an unchanged open_how. */
#include "race.h"

#include <linux/openat2.h>

static struct {
	volatile uint64_t *flags;
	volatile int stop;
} how_flip;

static void *flip_flags(void *arg)
{
	uint32_t seed = 88675123u;

	(void)arg;
	while (!how_flip.stop) {
		*how_flip.flags = O_RDWR | O_TRUNC | O_CLOEXEC;
		race_dwell(&seed);
		*how_flip.flags = O_RDONLY | O_CLOEXEC;
		race_dwell(&seed);
	}
	return NULL;
}

/* A hit spoils the file; its content is put back through the descriptor that
 * the hit gave, so that the next try can win again. */
static void judge_flags(struct race *r, int fd)
{
	struct stat st;
	bool writable;

	if (fd < 0 || fstat(fd, &st)) {
		r->other++;
		return;
	}
	writable = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
	if (writable || st.st_size == 0)
		r->hits++;
	if (writable && st.st_size == 0 && write(fd, "A\n", 2) != 2)
		r->other++;
	close(fd);
}

int main(int argc, char **argv)
{
	struct race r;
	struct flip f;
	struct open_how *how = race_shared();
	bool flags = !race_is(argc, argv, 4, "path");
	pthread_t t;

	race_usage(argc, 4, "flip_how TRIES ALLOWED FORBIDDEN [flags|path]");
	race_begin(&r, argv[1]);
	flip_init(&f, (char *)how + RACE_BUF, argv[2], argv[3]);
	how->flags = O_RDONLY | O_CLOEXEC;
	how_flip.flags = (volatile uint64_t *)&how->flags;
	t = flags ? race_thread(flip_flags, NULL) : race_thread(flip_run, &f);
	while (race_more(&r)) {
		const void *path = flags ? argv[3] : (const void *)f.buf;
		long fd = syscall(SYS_openat2, AT_FDCWD, path, how, sizeof(*how));

		if (flags)
			judge_flags(&r, (int)fd);
		else
			race_judge(&r, (int)fd);
	}
	f.stop = 1;
	how_flip.stop = 1;
	pthread_join(t, NULL);
	return race_end(&r);
}
