/* tree_list.c - entries of a tree's folder that the original does not have. */
#include "broker/tree_list.h"

#include "base/fd.h"
#include "broker/shadow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* MOST: an upper bound of what is looked through for one listing. */
enum { CHUNK = 1 << 16, MOST = 1 << 26, LENGTH_AT = 16, TYPE_AT = 18 };
enum { NAME_AT = 19, OLD_NAME_AT = 18 };

static const int64_t MARK = 0x7fffffff00000000;

/* As linux_dirent64 begins, with the key in place of the offset. */
struct entry {
	uint32_t key;
	uint32_t at;		/* of the kernel's entry in bytes */
};

struct listing {
	char *bytes;
	size_t n;
	struct entry *entry;
	size_t entries;
};

bool sv_tree_list_at(int64_t offset)
{
	return offset >= MARK && offset < INT64_MAX;
}

int64_t sv_tree_list_start(void)
{
	return MARK;
}

static const char *name_of(const struct listing *l, size_t i)
{
	return l->bytes + l->entry[i].at + NAME_AT;
}

/* FNV-1a, of 31 bits: room above for names that share one. */
static uint32_t hash_of(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h >> 1;
}

/* All of the folder's entries, as getdents64 gives them. */
static int read_all(int fd, struct listing *l)
{
	size_t room = 0;
	long k;

	do {
		if (room - l->n < CHUNK) {
			char *more = room < MOST ? realloc(l->bytes, room += CHUNK + room) : NULL;

			if (!more)
				return -ENOMEM;
			l->bytes = more;
		}
		k = syscall(SYS_getdents64, fd, l->bytes + l->n, room - l->n);
		if (k < 0)
			return -errno;
		l->n += (size_t)k;
	} while (k > 0);
	return 0;
}

static uint16_t step_of(const struct listing *l, size_t at)
{
	uint16_t step;

	memcpy(&step, l->bytes + at + LENGTH_AT, sizeof(step));
	return step;
}

static int index_all(struct listing *l)
{
	size_t at, n = 0;

	for (at = 0; at < l->n; at += step_of(l, at))
		n++;
	l->entry = calloc(n ? n : 1, sizeof(*l->entry));
	if (!l->entry)
		return -ENOMEM;
	for (at = 0; at < l->n; at += step_of(l, at)) {
		struct entry *e = &l->entry[l->entries];

		e->at = (uint32_t)at;
		e->key = hash_of(name_of(l, l->entries));
		l->entries++;
	}
	return 0;
}

static int order(const void *a, const void *b, void *listing)
{
	const struct listing *l = listing;
	const struct entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return strcmp(l->bytes + x->at + NAME_AT, l->bytes + y->at + NAME_AT);
}

/* No two names have one key: a listing always goes on. */
static void give_keys(struct listing *l)
{
	size_t i;

	qsort_r(l->entry, l->entries, sizeof(*l->entry), order, l);
	for (i = 1; i < l->entries; i++)
		if (l->entry[i].key <= l->entry[i - 1].key)
			l->entry[i].key = l->entry[i - 1].key + 1;
}

/* Writes an entry as the caller's call has it; returns its length, 0 = no room. */
static size_t put(const struct listing *l, size_t i, bool old, char *out, size_t room)
{
	const char *in = l->bytes + l->entry[i].at, *name = name_of(l, i);
	const int64_t next = MARK + l->entry[i].key + 1;
	const size_t len = strlen(name), at = old ? OLD_NAME_AT : NAME_AT;
	const uint16_t step = (uint16_t)((at + len + 1 + old + 7) & ~7ul);

	if (step > room)
		return 0;
	memset(out, 0, step);
	memcpy(out, in, sizeof(uint64_t));
	memcpy(out + 8, &next, sizeof(next));
	memcpy(out + LENGTH_AT, &step, sizeof(step));
	memcpy(out + at, name, len);
	out[old ? step - 1 : TYPE_AT] = in[TYPE_AT];
	return step;
}

static bool in_original(const struct sv_work *w, const char *name)
{
	struct stat st;

	return !strcmp(name, ".") || !strcmp(name, "..") ||
	       fstatat(w->place[0].fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Would a look at the name find what lies in the tree? Leaves w as it is. */
static bool is_shown(struct sv_work *w, int dir, const char *name, unsigned char type)
{
	const struct sv_place *p = &w->place[0];
	const struct sv_match steer = w->match;
	const uint32_t ops = w->ops;
	char path[SV_PATH_MAX + 256];
	const int n = snprintf(path, sizeof(path), "%s/%s", p->len > 1 ? p->path : "", name);
	bool denied;

	if (in_original(w, name))
		return false;
	denied = sv_shadow_refused(w, (struct sv_str){ (const uint8_t *)path, (size_t)n },
				   SV_OP_READ) ||
		 sv_steer_denied(w, dir, name, type == DT_DIR ? SV_OP_LIST : SV_OP_READ);
	w->match = steer;
	w->ops = ops;
	return !denied;
}

static ssize_t list(struct sv_work *w, int dir, const struct listing *l, bool old, int64_t *offset,
		    char *buf, size_t room)
{
	size_t done = 0, i, k;

	for (i = 0; i < l->entries; i++) {
		const char *name = name_of(l, i);

		if (MARK + l->entry[i].key < *offset)
			continue;
		if (is_shown(w, dir, name, (unsigned char)name[TYPE_AT - NAME_AT])) {
			k = put(l, i, old, buf + done, room - done);
			if (!k)
				return done ? (ssize_t)done : -EINVAL;
			done += k;
		}
		*offset = MARK + l->entry[i].key + 1;
	}
	return (ssize_t)done;
}

/* The tree's folder of the same name, to be read; -ENOENT: none, or not for the caller. */
static int open_folder(struct sv_work *w)
{
	struct sv_place *p = &w->place[0];
	int fd;

	sv_match_path_in(w->sh->policy, sv_blocks_in(w),
			 (struct sv_str){ (const uint8_t *)p->path, (size_t)p->len }, SV_OP_WRITE,
			 &w->match);
	if (!sv_steer_goes_to_tree(w, &w->match))
		return -ENOENT;
	fd = sv_steer_find(w, p, O_RDONLY | O_DIRECTORY);
	if (fd >= 0 && sv_steer_denied(w, fd, "", SV_OP_LIST))
		sv_close_fd(&fd);
	return fd;
}

ssize_t sv_tree_list(struct sv_work *w, bool old, int64_t offset, char *buf, size_t room,
		     int64_t *next)
{
	cleanup_fd int fd = w->sh->steers && !w->sh->observe ? open_folder(w) : -ENOENT;
	struct listing l = { .bytes = NULL };
	ssize_t n;

	*next = offset;
	n = fd < 0 ? -ENOENT : read_all(fd, &l);
	if (n == 0)
		n = index_all(&l);
	if (n == 0) {
		give_keys(&l);
		n = list(w, fd, &l, old, next, buf, room);
	}
	w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	free(l.entry);
	free(l.bytes);
	return fd < 0 ? 0 : n;
}
