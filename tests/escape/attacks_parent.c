/* attacks_parent.c - ways at the supervisor itself, which is our parent, at its
 * threads and at the guardian above it. What is tried would change nothing: it
 * sets what is already set. */
#include "attacks.h"

#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

static int of_parent(const struct tree *t, const char *name, int flags)
{
	char path[PATH_MAX];
	char c;
	int fd;

	path_of(path, "/proc/%d/%s", (int)t->parent, name);
	fd = open(path, flags | O_CLOEXEC);
	/* An open that later reads nothing is no reach; mem at 0 gives EIO. */
	return fd >= 0 && (read(fd, &c, 1) >= 0 || errno == EIO) ? REACHED : BLOCKED;
}

int at_parent_environ(const struct tree *t)
{
	return of_parent(t, "environ", O_RDONLY);
}

int at_parent_maps(const struct tree *t)
{
	return of_parent(t, "maps", O_RDONLY);
}

int at_parent_auxv(const struct tree *t)
{
	return of_parent(t, "auxv", O_RDONLY);
}

int at_parent_mem(const struct tree *t)
{
	return of_parent(t, "mem", O_RDWR);
}

int at_parent_oom(const struct tree *t)
{
	char path[PATH_MAX];
	int fd;

	path_of(path, "/proc/%d/oom_score_adj", (int)t->parent);
	fd = open(path, O_RDWR);
	return fd < 0 ? BLOCKED : worked(write(fd, "0", 1));
}

int at_parent_fd(const struct tree *t)
{
	char path[PATH_MAX];
	char link_[PATH_MAX];

	for (int fd = 0; fd < 64; fd++) {
		path_of(path, "/proc/%d/fd/%d", (int)t->parent, fd);
		if (readlink(path, link_, sizeof(link_)) > 0 || open(path, O_RDONLY) >= 0)
			return REACHED;
	}
	return BLOCKED;
}

int at_parent_root(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/proc/%d/root%.4000s", (int)t->parent, t->data);
	return reads_secret(path);
}

int at_parent_cwd(const struct tree *t)
{
	char path[PATH_MAX];

	path_of(path, "/proc/%d/cwd/../../../../../../../../../../../..%.4000s", (int)t->parent,
		t->data);
	return reads_secret(path);
}

int at_parent_ptrace(const struct tree *t)
{
	if (ptrace(PTRACE_SEIZE, t->parent, 0, 0))
		return BLOCKED;
	return REACHED;
}

int at_parent_kill(const struct tree *t)
{
	return worked(kill(t->parent, 0));
}

int at_parent_sigcont(const struct tree *t)
{
	return worked(kill(t->parent, SIGCONT));
}

int at_parent_pidfd(const struct tree *t)
{
	int pidfd = (int)syscall(SYS_pidfd_open, t->parent, 0);

	if (pidfd < 0)
		return BLOCKED;
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 ||
	       syscall(SYS_pidfd_getfd, pidfd, 0, 0) >= 0;
}

int at_parent_prlimit(const struct tree *t)
{
	struct rlimit now;

	if (prlimit(t->parent, RLIMIT_NOFILE, NULL, &now))
		return BLOCKED;
	return worked(prlimit(t->parent, RLIMIT_NOFILE, &now, NULL));
}

int at_parent_affinity(const struct tree *t)
{
	cpu_set_t set;

	if (sched_getaffinity(t->parent, sizeof(set), &set))
		return BLOCKED;
	return worked(sched_setaffinity(t->parent, sizeof(set), &set));
}

int at_parent_scheduler(const struct tree *t)
{
	struct sched_param p = { 0 };

	return worked(sched_setscheduler(t->parent, SCHED_OTHER, &p));
}

int at_parent_priority(const struct tree *t)
{
	errno = 0;
	return worked(setpriority(PRIO_PROCESS, (id_t)t->parent,
				  getpriority(PRIO_PROCESS, (id_t)t->parent)));
}

int at_parent_ioprio(const struct tree *t)
{
	return worked(syscall(SYS_ioprio_set, 1, t->parent, 0));
}

static int reached_memory(ssize_t n)
{
	return n >= 0 || errno == EFAULT ? REACHED : BLOCKED;
}

