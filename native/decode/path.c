/* path.c - pins objects and reads their true paths back. */
#include "decode/path.h"

#include "base/err.h"
#include "base/fd.h"
#include "decode/lexical.h"
#include "decode/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

static enum sv_fs_kind ask_fs_kind(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return SV_FS_PROC;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
		return SV_FS_PROC;
	case EXT4_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
		return SV_FS_EXACT;
	default:
		return SV_FS_OTHER;
	}
}

enum sv_fs_kind sv_fs_known(const struct sv_paths *p, dev_t dev)
{
	unsigned i;

	for (i = 0; i < p->known_n; i++)
		if (p->known[i].dev == dev)
			return p->known[i].kind;
	return SV_FS_UNKNOWN;
}

enum sv_fs_kind sv_fs_kind(struct sv_paths *p, int fd, dev_t dev)
{
	enum sv_fs_kind kind = sv_fs_known(p, dev);

	if (kind != SV_FS_UNKNOWN)
		return kind;
	kind = ask_fs_kind(fd);
	if (kind != SV_FS_PROC && p->known_n < sizeof(p->known) / sizeof(p->known[0])) {
		p->known[p->known_n].dev = dev;
		p->known[p->known_n++].kind = kind;
	}
	return kind;
}

int sv_paths_init(struct sv_paths *p, struct sv_err *err)
{
	struct statfs fs;
	struct stat st;

	memset(p, 0, sizeof(*p));
	p->self_fd = -1;
	p->self = getpid();
	p->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->proc_fd < 0 || fstatfs(p->proc_fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC ||
	    fstat(p->proc_fd, &st) < 0) {
		sv_paths_close(p);
		return sv_fail(err, ENOENT, "proc",
			       "/proc is not mounted: mount it (mount -t proc proc /proc)");
	}
	p->proc_dev = st.st_dev;
	p->self_fd = openat(p->proc_fd, "self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->self_fd < 0) {
		int code = errno;

		sv_paths_close(p);
		return sv_fail(err, code, "proc", "/proc/self/fd cannot be opened");
	}
	return 0;
}

void sv_paths_close(struct sv_paths *p)
{
	sv_close_fd(&p->proc_fd);
	sv_close_fd(&p->self_fd);
}

void sv_place_init(struct sv_place *place)
{
	place->fd = place->parent = -1;
	place->held = place->slash = false;
	place->via = -1;
	place->len = 0;
	place->path[0] = place->last[0] = 0;
}

void sv_place_close(struct sv_place *place)
{
	sv_close_fd(&place->fd);
	sv_close_fd(&place->parent);
}

/* The true path of a pinned object, as the kernel names it. */
static int read_true_path(const struct sv_paths *p, int fd, struct sv_place *out)
{
	char n[16];
	ssize_t k;

	snprintf(n, sizeof(n), "%d", fd);
	k = readlinkat(p->self_fd, n, out->path, sizeof(out->path));
	if (k < 0)
		return -errno;
	if (k >= (ssize_t)sizeof(out->path))
		return -ENAMETOOLONG;
	out->path[k] = 0;
	out->len = (int)k;
	return 0;
}

/* A second procfs mounted elsewhere would bring other processes' folders back
 * under names that no rule speaks of. */
static bool foreign_procfs(struct sv_paths *p, int fd, dev_t dev)
{
	return dev != p->proc_dev && sv_fs_kind(p, fd, dev) == SV_FS_PROC;
}

/* /proc/PID of anything but the tree's own processes shows what the target
 * could not read itself: our descriptors are not bound by its domain. */
static int check_proc(const struct sv_paths *p, const struct sv_tracee *t, const char *path)
{
	char *end;
	long pid;
	pid_t tgid;

	if (strncmp(path, "/proc/", 6) || path[6] < '0' || path[6] > '9')
		return 0;
	pid = strtol(path + 6, &end, 10);
	if (*end != 0 && *end != '/')
		return 0;
	if (pid == t->call->tid)
		return 0;
	if (pid <= 0 || pid == p->self)
		return -EACCES;
	if (sv_tracee_tgid(t, &tgid) == 0 && tgid == pid)
		return 0;
	return sv_in_tree(p->proc_fd, (pid_t)pid) ? 0 : -EACCES;
}

/* The kernel marks a name that was removed with this tail, also where the object
 * has others left. A name that really ends so is found where it says; where nobody
 * can look, it could be either. */
