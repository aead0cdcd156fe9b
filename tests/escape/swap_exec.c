/* swap_exec.c - what a program's name stands for is exchanged while its execve
 * is being judged: a link to the allowed against one to the forbidden program,
 * or ("script") two scripts with the one and the other as interpreter. */
#include "spawn.h"
#include "swap.h"

static void script(const char *path, const char *interpreter)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (fd < 0 || dprintf(fd, "#!%s\n", interpreter) < 0)
		race_fail(path);
	close(fd);
}

int main(int argc, char **argv)
{
	struct race r;
	struct swap *w = malloc(sizeof(*w));
	struct spawn s;
	char name[] = "target";
	char *args[] = { name, NULL };
	pthread_t t;

	race_usage(argc, 5, "swap_exec TRIES ALLOWED FORBIDDEN WORK [link|script]");
	race_begin(&r, argv[1]);
	if (!w)
		race_fail("malloc");
	swap_init(w, argv[4], argv[2], argv[3], false);
	if (race_is(argc, argv, 5, "script")) {
		script(w->link, argv[2]);
		script(w->spare, argv[3]);
	}
	spawn_init(&s);
	s.path = w->link;
	s.argv = args;
	t = race_thread(swap_run, w);
	while (race_more(&r))
		spawn_once(&r, &s);
	swap_end(w, t);
	return race_end(&r);
}
