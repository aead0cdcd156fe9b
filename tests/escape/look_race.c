/* look_race.c - what is looked at changes while the call is being judged: the bytes of
 * its name ("flip"), a link on the way ("swap"), or the descriptor that it is asked
 * about, which leads to the forbidden file by O_PATH alone ("fd"). Allowed and
 * forbidden are told apart by the sizes that are shown. */
#include "swap.h"

#include <linux/stat.h>

enum { SIZE_ALLOWED = 8, SIZE_FORBIDDEN = 10 };

static struct {
	int good, bad, slot;
	volatile int stop;
} fds;

static void *dup_run(void *arg)
{
	uint32_t seed = 362436069u;

	(void)arg;
	while (!fds.stop) {
		if (dup2(fds.bad, fds.slot) < 0)
			race_fail("dup2");
		race_dwell(&seed);
		if (dup2(fds.good, fds.slot) < 0)
			race_fail("dup2");
		race_dwell(&seed);
	}
	return NULL;
}

static void judge(struct race *r, long rc, long long size)
{
	if (rc == 0 && size == SIZE_FORBIDDEN)
		r->hits++;
	else if (rc != 0 || size != SIZE_ALLOWED)
		r->other++;
}

/* One look, in turns by different calls. */
static void look(struct race *r, int dir, const char *path, int flags)
{
	struct statx x = { 0 };
	struct stat st = { 0 };
	long rc;

	if (r->tries & 1) {
		rc = syscall(SYS_statx, dir, path, flags, STATX_SIZE, &x);
		judge(r, rc, (long long)x.stx_size);
	} else {
		rc = syscall(SYS_newfstatat, dir, path, &st, flags);
		judge(r, rc, (long long)st.st_size);
	}
}

static void run_flip(struct race *r, char **argv)
{
	struct flip f;
	pthread_t t;

	flip_init(&f, race_shared(), argv[2], argv[3]);
	t = race_thread(flip_run, &f);
	while (race_more(r))
		look(r, AT_FDCWD, (const char *)f.buf, 0);
	f.stop = 1;
	pthread_join(t, NULL);
}

static void run_swap(struct race *r, char **argv)
{
	struct swap *s = malloc(sizeof(*s));
	char path[RACE_BUF + 8];
	pthread_t t;

	if (!s)
		race_fail("malloc");
	swap_init(s, argv[4], argv[2], argv[3], false);
	snprintf(path, sizeof(path), "%s/data", s->link);
	t = race_thread(swap_run, s);
	while (race_more(r))
		look(r, AT_FDCWD, path, 0);
	swap_end(s, t);
}

static void run_fd(struct race *r, char **argv)
{
	pthread_t t;

	fds.good = open(argv[2], O_RDONLY | O_CLOEXEC);
	fds.bad = open(argv[3], O_PATH | O_CLOEXEC);
	if (fds.good < 0 || fds.bad < 0)
		race_fail("open");
	fds.slot = dup2(fds.good, 100);
	t = race_thread(dup_run, NULL);
	while (race_more(r))
		look(r, fds.slot, "", AT_EMPTY_PATH);
	fds.stop = 1;
	pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	struct race r;

	race_usage(argc, 6, "look_race TRIES ALLOWED FORBIDDEN WORK flip|swap|fd");
	race_begin(&r, argv[1]);
	if (race_is(argc, argv, 5, "flip"))
		run_flip(&r, argv);
	else if (race_is(argc, argv, 5, "swap"))
		run_swap(&r, argv);
	else
		run_fd(&r, argv);
	return race_end(&r);
}
