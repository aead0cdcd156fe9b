/* naive.h - what a naive supervisor asks about, and how it reads its caller. */
#ifndef NAIVE_H
#define NAIVE_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { NONE = -1, CALLS = 16 };

struct call {
	int nr;
	int8_t dir;		/* argument with the dirfd, NONE = the cwd */
	int8_t path;		/* or with the address */
	int8_t dir2;		/* of a second path */
	int8_t path2;		/* NONE = there is none */
};

struct ask {
	int listener;
	const struct call *call;
	struct seccomp_notif n;
	const char *forbidden;
};

static inline bool copy_in(pid_t pid, uint64_t from, void *to, size_t n)
{
	struct iovec here = { to, n };
	struct iovec there = { (void *)(uintptr_t)from, n };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

#endif