static int strip_deleted(struct sv_place *out)
{
	static const char tail[] = " (deleted)";
	const int n = (int)sizeof(tail) - 1;
	struct stat named;

	if (out->len <= n || strcmp(out->path + out->len - n, tail))
		return 0;
	if (fstatat(AT_FDCWD, out->path, &named, AT_SYMLINK_NOFOLLOW) == 0) {
		if (named.st_dev == out->st.st_dev && named.st_ino == out->st.st_ino)
			return 0;
	} else if (errno == EACCES && out->st.st_nlink != 0) {
		return -EACCES;
	}
	out->len -= n;
	out->path[out->len] = 0;
	return 0;
}

int sv_place_adopt(struct sv_paths *p, const struct sv_tracee *t, int fd, bool via_fd,
		   struct sv_place *out)
{
	int rc;

	out->fd = fd;
	if (fstat(fd, &out->st) < 0)
		return -errno;
	rc = read_true_path(p, fd, out);
	if (rc < 0)
		return rc;
	if (out->path[0] != '/') {
		/* pipe:[1], socket:[1]; anything else nameless is no file */
		out->held = via_fd && (S_ISFIFO(out->st.st_mode) || S_ISSOCK(out->st.st_mode));
		return out->held ? 0 : -EACCES;
	}
	rc = strip_deleted(out);
	if (rc == 0)
		rc = sv_name_queue(fd, out);
	if (rc < 0)
		return rc;
	out->held = via_fd && out->st.st_nlink == 0 && !strncmp(out->path, "/memfd:", 7);
	if (out->st.st_dev == p->proc_dev)
		return check_proc(p, t, out->path);
	return foreign_procfs(p, fd, out->st.st_dev) ? -EACCES : 0;
}

static int kernel_walk(int start, const char *path, int pin, uint64_t resolve)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = resolve | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (pin & SV_PIN_NOFOLLOW)
		how.flags |= O_NOFOLLOW;
	if (pin & SV_PIN_DIRECTORY)
		how.flags |= O_DIRECTORY;
	fd = syscall(SYS_openat2, start, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/* "Not there" may only mean: not in the supervisor's own folder of /proc. */
static bool missing_in_proc(const struct sv_paths *p, int base, const char *path)
{
	char dir[SV_PATH_MAX];
	size_t n = strlen(path);
	cleanup_fd int fd = -1;
	struct stat st;

	if (n > 1 && !strcmp(path + n - 2, "/."))
		n--;
	while (n > 0 && path[n - 1] == '/')
		n--;
	while (n > 0 && path[n - 1] != '/')
		n--;
	if (n == 0 || n >= sizeof(dir))
		return false;
	memcpy(dir, path, n);
	dir[n] = 0;
	fd = kernel_walk(base, dir, SV_PIN_DIRECTORY, 0);
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == p->proc_dev;
}

/* The folder a name starts from: *fd is -1 for absolute names, which the
 * kernel walks from the (common) root. */
static int open_start(const struct sv_tracee *t, const struct sv_pathname *name, uint64_t resolve,
		      int *fd)
{
	*fd = -1;
	if (name->text[0] == '/' && !(resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)))
		return 0;
	if (name->text[0] == '/' && resolve & RESOLVE_BENEATH)
		return -EXDEV;
	if (name->at >= 0)
		*fd = fcntl(name->at, F_DUPFD_CLOEXEC, 3);
	else
		*fd = name->dirfd == AT_FDCWD ? sv_tracee_cwd(t) :
						 sv_tracee_fd(t, name->dirfd);
	return *fd < 0 ? *fd : 0;
}

static int pin_from(struct sv_paths *p, const struct sv_tracee *t, int start, const char *path,
		    int pin, uint64_t resolve, struct sv_place *out)
{
	const int base = start < 0 ? AT_FDCWD : start;
	int fd = -ELOOP, rc, via = -1;

	if (!sv_leads_to_proc(path) || resolve)
		fd = kernel_walk(base, path, pin, resolve);
	if (!resolve && (fd == -ELOOP || (fd == -ENOENT && missing_in_proc(p, base, path))))
		fd = sv_walk(p, t, base, path, pin, &via);
	if (fd < 0)
		return fd;
	rc = sv_place_adopt(p, t, fd, via >= 0, out);
	out->via = via;
	if (rc != -EACCES || via >= 0 || resolve || out->st.st_dev != p->proc_dev)
		return rc;
	/* "self" answered for us: ask again as the target */
	sv_close_fd(&out->fd);
	fd = sv_walk(p, t, base, path, pin, &via);
	out->via = via;
	return fd < 0 ? fd : sv_place_adopt(p, t, fd, via >= 0, out);
}

