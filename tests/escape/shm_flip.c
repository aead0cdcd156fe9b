/* shm_flip.c - the path lies in memory that another process maps too: freezing
 * every thread of the caller does not hold it still. "anon" shares by fork,
 * "memfd" maps one memfd twice, "vmw" writes with process_vm_writev. */
#include "race.h"

#include <sys/uio.h>

static void write_from_outside(struct flip *f, pid_t victim)
{
	uint32_t seed = 521288629u;
	const char *text[2] = { f->two, f->one };

	for (unsigned int i = 0; !f->stop; i++) {
		struct iovec from = { (char *)(uintptr_t)text[i & 1] + f->from, f->len };
		struct iovec to = { (char *)(uintptr_t)f->buf + f->from, f->len };

		if (process_vm_writev(victim, &from, 1, &to, 1, 0) < 0)
			_exit(3);
		race_dwell(&seed);
	}
}

static void other_process(struct flip *f, int memfd, bool vmw)
{
	pid_t victim = getppid();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(RACE_ALARM);
	if (memfd >= 0) {
		f->buf = mmap(NULL, RACE_BUF, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
		if (f->buf == MAP_FAILED)
			_exit(3);
	}
	if (vmw)
		write_from_outside(f, victim);
	else
		flip_run(f);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct race r;
	struct flip *f = race_shared();
	char *buf;
	pid_t other;
	int memfd = -1;
	bool vmw = race_is(argc, argv, 4, "vmw");

	race_usage(argc, 4, "shm_flip TRIES ALLOWED FORBIDDEN [anon|memfd|vmw]");
	race_begin(&r, argv[1]);
	if (race_is(argc, argv, 4, "memfd")) {
		memfd = memfd_create("path", MFD_CLOEXEC);
		if (memfd < 0 || ftruncate(memfd, RACE_BUF))
			race_fail("memfd_create");
		buf = mmap(NULL, RACE_BUF, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	} else {
		buf = mmap(NULL, RACE_BUF, PROT_READ | PROT_WRITE,
			   (vmw ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1, 0);
	}
	if (buf == MAP_FAILED)
		race_fail("mmap");
	flip_init(f, buf, argv[2], argv[3]);
	other = fork();
	if (other == 0)
		other_process(f, memfd, vmw);
	while (race_more(&r))
		race_judge(&r, (int)syscall(SYS_openat, AT_FDCWD, buf, O_RDONLY | O_CLOEXEC));
	if (other < 0 || waitpid(other, NULL, WNOHANG) != 0) {
		fprintf(stderr, "nobody flipped\n");
		return 3;
	}
	f->stop = 1;
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	return race_end(&r);
}
