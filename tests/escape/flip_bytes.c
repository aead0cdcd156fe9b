/* flip_bytes.c - the bytes of one program are written anew, good and forbidden ones
 * by turns, while its execve is being judged: through write and through a mapping.
 * The kernel lets nobody start a file that is open for writing, and nobody write
 * to one that runs; what is raced is the time between the look and the start. */
#include "spawn.h"

struct bytes {
	char path[RACE_BUF];
	char *one;
	char *two;
	size_t n;
	volatile int stop;
	volatile long done;
};

static char *slurp(const char *path, size_t *n)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *p;

	if (fd < 0 || fstat(fd, &st))
		race_fail(path);
	*n = (size_t)st.st_size;
	p = malloc(*n);
	if (!p || read(fd, p, *n) != (ssize_t)*n)
		race_fail(path);
	close(fd);
	return p;
}

static bool put(struct bytes *b, const char *from, bool mapped)
{
	int fd = open(b->path, O_RDWR | O_CLOEXEC);
	bool ok = false;
	void *p;

	if (fd < 0)
		return false;	/* it runs right now */
	if (mapped) {
		p = mmap(NULL, b->n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		if (p == MAP_FAILED)
			race_fail("mmap");
		memcpy(p, from, b->n);
		munmap(p, b->n);
		return true;
	}
	ok = pwrite(fd, from, b->n, 0) == (ssize_t)b->n;
	close(fd);
	return ok;
}

static void *flip(void *arg)
{
	struct bytes *b = arg;
	uint32_t seed = 88675123u;

	for (unsigned int i = 0; !b->stop; i++) {
		b->done += put(b, i & 1 ? b->one : b->two, i & 2);
		race_dwell(&seed);
		usleep(race_random(&seed) % 512);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct bytes b;
	char name[] = "target";
	char *args[] = { name, NULL };
	struct spawn s = { .path = b.path, .argv = args };
	struct race r;
	size_t n2;
	pthread_t t;
	int fd;

	race_usage(argc, 5, "flip_bytes TRIES ALLOWED FORBIDDEN WORK");
	race_begin(&r, argv[1]);
	snprintf(b.path, sizeof(b.path), "%s/pinned", argv[4]);
	b.one = slurp(argv[2], &b.n);
	b.two = slurp(argv[3], &n2);
	if (b.n != n2)
		race_fail("programs of different sizes");
	fd = open(b.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (fd < 0 || write(fd, b.one, b.n) != (ssize_t)b.n)
		race_fail(b.path);
	close(fd);
	spawn_init(&s);
	s.path = b.path;
	t = race_thread(flip, &b);
	while (race_more(&r))
		spawn_once(&r, &s);
	b.stop = 1;
	pthread_join(t, NULL);
	fprintf(stderr, "writes %ld\n", b.done);
	return b.done ? race_end(&r) : 3;
}
