/* path.h - from (starting folder, string) to a pinned object.
 *
 * The kernel does every walk; nothing here does arithmetic on "..". The
 * result is an O_PATH descriptor and the true path read back from it: the
 * decision is made on that path and the work is done on that descriptor, so
 * what was checked is what is used. Magic links of /proc mean the target's
 * objects, never the supervisor's (decode/walk.c).
 *
 * The target's root and mount namespace are the supervisor's own, as the
 * table refuses chroot, mounts and namespaces. */
#ifndef SV_DECODE_PATH_H
#define SV_DECODE_PATH_H

#include "decode/roles.h"

#include <sys/stat.h>

/* How a file system names things: EXACT = a name without links is the true path
 * byte for byte; PROC = names mean who asks (also: nobody could tell). */
enum sv_fs_kind { SV_FS_UNKNOWN, SV_FS_OTHER, SV_FS_EXACT, SV_FS_PROC };

/* What one worker needs to resolve; no sharing, no locks. */
struct sv_paths {
	int proc_fd;		/* O_PATH of /proc */
	int self_fd;		/* /proc/self/fd of the supervisor */
	pid_t self;
	dev_t proc_dev;
	struct { dev_t dev; enum sv_fs_kind kind; } known[8];	/* no procfs among them */
	unsigned known_n;
};

struct sv_place {
	int fd;			/* O_PATH of the object, -1 = only the parent is pinned */
	int parent;		/* O_PATH of the folder that holds last, -1 = not asked */
	bool held;		/* a pipe, socket or memory file: no name, and the tree holds it */
	int via;		/* open flags of the descriptor it was reached through, -1 = a name */
	bool slash;		/* the name ended in '/' */
	struct stat st;		/* of fd, or of parent */
	int len;
	char path[SV_PATH_MAX];	/* true path; of a new name: parent's path "/" last */
	char last[SV_PATH_MAX];	/* as given, one trailing '/' kept */
};

enum { SV_PIN_NOFOLLOW = 1, SV_PIN_DIRECTORY = 2 };

/* Opens what a worker needs; -errno with err filled when /proc is missing. */
int sv_paths_init(struct sv_paths *p, struct sv_err *err);
void sv_paths_close(struct sv_paths *p);
void sv_place_init(struct sv_place *place);
void sv_place_close(struct sv_place *place);

/* The kind of the file system on device dev, that fd lies on; asked once a device.
 * Without a descriptor: UNKNOWN until it was asked. */
enum sv_fs_kind sv_fs_known(const struct sv_paths *p, dev_t dev);
enum sv_fs_kind sv_fs_kind(struct sv_paths *p, int fd, dev_t dev);

/* Pin an existing object. resolve: RESOLVE_* that the caller asked for. */
int sv_pin(struct sv_paths *p, const struct sv_tracee *t, const struct sv_pathname *name, int pin,
	   uint64_t resolve, struct sv_place *out);
/* Pin the folder of the last component; the object itself is not looked up. */
int sv_pin_parent(struct sv_paths *p, const struct sv_tracee *t, const struct sv_pathname *name,
		  uint64_t resolve, struct sv_place *out);
/* For a name in folders that do not exist (here): pins the deepest one that
 * does; last and path then hold all that is missing. -ENOENT where that part
 * has "." or "..", which mean nothing in a folder that is not there. */
int sv_pin_missing(struct sv_paths *p, const struct sv_tracee *t, const struct sv_pathname *name,
		   struct sv_place *out);
/* Pin the target's open descriptor. */
int sv_pin_fd(struct sv_paths *p, const struct sv_tracee *t, int fd, struct sv_place *out);
/* Takes ownership of fd: fills st, path and held, and refuses what lies in
 * somebody else's /proc folder. For sv_pin and the walker. */
int sv_place_adopt(struct sv_paths *p, const struct sv_tracee *t, int fd, bool via_fd,
		   struct sv_place *out);
/* last is ".", ".." or the root itself: no name that could be made or removed. */
bool sv_place_is_dots(const struct sv_place *place);
/* Writes parent's path "/" last into out->path. */
int sv_place_join(struct sv_place *out);

/* decode/walk.c: the component-wise walk for /proc and what leads into it.
 * Returns an O_PATH descriptor or -errno; *via = open flags of the descriptor
 * that the last step was a link to, -1 = it was none. */
int sv_walk(struct sv_paths *p, const struct sv_tracee *t, int start, const char *path, int pin,
	    int *via);

#endif
