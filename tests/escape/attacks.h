/* attacks.h - single attempts that need no luck.
 *
 * A row of attacks.def names a function: 0 = blocked with errno telling how,
 * 1 = the forbidden thing was reached, 2 = this machine has no such thing.
 * Each runs in a process of its own, puts back what it changed, and may die. */
#ifndef ATTACKS_H
#define ATTACKS_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKED, REACHED, ABSENT };

/* The tree, as absolute paths, and the supervisor: our parent. */
struct tree {
	char work[PATH_MAX];		/* may do everything here */
	char secret[PATH_MAX];		/* nothing may be done here */
	char data[PATH_MAX];		/* a file of the secret folder */
	char victim[PATH_MAX];		/* another, to be damaged */
	char inner[PATH_MAX];		/* work/nest/deep/secret, forbidden as well */
	char readonly[PATH_MAX];	/* a file that may only be read */
	char forbidden[PATH_MAX];	/* a program that may not run */
	char tool[PATH_MAX];		/* one that may, but not with argv[1] "bad" */
	char allowed[PATH_MAX];		/* one that may run */
	pid_t parent;
};

#define ATTACK(name, native, policy, why) int at_##name(const struct tree *t);
#include "attacks.def"
#undef ATTACK

/* In PATH_MAX bytes: format and arguments as printf. */
void path_of(char *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* 1 if fd gives forbidden content; closes it and keeps errno. */
int holds_secret(long fd);
/* 1 if path opens for reading and gives forbidden content. */
int reads_secret(const char *path);
/* The usual verdict on a call that returns a negative number when it fails. */
int worked(long rc);
/* Runs path; 1 if it reported to have come to run, 'F' or 'A' as said. */
int runs(const char *path, char *const argv[], char as);
/* The same for a call that ends in exec. */
int runs_by(long (*call)(const struct tree *t), const struct tree *t, char as);

#endif
