/* flip_path.c - the path string of open and openat changes while the call is
 * being judged: by a sibling thread, or ("peer") by a CLONE_VM process that no
 * thread count shows. */
#include "race.h"

int main(int argc, char **argv)
{
	struct race r;
	struct flip f;
	pthread_t t = 0;
	pid_t peer = 0;

	race_usage(argc, 4, "flip_path TRIES ALLOWED FORBIDDEN [thread|peer]");
	race_begin(&r, argv[1]);
	flip_init(&f, race_shared(), argv[2], argv[3]);
	if (race_is(argc, argv, 4, "peer"))
		peer = race_clone_vm(flip_peer, &f);
	else
		t = race_thread(flip_run, &f);
	while (race_more(&r)) {
		const void *path = (const void *)f.buf;
		long fd;

#ifdef SYS_open
		if (r.tries & 1)
			fd = syscall(SYS_open, path, O_RDONLY | O_CLOEXEC);
		else
#endif
			fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
		race_judge(&r, (int)fd);
	}
	f.stop = 1;
	if (t)
		pthread_join(t, NULL);
	if (peer > 0)
		waitpid(peer, NULL, 0);
	return race_end(&r);
}
