/* budget_race.c - many threads use up one limit: how often each call did what it says.
 *
 * budget_race MODE THREADS TRIES: prints "done N", "refused N", "other N". */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *mode;
static int tries;
static atomic_int done, refused, other, first;
static struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
static pthread_barrier_t start;

static int is(const char *name)
{
	return !strcmp(mode, name);
}

static int start_program(void)
{
	static char *const argv[] = { "true", NULL };
	int status;
	pid_t pid = vfork();

	if (pid == 0) {
		execv("/bin/true", argv);
		_exit(errno);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	errno = WEXITSTATUS(status);
	return errno ? -1 : 0;
}

static int call(int thread, int i)
{
	char name[32], old[32];

	snprintf(name, sizeof(name), "d/%d-%d", thread, i);
	snprintf(old, sizeof(old), "s/%d-%d", thread, i);
	if (is("open"))
		return open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
	if (is("read"))
		return open("present", O_RDONLY | O_CLOEXEC);
	if (is("mkdir"))
		return mkdir(name, 0700);
	if (is("mknod"))
		return mknod(name, S_IFIFO | 0600, 0);
	if (is("symlink"))
		return symlink("to", name);
	if (is("link"))
		return link("present", name);
	if (is("unlink"))
		return unlink(old);
	if (is("rmdir"))
		return rmdir(old);
	if (is("rename"))	/* over another file */
		return rename(old, name);
	if (is("exec"))
		return start_program();
	if (is("connect")) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		return connect(fd, (const void *)&address, sizeof(address));
	}
	/* one name for all: whoever makes it, and whoever moves something over it */
	if (is("contend"))
		return thread % 2 ? open("d/one", O_CREAT | O_EXCL | O_WRONLY, 0600) : rename(old, "d/one");
	return -1;
}

static void *run(void *arg)
{
	const int thread = *(const int *)arg;
	int i, rc;

	pthread_barrier_wait(&start);
	for (i = 0; i < tries; i++) {
		rc = call(thread, i);
		if (rc >= 0)
			atomic_fetch_add(&done, 1);
		else if (errno == EDQUOT || errno == EAGAIN || errno == EACCES)
			atomic_fetch_add(&refused, 1);
		else if (atomic_fetch_add(&other, 1) == 0)
			atomic_store(&first, errno);
		if (rc > 2 && !is("connect"))
			close(rc);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	enum { MAX = 64 };
	static int number[MAX];
	pthread_t thread[MAX];
	int i, n, listener;

	if (argc != 4)
		return 2;
	mode = argv[1];
	n = atoi(argv[2]);
	tries = atoi(argv[3]);
	if (n < 1 || n > MAX)
		return 2;
	if (is("connect")) {
		listener = socket(AF_UNIX, SOCK_STREAM, 0);
		if (bind(listener, (const void *)&address, sizeof(address)) || listen(listener, 4096))
			return 3;
	}
	pthread_barrier_init(&start, NULL, (unsigned)n);
	for (i = 0; i < n; i++) {
		number[i] = i;
		if (pthread_create(&thread[i], NULL, run, &number[i]))
			return 4;
	}
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	printf("done %d\nrefused %d\nother %d\n", atomic_load(&done), atomic_load(&refused),
	       atomic_load(&other));
	if (atomic_load(&other))
		fprintf(stderr, "%s\n", strerror(atomic_load(&first)));
	return 0;
}
