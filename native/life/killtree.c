/* killtree.c - finds descendants by the parent links in /proc. */
#include "life/killtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct task {
	pid_t pid;
	pid_t ppid;
	bool zombie;
	bool ours;
};

struct tasks {
	struct task *v;
	size_t n;
	size_t cap;
};

static bool read_task(const char *name, struct task *t)
{
	char path[300], text[512];
	const char *p;
	char state;
	int ppid, fd;
	ssize_t k;

	snprintf(path, sizeof(path), "/proc/%s/stat", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	k = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (k <= 0)
		return false;
	text[k] = 0;
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %c %d", &state, &ppid) != 2)
		return false;
	t->pid = (pid_t)atoi(name);
	t->ppid = ppid;
	t->zombie = state == 'Z' || state == 'X';
	t->ours = false;
	return true;
}

static int collect(struct tasks *all)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		struct task t;

		if (e->d_name[0] < '1' || e->d_name[0] > '9' || !read_task(e->d_name, &t))
			continue;
		if (all->n == all->cap) {
			size_t cap = all->cap ? 2 * all->cap : 256;
			struct task *v = realloc(all->v, cap * sizeof(*v));

			if (!v)
				break;
			all->v = v;
			all->cap = cap;
		}
		all->v[all->n++] = t;
	}
	closedir(d);
	return 0;
}

static bool is_ours(const struct tasks *all, pid_t pid, pid_t root)
{
	size_t i;

	if (pid == root)
		return true;
	for (i = 0; i < all->n; i++)
		if (all->v[i].pid == pid)
			return all->v[i].ours;
	return false;
}

/* Parents may come after children in the listing: repeat until nothing new. */
static void mark(struct tasks *all, pid_t root)
{
	bool more = true;

	while (more) {
		size_t i;

		more = false;
		for (i = 0; i < all->n; i++) {
			struct task *t = &all->v[i];

			if (!t->ours && is_ours(all, t->ppid, root)) {
				t->ours = true;
				more = true;
			}
		}
	}
}

int sv_kill_descendants(pid_t root, int sig)
{
	struct tasks all = { NULL, 0, 0 };
	int rc = collect(&all), met = 0;
	size_t i;

	if (rc < 0)
		return rc;
	mark(&all, root);
	for (i = 0; i < all.n; i++) {
		if (!all.v[i].ours || all.v[i].zombie)
			continue;
		met++;
		if (sig)
			kill(all.v[i].pid, sig);
	}
	free(all.v);
	return met;
}
