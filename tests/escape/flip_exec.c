/* flip_exec.c - the path of execve flips between an allowed and a forbidden
 * program. Hit: the forbidden one came to run. */
#include "spawn.h"

int main(int argc, char **argv)
{
	struct race r;
	struct flip f;
	struct spawn s;
	char name[] = "target";
	char *args[] = { name, NULL };
	pthread_t t;

	race_usage(argc, 4, "flip_exec TRIES ALLOWED FORBIDDEN");
	race_begin(&r, argv[1]);
	flip_init(&f, race_shared(), argv[2], argv[3]);
	spawn_init(&s);
	s.path = (const char *)(uintptr_t)f.buf;
	s.argv = args;
	t = race_thread(flip_run, &f);
	while (race_more(&r))
		spawn_once(&r, &s);
	f.stop = 1;
	pthread_join(t, NULL);
	return race_end(&r);
}
