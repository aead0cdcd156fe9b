/* attacks.c - runs the rows of attacks.def one by one and prints for each
 * "name blocked|REACHED|absent errno". Exit status 0 whatever was reached.
 *
 *	attacks ROOT [NAME...]	ROOT is the tree that conftest.py makes */
#include "attacks.h"

#include <stdarg.h>
#include <sys/prctl.h>

enum { EACH = 10, REPORT_FD = 9 };

struct outcome {
	int verdict;
	int err;
};

static const struct row {
	const char *name;
	int (*run)(const struct tree *t);
} rows[] = {
#define ATTACK(name, native, policy, why) { #name, at_##name },
#include "attacks.def"
#undef ATTACK
};

void path_of(char *out, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	if (vsnprintf(out, PATH_MAX, format, ap) >= PATH_MAX)
		_exit(2);
	va_end(ap);
}

int holds_secret(long fd)
{
	char c = 0;
	ssize_t n;
	int err;

	if (fd < 0)
		return BLOCKED;
	n = pread((int)fd, &c, 1, 0);
	err = errno;
	close((int)fd);
	errno = n < 0 ? err : 0;
	return n == 1 && c == 'F' ? REACHED : BLOCKED;
}

int reads_secret(const char *path)
{
	return holds_secret(open(path, O_RDONLY | O_CLOEXEC));
}

int worked(long rc)
{
	return rc < 0 ? BLOCKED : REACHED;
}

struct program {
	const char *path;
	char *const *argv;
};

static long plain_exec(const struct program *p)
{
	return execv(p->path, p->argv);
}

/* The child's exec either ends in target.c, which reports, or tells its errno. */
static int hear(pid_t pid, int from, char as)
{
	char said = 0;
	int status = 0;

	if (waitpid(pid, &status, 0) != pid)
		return ABSENT;
	if (read(from, &said, 1) == 1 && said == as)
		return REACHED;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return BLOCKED;
}

static int listen_at(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -1;
	return 0;
}

int runs(const char *path, char *const argv[], char as)
{
	struct program p = { path, argv };
	int ends[2];
	pid_t pid;

	if (listen_at(ends))
		return ABSENT;
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], REPORT_FD);
		plain_exec(&p);
		_exit(errno);
	}
	return hear(pid, ends[0], as);
}

int runs_by(long (*call)(const struct tree *t), const struct tree *t, char as)
{
	int ends[2];
	pid_t pid;

	if (listen_at(ends))
		return ABSENT;
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], REPORT_FD);
		call(t);
		_exit(errno);
	}
	return hear(pid, ends[0], as);
}

static void attempt(const struct row *row, const struct tree *t, int report)
{
	struct outcome o;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(EACH);
	errno = 0;
	o.verdict = row->run(t);
	o.err = errno;
	_exit(write(report, &o, sizeof(o)) != sizeof(o));
}

static void print_row(const struct row *row, const struct outcome *o)
{
	static const char *const words[] = { "blocked", "REACHED", "absent" };

	printf("%s %s %d\n", row->name, words[o->verdict], o->err);
	fflush(stdout);
}

/* A row that died of a signal was stopped by it; the signal stands as 1000 + n.
 * Only the alarm is no answer: that is a hang, shown as such. */
static void one(const struct row *row, const struct tree *t)
{
	struct outcome o = { BLOCKED, 0 };
	int ends[2];
	int status = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		exit(2);
	pid = fork();
	if (pid == 0)
		attempt(row, t, ends[1]);
	close(ends[1]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(2);
	if (read(ends[0], &o, sizeof(o)) != sizeof(o))
		o.err = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : -1;
	close(ends[0]);
	if (o.err == 1000 + SIGALRM)
		printf("%s HANGS %d\n", row->name, o.err);
	else
		print_row(row, &o);
}

static bool asked(const char *name, int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 2;
}

int main(int argc, char **argv)
{
	struct tree *t = calloc(1, sizeof(*t));
	const char *root = argc > 1 ? argv[1] : ".";

	if (argc < 2 || !t) {
		fprintf(stderr, "usage: attacks ROOT [NAME...]\n");
		return 2;
	}
	alarm(600);
	path_of(t->work, "%s/area_a", root);
	path_of(t->secret, "%s/area_b", root);
	path_of(t->data, "%s/area_b/data", root);
	path_of(t->victim, "%s/area_b/victim", root);
	path_of(t->inner, "%s/area_a/nest/deep/secret", root);
	path_of(t->readonly, "%s/readonly/file", root);
	path_of(t->forbidden, "%s/bin/forbidden", root);
	path_of(t->tool, "%s/bin/tool", root);
	path_of(t->allowed, "%s/bin/forbidder", root);
	t->parent = getppid();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (asked(rows[i].name, argc, argv))
			one(&rows[i], t);
	return 0;
}
