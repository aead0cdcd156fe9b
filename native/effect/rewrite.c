/* rewrite.c - one block of memory holds it all: pointers, path, strings. The pointers
 * are those of the arguments, a NULL, those of the environment where it is ours, a NULL. */
#include "effect/rewrite.h"

#include "base/fd.h"
#include "effect/task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* Both classes have a first page for the cookie. */
#define SLOT_SMALL ((size_t)4096)
#define SLOT_BIG ((size_t)4 << 20)
#define SLOTS_SMALL 15u
#define BIG_OFFSET ((uint64_t)1 << 30)

static const struct {
	size_t slot;
	unsigned int slots;
} CLASSES[SV_AREA_CLASSES] = { { SLOT_SMALL, SLOTS_SMALL }, { SLOT_BIG, 1 } };

static int open_mem(pid_t tid, int flags)
{
	char name[40];

	snprintf(name, sizeof(name), "/proc/%d/mem", tid);
	return open(name, flags | O_CLOEXEC);
}

ssize_t sv_peek(pid_t tid, uint64_t addr, void *buf, size_t n)
{
	struct iovec lo = { buf, n }, re = { (void *)(uintptr_t)addr, n };
	ssize_t got = process_vm_readv(tid, &lo, 1, &re, 1, 0);

	if (got < 0 && (errno == EPERM || errno == ENOSYS)) {
		/* Some container profiles have no process_vm_readv. */
		cleanup_fd int fd = open_mem(tid, O_RDONLY);

		if (fd < 0)
			return -errno;
		got = pread(fd, buf, n, (off_t)addr);
	}
	return got < 0 ? -errno : got;
}

int sv_poke(pid_t tid, uint64_t addr, const void *buf, size_t n)
{
	struct iovec lo = { (void *)(uintptr_t)buf, n }, re = { (void *)(uintptr_t)addr, n };
	ssize_t put = process_vm_writev(tid, &lo, 1, &re, 1, 0);

	if (put < 0 && (errno == EPERM || errno == ENOSYS)) {
		cleanup_fd int fd = open_mem(tid, O_WRONLY);

		if (fd < 0)
			return -errno;
		put = pwrite(fd, buf, n, (off_t)addr);
	}
	if (put < 0)
		return -errno;
	return (size_t)put == n ? 0 : -EFAULT;
}

int sv_areas_init(struct sv_areas *a)
{
	uint64_t r;

	memset(a, 0, sizeof(*a));
	if (getrandom(a->cookie, sizeof(a->cookie), 0) != (ssize_t)sizeof(a->cookie) ||
	    getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return -EIO;
	a->base[0] = SV_SCRATCH_LOW + (r % SV_SCRATCH_SPAN & ~(uint64_t)0xffff);
	a->base[1] = a->base[0] + BIG_OFFSET;
	return 0;
}

static bool areas_take(struct sv_areas *a, size_t need, struct sv_area *out)
{
	for (int k = 0; k < SV_AREA_CLASSES; k++) {
		if (need > CLASSES[k].slot)
			continue;
		for (unsigned int i = 0; i < CLASSES[k].slots; i++) {
			if (a->busy[k] & 1u << i)
				continue;
			a->busy[k] |= 1u << i;
			out->map = a->base[k];
			out->map_len = SLOT_SMALL + CLASSES[k].slot * CLASSES[k].slots;
			out->addr = out->map + SLOT_SMALL + i * CLASSES[k].slot;
			out->klass = k;
			out->slot = i;
			return true;
		}
	}
	return false;
}

void sv_areas_give(struct sv_areas *a, struct sv_area *area)
{
	if (area->klass >= 0)
		a->busy[area->klass] &= ~(1u << area->slot);
	memset(area, 0, sizeof(*area));
	area->klass = -2;
}

static bool area_there(const struct sv_areas *a, const struct sv_area *area, pid_t tid)
{
	uint8_t seen[SV_AREA_COOKIE];

	return sv_peek(tid, area->map, seen, sizeof(seen)) == (ssize_t)sizeof(seen) &&
	       memcmp(seen, a->cookie, sizeof(seen)) == 0;
}

int sv_rewrite_park(struct sv_task *task)
{
	const struct sv_exec_plan *p = &task->plan;
	uint64_t all = UINT64_MAX;
	int rc = sv_regs_get(p->tid, &task->parked);

	if (rc < 0)
		return rc;
	if (!sv_regs_parked(&task->parked, p->nr, p->args))
		return -EAGAIN;
	/* A handler must run before the call or after it, never on the way into
	 * a rewritten one. A pending signal then waits as it would natively. */
	if (ptrace(PTRACE_GETSIGMASK, p->tid, sizeof(task->mask), &task->mask) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, p->tid, sizeof(all), &all) < 0)
		return -errno;
	task->site = sv_regs_site(&task->parked);
	task->moved = true;
	return 0;
}

int sv_rewrite_regs(struct sv_task *task, int nr, const uint64_t args[SV_ARGS])
{
	struct sv_regs regs = task->parked;

	task->now_nr = nr;
	memcpy(task->now_args, args, sizeof(task->now_args));
	sv_regs_issue(&regs, task->site, nr, args);
	return sv_regs_set(task->plan.tid, &regs);
}

int sv_rewrite_unmask(struct sv_task *task)
{
	task->moved = false;
	if (ptrace(PTRACE_SETSIGMASK, task->plan.tid, sizeof(task->mask), &task->mask) < 0)
		return -errno;
	return 0;
}

