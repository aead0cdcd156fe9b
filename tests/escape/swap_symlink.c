/* swap_symlink.c - a component of the path is exchanged while the call is being
 * judged: a link to the allowed folder against a link to the forbidden one, or
 * ("folder") a real folder against such a link. */
#include "swap.h"

int main(int argc, char **argv)
{
	struct race r;
	struct swap *s = malloc(sizeof(*s));
	char path[RACE_BUF + 8];
	pthread_t t;

	race_usage(argc, 5, "swap_symlink TRIES ALLOWED_DIR FORBIDDEN_DIR WORK [link|folder]");
	race_begin(&r, argv[1]);
	if (!s)
		race_fail("malloc");
	swap_init(s, argv[4], argv[2], argv[3], race_is(argc, argv, 5, "folder"));
	snprintf(path, sizeof(path), "%s/data", s->link);
	t = race_thread(swap_run, s);
	while (race_more(&r))
		race_judge(&r, (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
	swap_end(s, t);
	return race_end(&r);
}
