/* attacks_allowed.c - no attacks: the same calls where the rules allow them. A
 * supervisor that refuses everything would pass all other rows. */
#include "attacks.h"

#include <linux/fs.h>
#include <sys/resource.h>

static void in_work(char *out, const struct tree *t, const char *name)
{
	path_of(out, "%.4000s/%s", t->work, name);
}

/* An allowed file starts with 'A'. */
static int allowed_text(int fd)
{
	char c = 0;

	return fd >= 0 && pread(fd, &c, 1, 0) == 1 && c == 'A' && close(fd) == 0;
}

int at_ok_create(const struct tree *t)
{
	char link_[PATH_MAX];
	char file[PATH_MAX];
	int fd;

	in_work(link_, t, "o1");
	in_work(file, t, "good/o1");
	if (symlink("good/o1", link_))
		return BLOCKED;
	fd = open(link_, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || write(fd, "A", 1) != 1)
		return BLOCKED;
	return allowed_text(open(file, O_RDONLY)) && unlink(link_) == 0 && unlink(file) == 0;
}

int at_ok_dotdot(const struct tree *t)
{
	char path[PATH_MAX];

	in_work(path, t, "nest/deep/../..//./good/data");
	return allowed_text(open(path, O_RDONLY));
}

int at_ok_rename_folder(const struct tree *t)
{
	char from[PATH_MAX];
	char to[PATH_MAX];
	char file[PATH_MAX];

	in_work(from, t, "good");
	in_work(to, t, "o2");
	in_work(file, t, "o2/data");
	return rename(from, to) == 0 && allowed_text(open(file, O_RDONLY)) && rename(to, from) == 0;
}

int at_ok_exchange(const struct tree *t)
{
	char one[PATH_MAX];
	char two[PATH_MAX];

	in_work(one, t, "data");
	in_work(two, t, "good/data");
	return worked(syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE));
}

int at_ok_hardlink(const struct tree *t)
{
	char from[PATH_MAX];
	char to[PATH_MAX];

	in_work(from, t, "data");
	in_work(to, t, "o3");
	return link(from, to) == 0 && allowed_text(open(to, O_RDONLY)) && unlink(to) == 0;
}

int at_ok_tmpfile(const struct tree *t)
{
	char from[PATH_MAX];
	char to[PATH_MAX];
	int fd = open(t->work, O_TMPFILE | O_RDWR, 0600);

	/* Not every file system has it. */
	if (fd < 0)
		return errno == EOPNOTSUPP ? ABSENT : BLOCKED;
	path_of(from, "/proc/self/fd/%d", fd);
	in_work(to, t, "o4");
	if (write(fd, "A", 1) != 1 || linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW))
		return BLOCKED;
	return allowed_text(open(to, O_RDONLY)) && unlink(to) == 0;
}

int at_ok_opath_dirfd(const struct tree *t)
{
	int dir = open(t->work, O_PATH | O_DIRECTORY);

	return allowed_text(openat(dir, "good/data", O_RDONLY)) && fchdir(dir) == 0 &&
	       allowed_text(open("data", O_RDONLY));
}

int at_ok_proc_fd(const struct tree *t)
{
	char path[PATH_MAX];
	int fd;

	in_work(path, t, "data");
	fd = open(path, O_RDONLY);
	path_of(path, "/proc/self/fd/%d", fd);
	return fd >= 0 && allowed_text(open(path, O_RDWR));
}

int at_ok_metadata(const struct tree *t)
{
	char path[PATH_MAX];
	struct stat st;

	in_work(path, t, "data");
	return chmod(path, 0640) == 0 && stat(path, &st) == 0 && (st.st_mode & 0777) == 0640 &&
	       chown(path, getuid(), getgid()) == 0 && utimensat(AT_FDCWD, path, NULL, 0) == 0 &&
	       fchmod(open(path, O_RDONLY), 0600) == 0;
}

int at_ok_signal_child(const struct tree *t)
{
	int status = 0;
	pid_t pid = fork();

	(void)t;
	if (pid == 0) {
		alarm(5);
		pause();
		_exit(0);
	}
	return kill(pid, SIGTERM) == 0 && waitpid(pid, &status, 0) == pid &&
	       WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
}

