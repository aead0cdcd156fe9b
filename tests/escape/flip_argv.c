/* flip_argv.c - argv[1] of an allowed program flips between an allowed and a
 * forbidden word: its bytes, or ("ptr") the pointer in the argv array. Hit: the
 * program was given the forbidden word. */
#include "spawn.h"

static struct {
	char *volatile *slot;
	char *good, *bad;
	volatile int stop;
} ptr;

static void *flip_pointer(void *arg)
{
	uint32_t seed = 2718281828u;

	(void)arg;
	while (!ptr.stop) {
		*ptr.slot = ptr.bad;
		race_dwell(&seed);
		*ptr.slot = ptr.good;
		race_dwell(&seed);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct race r;
	struct flip f;
	struct spawn s;
	char **args = race_shared();
	bool pointer = race_is(argc, argv, 5, "ptr");
	pthread_t t;

	race_usage(argc, 5, "flip_argv TRIES GOOD_WORD BAD_WORD TOOL [bytes|ptr]");
	race_begin(&r, argv[1]);
	flip_init(&f, (char *)args + RACE_BUF, argv[2], argv[3]);
	spawn_init(&s);
	s.path = argv[4];
	s.argv = args;
	args[0] = argv[4];
	args[1] = pointer ? argv[2] : (char *)(uintptr_t)f.buf;
	ptr.slot = &args[1];
	ptr.good = argv[2];
	ptr.bad = argv[3];
	t = pointer ? race_thread(flip_pointer, NULL) : race_thread(flip_run, &f);
	while (race_more(&r))
		spawn_once(&r, &s);
	f.stop = 1;
	ptr.stop = 1;
	pthread_join(t, NULL);
	return race_end(&r);
}
