/* flip_unlink.c - the path of unlink and unlinkat flips. A call that succeeds
 * while the allowed file still stands took the forbidden one: a hit. */
#include "race.h"

static bool make(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	bool ok = fd >= 0 && write(fd, text, 1) == 1;

	if (fd >= 0)
		close(fd);
	return ok;
}

int main(int argc, char **argv)
{
	struct race r;
	struct flip f;
	pthread_t t;

	race_usage(argc, 4, "flip_unlink TRIES ALLOWED FORBIDDEN");
	race_begin(&r, argv[1]);
	flip_init(&f, race_shared(), argv[2], argv[3]);
	if (!make(argv[2], "A"))
		race_fail(argv[2]);
	t = race_thread(flip_run, &f);
	while (race_more(&r)) {
		const void *path = (const void *)f.buf;
		long rc;

#ifdef SYS_unlink
		if (r.tries & 1)
			rc = syscall(SYS_unlink, path);
		else
#endif
			rc = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
		if (rc) {
			r.other++;
		} else if (access(argv[2], F_OK) == 0) {
			r.hits++;
			make(argv[3], "F");
		} else if (!make(argv[2], "A")) {
			race_fail(argv[2]);
		}
	}
	f.stop = 1;
	pthread_join(t, NULL);
	unlink(argv[2]);
	return race_end(&r);
}
