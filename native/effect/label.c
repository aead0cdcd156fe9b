/* label.c - reading and setting the limit. */
#include "effect/label.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static uint32_t bits_of(uint64_t soft, uint64_t hard)
{
	return soft != hard || hard > SV_LABEL_BASE ? SV_LABEL_ALL : (uint32_t)(SV_LABEL_BASE - hard);
}

/* Readable for everybody, where prlimit(2) asks for equal identities. */
static uint32_t read_proc(int proc_fd, pid_t pid)
{
	static const char key[] = "\nMax msgqueue size";
	unsigned long long soft, hard;
	char name[32], text[4096];
	ssize_t n = 0, k;

	snprintf(name, sizeof(name), "%s%d/limits", proc_fd < 0 ? "/proc/" : "", (int)pid);
	cleanup_fd int fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return SV_LABEL_ALL;
	while ((k = read(fd, text + n, sizeof(text) - 1 - (size_t)n)) > 0)
		n += k;
	text[n] = 0;
	char *line = strstr(text, key);
	/* "unlimited" is no number of ours */
	if (!line || sscanf(line + sizeof(key) - 1, "%llu %llu", &soft, &hard) != 2)
		return SV_LABEL_ALL;
	return bits_of(soft, hard);
}

uint32_t sv_label_read(int proc_fd, pid_t pid)
{
	struct rlimit now;

	if (pid <= 0)
		return SV_LABEL_ALL;
	if (prlimit(pid, RLIMIT_MSGQUEUE, NULL, &now) == 0)
		return bits_of(now.rlim_cur, now.rlim_max);
	return errno == EPERM ? read_proc(proc_fd, pid) : SV_LABEL_ALL;
}

static int read_ids(pid_t pid, uid_t *uid, gid_t *gid)
{
	char name[40], line[128];
	unsigned int u[3], g[3];
	int found = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	f = fopen(name, "re");
	while (f && found < 2 && fgets(line, sizeof(line), f))
		found += sscanf(line, "Uid: %u %u %u", &u[0], &u[1], &u[2]) == 3 ||
			 sscanf(line, "Gid: %u %u %u", &g[0], &g[1], &g[2]) == 3;
	if (f)
		fclose(f);
	if (found < 2 || u[0] != u[1] || u[0] != u[2] || g[0] != g[1] || g[0] != g[2])
		return -EPERM;
	*uid = u[0];
	*gid = g[0];
	return 0;
}

/* Without CAP_SYS_RESOURCE, as in most containers, the kernel wants the real ids of
 * both to be the same: this thread takes them on for the one call. The raw calls
 * change one thread, and neither its rights nor what may be done to it. */
static int set_as(pid_t pid, const struct rlimit *new)
{
	const uid_t own_uid = getuid();
	const gid_t own_gid = getgid();
	uid_t uid;
	gid_t gid;
	int rc = read_ids(pid, &uid, &gid);

	if (rc < 0)
		return rc;
	if (syscall(SYS_setresgid, gid, -1, -1) < 0 || syscall(SYS_setresuid, uid, -1, -1) < 0 ||
	    prlimit(pid, RLIMIT_MSGQUEUE, new, NULL) < 0)
		rc = -errno;
	if (syscall(SYS_setresuid, own_uid, -1, -1) < 0 || syscall(SYS_setresgid, own_gid, -1, -1) < 0)
		abort();
	return rc;
}

int sv_label_add(pid_t pid, uint32_t bits)
{
	uint32_t now = sv_label_read(-1, pid), all = now | bits;
	struct rlimit new = { SV_LABEL_BASE - all, SV_LABEL_BASE - all };

	/* What cannot be told apart from all blocks is written as all blocks. */
	if (all == now && all != SV_LABEL_ALL)
		return 0;
	if (prlimit(pid, RLIMIT_MSGQUEUE, &new, NULL) == 0)
		return 0;
	return errno == EPERM ? set_as(pid, &new) : -errno;
}