int sv_rewrite_undo(struct sv_task *task, bool again, int64_t result)
{
	struct sv_regs regs = task->parked;
	int rc;

	if (again)
		sv_regs_issue(&regs, task->site, task->plan.nr, task->plan.args);
	else
		sv_regs_finish(&regs, result);
	rc = sv_regs_set(task->plan.tid, &regs);
	return rc < 0 ? rc : sv_rewrite_unmask(task);
}

int sv_rewrite_disguise(struct sv_task *task)
{
	struct sv_regs regs;
	int rc = sv_regs_get(task->plan.tid, &regs);

	if (rc < 0)
		return rc;
	sv_regs_disguise(&regs, task->plan.nr, task->plan.args);
	return sv_regs_set(task->plan.tid, &regs);
}

static size_t count_strings(const char *v, size_t n)
{
	size_t count = 0;

	for (const char *p = v; n > 0 && (p = memchr(p, 0, n - (size_t)(p - v))) != NULL;) {
		count++;
		if ((size_t)(++p - v) == n)
			break;
	}
	return count;
}

/* Where the parts of the block begin. */
struct layout {
	size_t envp;
	size_t path;
	size_t argv;		/* the strings */
	size_t env;
	size_t end;
};

static struct layout lay_out(const struct sv_exec_plan *p)
{
	struct layout l;

	l.envp = (count_strings(p->new_argv, p->new_argv_len) + 1) * sizeof(uint64_t);
	l.path = l.envp;
	if (p->set_env)
		l.path += (count_strings(p->new_env, p->new_env_len) + 1) * sizeof(uint64_t);
	l.argv = l.path + p->new_path_len + 1;
	l.env = l.argv + p->new_argv_len;
	l.end = l.env + (p->set_env ? p->new_env_len : 0);
	return l;
}

static size_t image_size(const struct sv_exec_plan *p)
{
	return lay_out(p).end;
}

/* The strings at buf + at and, at buf + ptrs, where they will lie. */
static void put_strings(uint8_t *buf, uint64_t addr, size_t ptrs, size_t at, const char *s, size_t n)
{
	for (size_t i = 0; i < n; ptrs += sizeof(uint64_t)) {
		uint64_t where = addr + at + i;

		memcpy(buf + ptrs, &where, sizeof(where));
		i += strlen(s + i) + 1;
	}
	if (n)
		memcpy(buf + at, s, n);
}

/* Pointers (they need the alignment), then the path, then the strings. */
static uint8_t *image_build(const struct sv_exec_plan *p, uint64_t addr)
{
	struct layout l = lay_out(p);
	uint8_t *buf = calloc(1, l.end);

	if (!buf)
		return NULL;
	put_strings(buf, addr, 0, l.argv, p->new_argv, p->new_argv_len);
	if (p->set_env)
		put_strings(buf, addr, l.envp, l.env, p->new_env, p->new_env_len);
	memcpy(buf + l.path, p->new_path, p->new_path_len);
	return buf;
}

/* Without a policy for it the environment stays the caller's; execveat becomes execve. */
static int steer_put(struct sv_task *task)
{
	const struct sv_exec_plan *p = &task->plan;
	uint64_t addr = task->area.addr;
	struct layout l = lay_out(p);
	uint64_t args[SV_ARGS] = { addr + l.path, addr, addr + l.envp, 0, 0, 0 };
	uint8_t *buf = image_build(p, addr);
	int rc;

	if (!buf)
		return -ENOMEM;
	if (!p->set_env)
		args[2] = p->args[p->nr == SYS_execveat ? 3 : 2];
	rc = sv_poke(p->tid, addr, buf, l.end);
	free(buf);
	if (rc == 0)
		rc = sv_rewrite_regs(task, SYS_execve, args);
	return rc < 0 ? rc : 1;
}

static int steer_map(struct sv_task *task)
{
	int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	uint64_t args[SV_ARGS] = { task->area.map, task->area.map_len, PROT_READ | PROT_WRITE,
				   0, UINT64_MAX, 0 };

	if (task->area.klass >= 0)
		how |= MAP_FIXED_NOREPLACE;
	args[3] = (uint64_t)how;
	return sv_rewrite_regs(task, SYS_mmap, args);
}

static int steer_map_own(struct sv_task *task)
{
	size_t need = image_size(&task->plan);

	task->area = (struct sv_area){ .klass = -1, .map_len = (need + 4095) & ~(size_t)4095 };
	return steer_map(task);
}

int sv_steer_place(struct sv_task *task, struct sv_areas *a)
{
	const struct sv_exec_plan *p = &task->plan;

	if ((p->new_argv_len && p->new_argv[p->new_argv_len - 1]) ||
	    (p->new_env_len && p->new_env[p->new_env_len - 1]))
		return -EINVAL;
	if (!areas_take(a, image_size(p), &task->area))
		return steer_map_own(task);
	if (area_there(a, &task->area, p->tid))
		return steer_put(task);
	return steer_map(task);
}

int sv_steer_mapped(struct sv_task *task, struct sv_areas *a)
{
	struct sv_regs regs;
	int rc = sv_regs_get(task->plan.tid, &regs);
	int64_t got;

	if (rc < 0)
		return rc;
	got = sv_regs_result(&regs);
	if (task->area.klass < 0) {
		if (got < 0 && got >= -4095)
			return (int)got;
		task->area.addr = (uint64_t)got;
		return steer_put(task);
	}
	if ((uint64_t)got == task->area.map) {
		rc = sv_poke(task->plan.tid, task->area.map, a->cookie, sizeof(a->cookie));
		return rc < 0 ? rc : steer_put(task);
	}
	/* Another thread that shares this memory may just have mapped it. */
	if (area_there(a, &task->area, task->plan.tid))
		return steer_put(task);
	sv_areas_give(a, &task->area);
	return steer_map_own(task);
}