int at_ok_own_limits(const struct tree *t)
{
	struct rlimit now;
	cpu_set_t set;

	(void)t;
	return prlimit(0, RLIMIT_NOFILE, NULL, &now) == 0 &&
	       prlimit(getpid(), RLIMIT_NOFILE, &now, NULL) == 0 &&
	       setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)) == 0 &&
	       sched_getaffinity(0, sizeof(set), &set) == 0 &&
	       sched_setaffinity(0, sizeof(set), &set) == 0;
}

/* An open done for us by somebody else must not show us somebody else. */
int at_ok_own_proc(const struct tree *t)
{
	static const char *const files[] = { "/proc/self/stat", "/proc/thread-self/stat" };
	char text[64];

	(void)t;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open(files[i], O_RDONLY);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

		if (n <= 0)
			return BLOCKED;
		text[n] = 0;
		errno = 0;
		if (strtol(text, NULL, 10) != getpid())
			return BLOCKED;
	}
	return REACHED;
}

int at_ok_socketpair(const struct tree *t)
{
	int ends[2];
	char c = 0;

	(void)t;
	return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && send(ends[0], "A", 1, 0) == 1 &&
	       recv(ends[1], &c, 1, 0) == 1 && c == 'A';
}

/* Through a link that leads into /proc/self, to a descriptor with a number that
 * only we have. */
int at_ok_proc_link(const struct tree *t)
{
	char path[PATH_MAX];
	char link_[PATH_MAX];
	int fd;
	int verdict;

	in_work(path, t, "data");
	in_work(link_, t, "o5");
	fd = open(path, O_RDONLY);
	if (fd < 0 || dup2(fd, 700) != 700 || symlink("/proc/self/fd", link_))
		return BLOCKED;
	in_work(path, t, "o5/700");
	verdict = allowed_text(open(path, O_RDONLY));
	verdict = verdict && allowed_text(open("//proc/self/fd/700", O_RDONLY));
	unlink(link_);
	return verdict;
}

static void wait_at_fifo(const char *fifo)
{
	alarm(8);
	_exit(open(fifo, O_RDONLY) < 0);
}

/* Many opens that wait for their other end must not hold up anybody else's. */
int at_ok_beside_fifos(const struct tree *t)
{
	enum { MANY = 40 };
	char fifo[PATH_MAX];
	char path[PATH_MAX];
	pid_t pids[MANY];
	int verdict;

	in_work(fifo, t, "fifo");
	in_work(path, t, "data");
	if (mkfifo(fifo, 0600))
		return BLOCKED;
	for (int i = 0; i < MANY; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			wait_at_fifo(fifo);
	}
	usleep(300000);
	alarm(4);
	verdict = allowed_text(open(path, O_RDONLY));
	for (int i = 0; i < MANY; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	unlink(fifo);
	return verdict;
}

static void break_lease(const char *path, int i)
{
	alarm(8);
	if (i % 4 == 0)
		_exit(truncate(path, 0) < 0);
	_exit(open(path, i % 4 == 1 ? O_RDONLY : i % 4 == 2 ? O_RDWR : O_WRONLY | O_TRUNC) < 0);
}

/* A lease makes others wait for its owner, who may be one of us: that must not
 * hold up anybody else's open either. */
int at_ok_beside_leases(const struct tree *t)
{
	enum { MANY = 40 };
	char leased[PATH_MAX];
	char path[PATH_MAX];
	int fd;
	int verdict;

	in_work(leased, t, "leased");
	in_work(path, t, "data");
	signal(SIGIO, SIG_IGN);
	close(open(leased, O_WRONLY | O_CREAT, 0600));
	fd = open(leased, O_RDONLY);
	if (fd < 0 || fcntl(fd, F_SETLEASE, F_WRLCK))
		return BLOCKED;
	for (int i = 0; i < MANY; i++)
		if (fork() == 0)
			break_lease(leased, i);
	usleep(300000);
	alarm(4);
	verdict = allowed_text(open(path, O_RDONLY)) && waitpid(-1, NULL, WNOHANG) == 0;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	for (int i = 0, status; i < MANY; i++)
		verdict = wait(&status) > 0 && status == 0 && verdict;
	unlink(leased);
	return verdict;
}
