/* attacks_change.c - ways to move the secret to where it may be read, or to
 * change the secret folder. Each undoes its success. */
#include "attacks.h"

#include <linux/fs.h>
#include <sys/un.h>

static void in_work(char *out, const struct tree *t, const char *name)
{
	path_of(out, "%.4000s/%s", t->work, name);
}

static void in_secret(char *out, const struct tree *t, const char *name)
{
	path_of(out, "%.4000s/%s", t->secret, name);
}

/* 1 if the just made link gives the secret; takes it away again. */
static int linked(long rc, const char *link)
{
	int verdict = rc ? BLOCKED : reads_secret(link);
	int err = errno;

	unlink(link);
	errno = err;
	return verdict;
}

int at_hardlink(const struct tree *t)
{
	char link_[PATH_MAX];

	in_work(link_, t, "h1");
	return linked(link(t->data, link_), link_);
}

int at_hardlink_proc_fd(const struct tree *t)
{
	char link_[PATH_MAX];
	char from[PATH_MAX];
	int fd = open(t->data, O_PATH);

	in_work(link_, t, "h2");
	path_of(from, "/proc/self/fd/%d", fd);
	return linked(linkat(AT_FDCWD, from, AT_FDCWD, link_, AT_SYMLINK_FOLLOW), link_);
}

int at_hardlink_empty_path(const struct tree *t)
{
	char link_[PATH_MAX];

	in_work(link_, t, "h3");
	return linked(linkat(open(t->data, O_PATH), "", AT_FDCWD, link_, AT_EMPTY_PATH), link_);
}

static int moved(const char *from, const char *to, const char *data)
{
	int verdict;
	int err;

	if (rename(from, to))
		return BLOCKED;
	verdict = reads_secret(data);
	err = errno;
	if (rename(to, from))
		perror(from);
	errno = err;
	return verdict;
}

int at_rename_file(const struct tree *t)
{
	char to[PATH_MAX];

	in_work(to, t, "r1");
	return moved(t->data, to, to);
}

int at_rename_folder(const struct tree *t)
{
	char to[PATH_MAX];
	char data[PATH_MAX];

	in_work(to, t, "r2");
	in_work(data, t, "r2/data");
	return moved(t->secret, to, data);
}

/* The folder between the workspace and the secret part inside it. */
int at_rename_ancestor(const struct tree *t)
{
	char from[PATH_MAX];
	char to[PATH_MAX];
	char data[PATH_MAX];

	in_work(from, t, "nest");
	in_work(to, t, "r3");
	in_work(data, t, "r3/deep/secret/data");
	return moved(from, to, data);
}

int at_exchange_folder(const struct tree *t)
{
	char with[PATH_MAX];
	char data[PATH_MAX];
	int verdict;

	in_work(with, t, "r4");
	in_work(data, t, "r4/data");
	if (mkdir(with, 0700))
		return ABSENT;
	if (syscall(SYS_renameat2, AT_FDCWD, t->secret, AT_FDCWD, with, RENAME_EXCHANGE)) {
		int err = errno;

		rmdir(with);
		errno = err;
		return BLOCKED;
	}
	verdict = reads_secret(data);
	syscall(SYS_renameat2, AT_FDCWD, t->secret, AT_FDCWD, with, RENAME_EXCHANGE);
	rmdir(with);
	return verdict;
}

static int made(long rc, const char *path)
{
	if (rc < 0)
		return BLOCKED;
	if (unlink(path))
		rmdir(path);
	return REACHED;
}

int at_create_in_secret(const struct tree *t)
{
	char path[PATH_MAX];

	in_secret(path, t, "new1");
	return made(open(path, O_WRONLY | O_CREAT, 0600), path);
}

int at_create_dangling(const struct tree *t)
{
	char target[PATH_MAX];
	char link_[PATH_MAX];
	int verdict;

	in_secret(target, t, "new2");
	in_work(link_, t, "d1");
	if (symlink(target, link_))
		return ABSENT;
	verdict = made(open(link_, O_WRONLY | O_CREAT, 0600), target);
	unlink(link_);
	return verdict;
}

int at_mkdir_in_secret(const struct tree *t)
{
	char path[PATH_MAX];

	in_secret(path, t, "new3");
	return made(mkdir(path, 0700), path);
}

int at_symlink_in_secret(const struct tree *t)
{
	char path[PATH_MAX];

	in_secret(path, t, "new4");
	return made(symlink("x", path), path);
}

int at_mkfifo_in_secret(const struct tree *t)
{
	char path[PATH_MAX];

	in_secret(path, t, "new5");
	return made(mkfifo(path, 0600), path);
}

int at_link_into_secret(const struct tree *t)
{
	char from[PATH_MAX];
	char path[PATH_MAX];

	in_work(from, t, "data");
	in_secret(path, t, "new6");
	return made(link(from, path), path);
}

int at_rename_into_secret(const struct tree *t)
{
	char from[PATH_MAX];
	char path[PATH_MAX];

	in_work(from, t, "m1");
	in_secret(path, t, "new7");
	close(open(from, O_WRONLY | O_CREAT, 0600));
	return made(rename(from, path), path);
}

int at_tmpfile_into_secret(const struct tree *t)
{
	char from[PATH_MAX];
	char path[PATH_MAX];
	int fd = open(t->work, O_TMPFILE | O_RDWR, 0600);

	in_secret(path, t, "new8");
	path_of(from, "/proc/self/fd/%d", fd);
	return made(linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW), path);
}

int at_bind_in_secret(const struct tree *t)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	/* A socket's name is short, so it is given from the folder beside. */
	if (chdir(t->work))
		return ABSENT;
	strcpy(name.sun_path, "../area_b/new9");
	return made(bind(fd, (struct sockaddr *)&name, sizeof(name)), name.sun_path);
}

int at_unlink_secret(const struct tree *t)
{
	if (unlink(t->victim))
		return BLOCKED;
	close(open(t->victim, O_WRONLY | O_CREAT, 0600));
	return REACHED;
}

int at_rmdir_secret(const struct tree *t)
{
	char path[PATH_MAX];

	in_secret(path, t, "sub");
	if (rmdir(path) == 0)
		return REACHED;
	/* ENOTEMPTY is the folder's own answer: the call was let through. */
	return errno == ENOTEMPTY ? REACHED : BLOCKED;
}

int at_truncate_secret(const struct tree *t)
{
	return worked(truncate(t->victim, 1));
}
