/* flip_rename.c - one path of rename or link flips. "from": the source (hit:
 * the call succeeded and the allowed source still stands, so the forbidden file
 * was carried off); "to": the destination (hit: the allowed destination did not
 * appear, so the forbidden file was replaced); "link": the source of a hard
 * link (hit: the new name holds the forbidden content). OTHER is a third name
 * in the writable area. */
#include "race.h"

enum op { FROM, TO, LINK };

struct names {
	const char *allowed;
	const char *forbidden;
	const char *other;
};

static void make(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	if (write(fd, text, 1) != 1)
		race_fail(path);
	close(fd);
}

static long call(enum op op, const void *flipping, const struct names *n, long i)
{
	if (op == LINK)
		return syscall(SYS_linkat, AT_FDCWD, flipping, AT_FDCWD, n->other, 0);
	if (op == TO)
		return syscall(SYS_renameat2, AT_FDCWD, n->other, AT_FDCWD, flipping, 0);
#ifdef SYS_rename
	if (i & 1)
		return syscall(SYS_rename, flipping, n->other);
#endif
	(void)i;
	return syscall(SYS_renameat2, AT_FDCWD, flipping, AT_FDCWD, n->other, 0);
}

/* After a success: what was reached, and everything put back in its place. */
static void judge(struct race *r, enum op op, const struct names *n)
{
	bool there = access(n->allowed, F_OK) == 0;

	if (op == LINK) {
		race_judge(r, open(n->other, O_RDONLY | O_CLOEXEC));
		unlink(n->other);
		return;
	}
	if (op == FROM && there) {
		r->hits++;
		make(n->forbidden, "F");
	} else if (op == TO && !there) {
		r->hits++;
	}
	make(op == FROM ? n->allowed : n->other, "A");
}

int main(int argc, char **argv)
{
	struct race r;
	struct flip f;
	struct names n;
	enum op op;
	pthread_t t;

	race_usage(argc, 6, "flip_rename TRIES ALLOWED FORBIDDEN OTHER from|to|link");
	race_begin(&r, argv[1]);
	n = (struct names){ argv[2], argv[3], argv[4] };
	op = race_is(argc, argv, 5, "to") ? TO : race_is(argc, argv, 5, "link") ? LINK : FROM;
	flip_init(&f, race_shared(), n.allowed, n.forbidden);
	make(op == TO ? n.other : n.allowed, "A");
	t = race_thread(flip_run, &f);
	while (race_more(&r)) {
		if (op == TO)
			unlink(n.allowed);
		if (call(op, (const void *)f.buf, &n, r.tries))
			r.other++;
		else
			judge(&r, op, &n);
	}
	f.stop = 1;
	pthread_join(t, NULL);
	unlink(n.allowed);
	unlink(n.other);
	return race_end(&r);
}
