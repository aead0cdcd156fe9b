/* exec_verify.c - what stands in /proc at the exec stop is what will run: the
 * memory is new, has one thread, and nothing of the program has run yet. */
#include "base/fd.h"
#include "effect/task.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Longest interpreter prefix that a kernel builds, with room to spare. */
enum { SLACK = 64 * 1024, MAPS_MAX = 96 * 1024, LINK_MAX_BYTES = PATH_MAX + 16 };

static const char DELETED[] = " (deleted)";

static int open_proc(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The whole file, at most cap bytes; -EFBIG when there is more. */
static ssize_t slurp(pid_t pid, const char *name, void *buf, size_t cap)
{
	cleanup_fd int fd = open_proc(pid, name);
	size_t n = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t got;
		char more;

		if (n == cap)
			return read(fd, &more, 1) == 0 ? (ssize_t)n : -EFBIG;
		got = read(fd, (char *)buf + n, cap - n);
		if (got < 0)
			return -errno;
		if (got == 0)
			return (ssize_t)n;
		n += (size_t)got;
	}
}

static const char *check_image(const struct sv_exec_plan *plan, pid_t tgid)
{
	char path[40];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", tgid);
	if (fstatat(AT_FDCWD, path, &st, 0) < 0)
		return "the new program could not be identified";
	if (st.st_dev != plan->dev || st.st_ino != plan->ino)
		return "another file than the one judged was about to run";
	return NULL;
}

/* The kernel keeps writers from the file of a running program; some versions did
 * not (Linux 6.11), and there its bytes could change behind the digest. */
static bool writable(pid_t tgid)
{
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", tgid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

const char *sv_exec_open_image(const struct sv_exec_plan *plan, pid_t tgid, int *fd)
{
	struct stat st;

	*fd = open_proc(tgid, "exe");
	if (*fd < 0 || fstat(*fd, &st) < 0)
		return "the new program could not be read";
	if (st.st_dev != plan->dev || st.st_ino != plan->ino)
		return "another file than the one judged was about to run";
	return writable(tgid) ? "this kernel lets the file of a running program be written to" : NULL;
}

/* The path string that the kernel used, as it told the new program. */
static const char *read_execfn(pid_t tgid, char *buf, size_t cap, size_t *len)
{
	uint64_t aux[128];
	ssize_t n = slurp(tgid, "auxv", aux, sizeof(aux));
	uint64_t addr = 0;
	const char *end;

	for (ssize_t i = 0; i + 1 < n / (ssize_t)sizeof(aux[0]) && aux[i] != AT_NULL; i += 2)
		if (aux[i] == AT_EXECFN)
			addr = aux[i + 1];
	if (n <= 0 || !addr)
		return "the path as called could not be read";
	n = sv_peek(tgid, addr, buf, cap);
	end = n > 0 ? memchr(buf, 0, (size_t)n) : NULL;
	if (!end)
		return "the path as called could not be read";
	*len = (size_t)(end - buf);
	return NULL;
}

static const char *check_execfn(const struct sv_exec_plan *plan, pid_t tgid)
{
	bool steer = plan->kind == SV_PLAN_STEER;
	const char *want = steer ? plan->new_path : plan->execfn;
	size_t want_len = steer ? plan->new_path_len : plan->execfn_len;
	char seen[PATH_MAX + 64];
	size_t n;
	const char *why;

	if (!want)
		return NULL;
	why = read_execfn(tgid, seen, sizeof(seen), &n);
	if (why)
		return why;
	if (n != want_len || memcmp(seen, want, n) != 0)
		return "the path was changed after it was judged";
	return NULL;
}

struct image {
	char path[LINK_MAX_BYTES];
	size_t n;
	struct sv_str id;	/* device and inode columns of its lines in maps */
};

static int read_link(pid_t tgid, char *buf, size_t cap, size_t *len)
{
	char path[40];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", tgid);
	n = readlink(path, buf, cap);
	if (n <= 0 || (size_t)n == cap)
		return -ENAMETOOLONG;
	*len = (size_t)n;
	return 0;
}

/* Only a newline is escaped in maps, so "\012" may be one or stand for itself. */
static size_t unescape(struct sv_str s, uint8_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (s.n - i >= 4 && memcmp(s.p + i, "\\012", 4) == 0) {
			out[n++] = '\n';
			i += 3;
		} else {
			out[n++] = s.p[i];
		}
	}
	return n;
}

