/* rlimits.c - prlimit(2), and the capability that goes round it. */
#include "filter/rlimits.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

void sv_rlimits_raise(struct rlimit *old)
{
	struct rlimit all;

	if (getrlimit(RLIMIT_NOFILE, old) < 0)
		return;
	all = (struct rlimit){ old->rlim_max, old->rlim_max };
	setrlimit(RLIMIT_NOFILE, &all);
}

static rlim_t smaller(rlim_t a, uint64_t b)
{
	return b < a ? (rlim_t)b : a;
}

/* Never more than there is: who started us may have been limited himself. */
static int lower(pid_t pid, __rlimit_resource_t what, uint64_t soft, uint64_t hard)
{
	struct rlimit now;

	if (prlimit(pid, what, NULL, &now) < 0)
		return -errno;
	now.rlim_max = smaller(now.rlim_max, hard);
	now.rlim_cur = smaller(smaller(now.rlim_cur, soft), now.rlim_max);
	return prlimit(pid, what, &now, NULL) < 0 ? -errno : 0;
}

int sv_rlimits_set(pid_t pid, const struct rlimit *files, uint64_t open_files, uint64_t file_size,
		   uint64_t cpu)
{
	int rc = 0;

	if (files->rlim_max)
		prlimit(pid, RLIMIT_NOFILE, files, NULL);
	if (open_files != UINT64_MAX)
		rc = lower(pid, RLIMIT_NOFILE, open_files, open_files);
	if (rc == 0 && file_size != UINT64_MAX)
		rc = lower(pid, RLIMIT_FSIZE, file_size, file_size);
	if (rc == 0 && cpu != UINT64_MAX)	/* first SIGXCPU, a second later SIGKILL */
		rc = lower(pid, RLIMIT_CPU, cpu, cpu + 1);
	return rc;
}

int sv_rlimits_keep(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	const uint32_t bit = 1U << CAP_SYS_RESOURCE;

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	if (!((data[0].permitted | data[0].inheritable) & bit))
		return 0;
	data[0].effective &= ~bit;
	data[0].permitted &= ~bit;
	data[0].inheritable &= ~bit;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}