int at_parent_vm_readv(const struct tree *t)
{
	char c;
	struct iovec here = { &c, 1 };
	struct iovec there = { (void *)4096, 1 };

	return reached_memory(process_vm_readv(t->parent, &here, 1, &there, 1, 0));
}

int at_parent_vm_writev(const struct tree *t)
{
	char c = 0;
	struct iovec here = { &c, 1 };
	struct iovec there = { (void *)4096, 1 };

	return reached_memory(process_vm_writev(t->parent, &here, 1, &there, 1, 0));
}

int at_parent_move_pages(const struct tree *t)
{
	/* None of its pages: only whether one may. */
	return worked(syscall(SYS_move_pages, t->parent, 0UL, NULL, NULL, NULL, 0));
}

/* The first thread of the supervisor that the attack succeeds on. A thread's
 * number is a name as good as the process's. */
static int any_thread(const struct tree *t, int (*attack)(const struct tree *t, pid_t tid))
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d;
	int verdict = BLOCKED;

	path_of(path, "/proc/%d/task", (int)t->parent);
	d = opendir(path);
	while (d && verdict == BLOCKED && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			verdict = attack(t, (pid_t)strtol(e->d_name, NULL, 10));
	if (d)
		closedir(d);
	return verdict;
}

static int thread_environ(const struct tree *t, pid_t tid)
{
	char path[PATH_MAX];
	char c;
	int fd;

	path_of(path, "/proc/%d/environ", (int)tid);
	fd = open(path, O_RDONLY);
	if (fd < 0) {
		path_of(path, "/proc/%d/task/%d/environ", (int)t->parent, (int)tid);
		fd = open(path, O_RDONLY);
	}
	return fd >= 0 && read(fd, &c, 1) >= 0 ? REACHED : BLOCKED;
}

int at_parent_thread_environ(const struct tree *t)
{
	return any_thread(t, thread_environ);
}

static int thread_affinity(const struct tree *t, pid_t tid)
{
	cpu_set_t set;

	(void)t;
	if (sched_getaffinity(tid, sizeof(set), &set))
		return BLOCKED;
	return worked(sched_setaffinity(tid, sizeof(set), &set));
}

int at_parent_thread_affinity(const struct tree *t)
{
	return any_thread(t, thread_affinity);
}

static int thread_kill(const struct tree *t, pid_t tid)
{
	return worked(syscall(SYS_tgkill, t->parent, tid, 0));
}

int at_parent_thread_kill(const struct tree *t)
{
	return any_thread(t, thread_kill);
}

/* A handle of its folder in /proc, got without any question asked. */
int at_parent_opath_environ(const struct tree *t)
{
	char path[PATH_MAX];
	char c;
	int dir;
	int fd;

	path_of(path, "/proc/%d", (int)t->parent);
	dir = open(path, O_PATH | O_DIRECTORY);
	fd = openat(dir, "environ", O_RDONLY);
	return fd >= 0 && read(fd, &c, 1) >= 0 ? REACHED : BLOCKED;
}

/* Everything of this user, the supervisor with it. */
int at_priority_of_user(const struct tree *t)
{
	(void)t;
	errno = 0;
	return worked(setpriority(PRIO_USER, 0, getpriority(PRIO_USER, 0)));
}

static pid_t guardian(const struct tree *t)
{
	char path[PATH_MAX];
	int pid = 0;
	FILE *f;

	path_of(path, "/proc/%d/stat", (int)t->parent);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*d (%*[^)]) %*c %d", &pid) != 1)
		pid = 0;
	if (f)
		fclose(f);
	return pid;
}

static int of_guardian(const struct tree *t, int (*attack)(const struct tree *t))
{
	struct tree *up = malloc(sizeof(*up));

	if (!up)
		return ABSENT;
	*up = *t;
	up->parent = guardian(t);
	return up->parent > 0 ? attack(up) : ABSENT;
}

int at_guardian_kill(const struct tree *t)
{
	return of_guardian(t, at_parent_kill);
}

int at_guardian_environ(const struct tree *t)
{
	return of_guardian(t, at_parent_environ);
}

int at_guardian_prlimit(const struct tree *t)
{
	return of_guardian(t, at_parent_prlimit);
}
