/* attacks_identity.c - what a target may not do as whom it has become, tried
 * through a supervisor that still may; and callers that it cannot look into. */
#include "attacks.h"

#include <linux/capability.h>
#include <pthread.h>

enum { NOBODY = 65534, OTHER = 12345 };

static const char private[] = "private";

/* A file of the workspace that only its owner may read. The workspace becomes
 * the working directory, as the folders above it may be closed to nobody. */
static bool private_file(const struct tree *t, uid_t owner)
{
	int fd;

	if (chdir(t->work))
		return false;
	fd = open(private, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "F", 1) != 1 || fchown(fd, owner, owner))
		return false;
	return close(fd) == 0;
}

static bool become_nobody(void)
{
	return setresuid(NOBODY, NOBODY, NOBODY) == 0;
}

static bool root(void)
{
	return geteuid() == 0;
}

int at_dropped_uid(const struct tree *t)
{
	if (!root() || !private_file(t, 0) || !become_nobody())
		return ABSENT;
	return reads_secret(private);
}

int at_dropped_fsuid(const struct tree *t)
{
	if (!root() || !private_file(t, 0))
		return ABSENT;
	syscall(SYS_setfsuid, NOBODY);
	return reads_secret(private);
}

int at_dropped_caps(const struct tree *t)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
	if (!root() || !private_file(t, OTHER) || syscall(SYS_capset, &head, none))
		return ABSENT;
	return reads_secret(private);
}

/* By the bare call, which changes one thread only. */
static void *dropped_thread(void *arg)
{
	static int verdict;

	(void)arg;
	verdict = ABSENT;
	if (syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0)
		verdict = reads_secret(private);
	return &verdict;
}

int at_dropped_uid_thread(const struct tree *t)
{
	pthread_t thread;
	void *out = NULL;

	if (!root() || !private_file(t, 0) ||
	    pthread_create(&thread, NULL, dropped_thread, NULL))
		return ABSENT;
	pthread_join(thread, &out);
	return *(int *)out;
}

/* As nobody in a folder of root's: nothing may be made there. */
int at_dropped_uid_create(const struct tree *t)
{
	if (!root() || chdir(t->work) || mkdir("rootly", 0755) || !become_nobody())
		return ABSENT;
	return worked(open("rootly/file", O_WRONLY | O_CREAT, 0600));
}

int at_dropped_uid_chown(const struct tree *t)
{
	if (!root() || !private_file(t, 0) || !become_nobody())
		return ABSENT;
	return worked(chown(private, NOBODY, NOBODY)) || worked(chmod(private, 0666));
}

int at_dropped_uid_unlink(const struct tree *t)
{
	if (!root() || !private_file(t, 0) || chmod(".", 0755) || !become_nobody())
		return ABSENT;
	return worked(unlink(private)) || worked(truncate(private, 0));
}

/* The other side: what nobody may read can still be read. */
int at_ok_dropped_uid(const struct tree *t)
{
	char c = 0;
	int fd;

	if (!root() || chdir(t->work) || !become_nobody())
		return ABSENT;
	fd = open("data", O_RDONLY);
	return fd >= 0 && read(fd, &c, 1) == 1 && c == 'A';
}

static bool copy_self(const char *to)
{
	char buf[65536];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	ssize_t n = -1;

	while (from >= 0 && fd >= 0 && (n = read(from, buf, sizeof(buf))) > 0)
		if (write(fd, buf, (size_t)n) != n)
			return false;
	return n == 0 && fchmod(fd, 0111) == 0 && close(fd) == 0;
}

/* A program that may be run but not read hides its memory from its own user. */
int at_unreadable_program(const struct tree *t)
{
	char path[PATH_MAX];
	char top[PATH_MAX];
	char line[64] = "";
	int ends[2];
	pid_t pid;

	path_of(path, "%.4000s/unreadable", t->work);
	path_of(top, "%s", t->work);
	*strrchr(top, '/') = 0;
	if (!copy_self(path) || pipe2(ends, O_CLOEXEC))
		return ABSENT;
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], 1);
		execl(path, path, top, "open", (char *)NULL);
		_exit(errno);
	}
	waitpid(pid, NULL, 0);
	close(ends[1]);
	unlink(path);
	return read(ends[0], line, sizeof(line) - 1) > 0 && strstr(line, "REACHED") ? REACHED :
										     BLOCKED;
}
