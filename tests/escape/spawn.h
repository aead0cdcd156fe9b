/* spawn.h - runs a program whose execve somebody races, and hears from it.
 *
 * Every other child shares our memory (clone with CLONE_VM) and every other one
 * is forked; what flips lies in shared memory, so it flips for both. */
#ifndef SPAWN_H
#define SPAWN_H

#include "race.h"

enum { SPAWN_FD = 9 };		/* where target.c reports */

struct spawn {
	const char *path;
	char **argv;
	int hear;		/* our end of its pipe */
};

static inline void spawn_init(struct spawn *s)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) || dup2(ends[1], SPAWN_FD) < 0)
		race_fail("pipe2");
	close(ends[1]);
	s->hear = ends[0];
}

static inline int spawn_child(void *arg)
{
	struct spawn *s = arg;
	char *env[] = { NULL };

	syscall(SYS_execve, s->path, s->argv, env);
	_exit(55);
}

static inline void spawn_once(struct race *r, struct spawn *s)
{
	char said[16];
	ssize_t n;
	pid_t pid;

	if (r->tries & 1) {
		pid = race_clone_vm(spawn_child, s);
	} else {
		pid = fork();
		if (pid == 0)
			spawn_child(s);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		race_fail("child");
	n = read(s->hear, said, sizeof(said));
	if (n <= 0)
		r->other++;
	for (ssize_t i = 0; i < n; i++)
		r->hits += said[i] == 'F';
}

#endif
