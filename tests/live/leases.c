/* leases.c - files that somebody holds a lease on.
 *
 *   leases crowd CALL N      N processes make CALL on "leased", and wait for us; says whether
 *                            another file was opened within a second meanwhile, how many
 *                            calls were over before the lease was, and what came of them all
 *   leases alarm CALL FLAGS  CALL waits for a lease of our child, and SIGALRM interrupts it
 *   leases hold              takes a lease, says so, and gives it up at the end of stdin
 *   leases call CALL         says "calling", then makes CALL and says what came of it
 *
 * CALL is read, write, cut, nonblock (ways of open) or truncate; with a "/" before it the
 * absolute name is used. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT = 3 };

static atomic_int *about, *over;	/* shared: calls that begin, that have ended */

static char absolute[PATH_MAX];		/* of "leased" */

static int lease(void)
{
	const int fd = open("leased", O_RDONLY);

	signal(SIGIO, SIG_IGN);
	if (fd < 0 || fcntl(fd, F_SETLEASE, F_WRLCK)) {
		perror("leased");
		exit(98);
	}
	return fd;
}

/* 0, or the errno; *flags are those of the descriptor, as far as programs see them. */
static int make(const char *call, int *flags)
{
	const char *name = *call == '/' ? absolute : "leased";

	call += *call == '/';
	const int way = !strcmp(call, "read") ? O_RDONLY : !strcmp(call, "write") ? O_RDWR :
			!strcmp(call, "cut") ? O_WRONLY | O_TRUNC : O_RDONLY | O_NONBLOCK;
	int fd;

	if (!strcmp(call, "truncate"))
		return truncate(name, KEPT) ? errno : 0;
	fd = open(name, way | O_APPEND);
	if (fd < 0)
		return errno;
	*flags = fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK);
	return close(fd) ? errno : 0;
}

static int call_and_count(const char *call)
{
	int flags = 0;

	atomic_fetch_add(about, 1);
	const int err = make(call, &flags);
	atomic_fetch_add(over, 1);
	return err;
}

/* An open of another process, for which nobody waits longer than a second. */
static const char *beside(void)
{
	struct pollfd p = { .events = POLLIN };
	int ends[2];

	if (pipe(ends))
		return "failed";
	if (fork() == 0)
		_exit(write(ends[1], "", open("other", O_RDONLY) >= 0) != 1);
	p.fd = ends[0];
	return poll(&p, 1, 1000) == 1 ? "opened" : "held";
}

static int crowd(const char *call, int n)
{
	const int fd = lease();
	struct stat st;
	int status, early, good = 0;
	const char *said;

	for (int i = 0; i < n; i++)
		if (fork() == 0)
			_exit(call_and_count(call));
	for (int i = 0; i < 500 && atomic_load(about) < n; i++)
		usleep(10000);
	usleep(300000);
	said = beside();
	early = atomic_load(over);
	fcntl(fd, F_SETLEASE, F_UNLCK);
	for (int i = 0; i <= n; i++)	/* the one beside ends well, too */
		good += wait(&status) > 0 && status == 0;
	printf("%s early=%d good=%d size=%ld\n", said, early, good - 1,
	       fstat(fd, &st) ? -1L : (long)st.st_size);
	return 0;
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static pid_t holder(void)
{
	int ends[2];
	char c;
	pid_t pid;

	if (pipe(ends))
		exit(98);
	pid = fork();
	if (pid == 0) {
		const int fd = lease();

		(void)!write(ends[1], "", 1);
		usleep(500000);
		fcntl(fd, F_SETLEASE, F_UNLCK);
		_exit(0);
	}
	close(ends[1]);
	if (read(ends[0], &c, 1) != 1)
		exit(98);
	return pid;
}

static int interrupted(const char *call, int how)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = how };
	struct itimerval every = { { 0, 30000 }, { 0, 30000 } }, none = { { 0, 0 }, { 0, 0 } };
	const pid_t pid = holder();
	int err, flags = 0;

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	err = make(call, &flags);
	setitimer(ITIMER_REAL, &none, NULL);
	printf("%s %s\n", err ? strerrorname_np(err) : "done", alarms ? "alarmed" : "in peace");
	waitpid(pid, NULL, 0);
	return 0;
}

static int hold(void)
{
	const int fd = lease();
	char c;

	puts("held");
	fflush(stdout);
	(void)!read(0, &c, 1);
	return fcntl(fd, F_SETLEASE, F_UNLCK) != 0;
}

static int call_once(const char *call)
{
	int err, flags = 0;

	puts("calling");
	fflush(stdout);
	err = make(call, &flags);
	printf("%s flags=%o\n", err ? strerrorname_np(err) : "done", (unsigned)flags);
	return 0;
}

int main(int argc, char **argv)
{
	atomic_int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				  -1, 0);

	if (shared == MAP_FAILED || !getcwd(absolute, PATH_MAX - 8))
		return 98;
	strcat(absolute, "/leased");
	about = &shared[0];
	over = &shared[1];
	if (argc == 4 && !strcmp(argv[1], "crowd"))
		return crowd(argv[2], atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "alarm"))
		return interrupted(argv[2], strcmp(argv[3], "restart") ? 0 : SA_RESTART);
	if (argc == 2 && !strcmp(argv[1], "hold"))
		return hold();
	if (argc == 3 && !strcmp(argv[1], "call"))
		return call_once(argv[2]);
	return 99;
}