static bool same(struct sv_str a, const void *p, size_t n)
{
	return a.n == n && memcmp(a.p, p, n) == 0;
}

/* start-end perms offset DEV INODE   PATH; id gets the two, path the last. */
static bool split_line(struct sv_str line, struct sv_str *id, struct sv_str *path)
{
	size_t at[6] = { 0 };
	size_t i = 0;

	for (int f = 1; f < 6; f++) {
		while (i < line.n && line.p[i] != ' ')
			i++;
		if (f < 5)
			i++;
		at[f] = i;
	}
	if (i > line.n)
		return false;
	*id = (struct sv_str){ line.p + at[3], at[5] - at[3] };
	while (i < line.n && line.p[i] == ' ')
		i++;
	*path = (struct sv_str){ line.p + i, line.n - i };
	return true;
}

/* The stack, the vdso and the like: no file behind them, inode 0. */
static bool fileless(struct sv_str id, struct sv_str path)
{
	if (path.n == 0)
		return true;
	return path.p[0] == '[' && id.n >= 2 && memcmp(id.p + id.n - 2, " 0", 2) == 0;
}

static bool nameless(struct sv_str path)
{
	size_t n = sizeof(DELETED) - 1;

	return path.p[0] != '/' || (path.n > n && memcmp(path.p + path.n - n, DELETED, n) == 0);
}

static const char *check_line(const struct sv_exec_plan *plan, const struct sv_tracer_ops *ops,
			      void *ctx, struct image *img, struct sv_str line)
{
	uint8_t plain[LINK_MAX_BYTES];
	struct sv_str id, path, real;

	if (!split_line(line, &id, &path) || path.n > sizeof(plain))
		return "the new program's memory map could not be read";
	if (fileless(id, path))
		return NULL;
	real = (struct sv_str){ plain, unescape(path, plain) };
	if (same(path, img->path, img->n) || same(real, img->path, img->n)) {
		if (!img->id.p)
			img->id = id;
		return same(id, img->id.p, img->id.n) ? NULL :
		       "two files took turns under the program's name";
	}
	if (nameless(path))
		return "a file without a name was mapped into the new program";
	if (!ops->may_map(ctx, plan, path) || (real.n != path.n && !ops->may_map(ctx, plan, real)))
		return "a loader that may not run was mapped into the new program";
	return NULL;
}

static const char *check_maps(const struct sv_exec_plan *plan, pid_t tgid,
			      const struct sv_tracer_ops *ops, void *ctx, char *buf)
{
	struct image img = { .n = 0 };
	char again[LINK_MAX_BYTES];
	const char *why = NULL;
	size_t left, n2 = 0;
	ssize_t n;

	if (read_link(tgid, img.path, sizeof(img.path), &img.n) < 0)
		return "the new program's path could not be read";
	n = slurp(tgid, "maps", buf, MAPS_MAX);
	if (n <= 0)
		return "the new program's memory map could not be read";
	left = (size_t)n;
	for (char *p = buf; !why && left > 0;) {
		char *end = memchr(p, '\n', left);

		if (!end)
			return "the new program's memory map could not be read";
		why = check_line(plan, ops, ctx, &img,
				 (struct sv_str){ (uint8_t *)p, (size_t)(end - p) });
		left -= (size_t)(end - p) + 1;
		p = end + 1;
	}
	if (!why && (read_link(tgid, again, sizeof(again), &n2) < 0 ||
		     n2 != img.n || memcmp(again, img.path, n2) != 0))
		why = "the program was renamed while it was looked at";
	return why;
}

