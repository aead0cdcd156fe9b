/* dirfd_dup2.c - the folder that a relative path starts at changes under the
 * call: a sibling dup2s other folders onto the descriptor ("dup2"), or changes
 * the shared working directory ("cwd"). RELATIVE leads from GOOD to allowed and
 * from BAD to forbidden content. BAD need not be forbidden itself: with
 * "../secret/data" two folders of the workspace do. */
#include "race.h"

static struct {
	int good, bad, slot;
	bool cwd;
	volatile int stop;
} dirs;

static void *swap(void *arg)
{
	uint32_t seed = 123456789u;

	(void)arg;
	while (!dirs.stop) {
		if (dirs.cwd ? fchdir(dirs.bad) : dup2(dirs.bad, dirs.slot) < 0)
			race_fail("swap");
		race_dwell(&seed);
		if (dirs.cwd ? fchdir(dirs.good) : dup2(dirs.good, dirs.slot) < 0)
			race_fail("swap");
		race_dwell(&seed);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct race r;
	pthread_t t;

	race_usage(argc, 5, "dirfd_dup2 TRIES GOOD BAD RELATIVE [dup2|cwd]");
	race_begin(&r, argv[1]);
	dirs.good = open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
	dirs.bad = open(argv[3], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirs.good < 0 || dirs.bad < 0)
		race_fail("open folders");
	dirs.cwd = race_is(argc, argv, 5, "cwd");
	dirs.slot = dup2(dirs.good, 100);
	if (fchdir(dirs.good))
		race_fail("fchdir");
	t = race_thread(swap, NULL);
	while (race_more(&r))
		race_judge(&r, openat(dirs.cwd ? AT_FDCWD : dirs.slot, argv[4],
				      O_RDONLY | O_CLOEXEC));
	dirs.stop = 1;
	pthread_join(t, NULL);
	return race_end(&r);
}