int sv_pin(struct sv_paths *p, const struct sv_tracee *t, const struct sv_pathname *name, int pin,
	   uint64_t resolve, struct sv_place *out)
{
	cleanup_fd int start = -1;
	int rc;

	if (name->len == 0)
		return name->err ? name->err : -ENOENT;
	rc = open_start(t, name, resolve, &start);
	if (rc < 0)
		return rc;
	return pin_from(p, t, start, name->text, pin, resolve, out);
}

/* Cuts text into the folder's part (kept in dir) and the last component. */
static void split(const struct sv_pathname *name, char *dir, struct sv_place *out)
{
	const size_t len = (size_t)name->len;
	size_t end = len, cut;

	while (end > 0 && name->text[end - 1] == '/')
		end--;
	out->slash = end < len && end > 0;
	for (cut = end; cut > 0 && name->text[cut - 1] != '/'; cut--)
		;
	memcpy(dir, name->text, cut);
	strcpy(dir + cut, ".");		/* the folder must be one that may be searched */
	memcpy(out->last, name->text + cut, end - cut);
	out->last[end - cut] = 0;
	if (out->slash)
		strcpy(out->last + (end - cut), "/");
	if (cut == 0 && name->text[0] == '/')
		strcpy(dir, "/");
	if (end == 0)
		strcpy(out->last, ".");
}

bool sv_place_is_dots(const struct sv_place *place)
{
	const size_t n = strcspn(place->last, "/");

	return n <= 2 && !strncmp(place->last, "..", n);
}

int sv_place_join(struct sv_place *out)
{
	const char *slash = out->len == 1 ? "" : "/";
	char joined[2 * SV_PATH_MAX + 2];
	int n = snprintf(joined, sizeof(joined), "%s%s%s", out->path, slash, out->last);

	if (out->slash)
		n--;
	if (n < 0 || n >= (int)sizeof(out->path))
		return -ENAMETOOLONG;
	memcpy(out->path, joined, (size_t)n);
	out->path[n] = 0;
	out->len = n;
	return 0;
}

int sv_pin_parent(struct sv_paths *p, const struct sv_tracee *t, const struct sv_pathname *name,
		  uint64_t resolve, struct sv_place *out)
{
	cleanup_fd int start = -1;
	char dir[SV_PATH_MAX + 2];
	int rc;

	if (name->len == 0)
		return name->err ? name->err : -ENOENT;
	rc = open_start(t, name, resolve, &start);
	if (rc < 0)
		return rc;
	split(name, dir, out);
	rc = pin_from(p, t, start, dir, SV_PIN_DIRECTORY, resolve, out);
	if (rc < 0)
		return rc;
	out->parent = take_fd(&out->fd);
	return sv_place_join(out);
}

int sv_pin_missing(struct sv_paths *p, const struct sv_tracee *t, const struct sv_pathname *name,
		   struct sv_place *out)
{
	struct sv_pathname up = *name;
	int rc = sv_pin_parent(p, t, &up, 0, out);
	const char *rest;
	size_t n;

	while (rc == -ENOENT) {
		sv_place_close(out);
		if (!sv_drop_last(&up))
			return -ENOENT;
		rc = sv_pin_parent(p, t, &up, 0, out);
	}
	rest = name->text + up.len;
	while (*rest == '/')
		rest++;
	if (rc < 0 || !*rest)
		return rc;
	n = strlen(rest);
	if (!sv_plain_names(rest))
		return -ENOENT;
	if ((size_t)out->len + n + 2 > sizeof(out->path) || strlen(out->last) + n + 2 > sizeof(out->last))
		return -ENAMETOOLONG;
	out->slash = rest[n - 1] == '/';
	strcat(strcat(out->last, "/"), rest);
	strncat(strcat(out->path, "/"), rest, n - out->slash);
	out->len += (int)(n - out->slash) + 1;
	return 0;
}

int sv_pin_fd(struct sv_paths *p, const struct sv_tracee *t, int fd, struct sv_place *out)
{
	int n = fd == AT_FDCWD ? sv_tracee_cwd(t) : sv_tracee_fd(t, fd);

	return n < 0 ? n : sv_place_adopt(p, t, n, true, out);
}