static struct sv_str after(struct sv_str s, size_t n)
{
	return (struct sv_str){ s.p + n, s.n - n };
}

/* The strings that must stand there: all of argv, or a script's head and then
 * argv without its first string. */
static const char *compare_argv(const struct sv_exec_plan *plan, struct sv_str got)
{
	bool steer = plan->kind == SV_PLAN_STEER;
	struct sv_str want = { (const uint8_t *)(steer ? plan->new_argv : plan->argv),
			       steer ? plan->new_argv_len : plan->argv_len };

	if (want.n > 0 && want.p[want.n - 1] != 0)
		return "the judged arguments are not terminated";
	/* The kernel gives a program without arguments one empty string. */
	if (want.n == 0)
		want = (struct sv_str){ (const uint8_t *)"", 1 };
	if (plan->script) {
		if (!plan->head || got.n < plan->head_len ||
		    memcmp(got.p, plan->head, plan->head_len) != 0)
			return "the interpreter line was changed after it was judged";
		got = after(got, plan->head_len);
		want = after(want, strlen((const char *)want.p) + 1);
	}
	if (!same(got, want.p, want.n))
		return "the arguments were changed after they were judged";
	return NULL;
}

static const char *check_argv(const struct sv_exec_plan *plan, pid_t tgid,
			      struct sv_exec_seen *seen)
{
	size_t len = plan->kind == SV_PLAN_STEER ? plan->new_argv_len : plan->argv_len;
	size_t cap = plan->check_argv || plan->kind == SV_PLAN_STEER ? len + SLACK :
		     sizeof(seen->argv);
	char *buf = malloc(cap);
	const char *why = NULL;
	ssize_t n;

	if (!buf)
		return "no memory to look at the arguments";
	n = slurp(tgid, "cmdline", buf, cap);
	if (n == -EFBIG)
		n = (ssize_t)cap;	/* longer than anything judged: enough to say no */
	if (n < 0) {
		free(buf);
		return "the arguments could not be read";
	}
	seen->n = (size_t)n < sizeof(seen->argv) ? (size_t)n : sizeof(seen->argv);
	memcpy(seen->argv, buf, seen->n);
	if (plan->check_argv || plan->kind == SV_PLAN_STEER)
		why = compare_argv(plan, (struct sv_str){ (uint8_t *)buf, (size_t)n });
	free(buf);
	return why;
}

/* Threads of the caller can write to the strings that were put for the kernel. */
static const char *check_env(const struct sv_exec_plan *plan, pid_t tgid)
{
	size_t cap = plan->new_env_len + 1;
	const char *why = NULL;
	char *buf = malloc(cap);
	ssize_t n;

	if (!buf)
		return "no memory to look at the environment";
	n = slurp(tgid, "environ", buf, cap);
	if (n != -EFBIG && n < 0)
		why = "the environment could not be read";
	else if ((size_t)n != plan->new_env_len || memcmp(buf, plan->new_env, (size_t)n) != 0)
		why = "the environment was changed after it was made";
	free(buf);
	return why;
}

const char *sv_exec_verify(const struct sv_exec_plan *plan, pid_t tgid,
			   const struct sv_tracer_ops *ops, void *ctx, struct sv_exec_seen *seen)
{
	const char *why, *argv_why;
	char *maps;

	seen->n = 0;
	argv_why = check_argv(plan, tgid, seen);
	why = check_image(plan, tgid);
	if (!why)
		why = check_execfn(plan, tgid);
	if (!why && !argv_why && plan->set_env)
		why = check_env(plan, tgid);
	if (why || argv_why)
		return why ? why : argv_why;
	maps = malloc(MAPS_MAX);
	if (!maps)
		return "no memory to look at the new program";
	why = check_maps(plan, tgid, ops, ctx, maps);
	free(maps);
	return why;
}
