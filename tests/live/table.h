/* table.h - what the two tables share: a fresh folder per case, and a listing
 * of what a case left behind. All calls are made by number: the library has
 * its own opinion of some of them. */
#ifndef TABLE_H
#define TABLE_H

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(99);
}

/* The errno's name: numbers are hard to read in a failed comparison. */
static inline const char *err_name(int e)
{
	const char *name = strerrorname_np(e);

	return name ? name : "?";
}

static inline char type_of(mode_t m)
{
	switch (m & S_IFMT) {
	case S_IFREG: return 'f';
	case S_IFDIR: return 'd';
	case S_IFLNK: return 'l';
	case S_IFIFO: return 'p';
	case S_IFSOCK: return 's';
	case S_IFCHR: return 'c';
	default: return '?';
	}
}

static inline void put_file(const char *name, mode_t mode, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0 || fchmod(fd, mode) < 0)
		die(name);
	close(fd);
}

/* Removes what is in the folder, and the folder's own odd modes. */
static inline void empty_folder(const char *name)
{
	DIR *d;
	struct dirent *e;

	chmod(name, 0755);
	d = opendir(name);
	if (!d)
		die(name);
	while ((e = readdir(d))) {
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(dirfd(d), e->d_name, 0) == 0)
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(st.st_mode)) {
			char below[1024];

			if (snprintf(below, sizeof(below), "%s/%s", name, e->d_name) >=
			    (int)sizeof(below))
				die(name);
			empty_folder(below);
			if (rmdir(below) == 0)
				continue;
		}
		die(e->d_name);
	}
	closedir(d);
}

static inline int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static inline void say_time(FILE *to, const struct timespec *t)
{
	if (t->tv_sec < 1000000000)
		fprintf(to, "@%ld.%09ld", (long)t->tv_sec, t->tv_nsec);
	else
		fprintf(to, "@now");
}

/* One word per object: name, type, mode, size, owner, links, times. */
static inline void list_folder(FILE *to, const char *name, bool times)
{
	struct dirent **all = NULL;
	int n = scandir(name, &all, NULL, by_name), i;

	for (i = 0; i < n; i++) {
		char below[1024], text[128] = "";
		struct stat st;

		if (snprintf(below, sizeof(below), "%s/%s", name, all[i]->d_name) <
			    (int)sizeof(below) &&
		    strcmp(all[i]->d_name, ".") && strcmp(all[i]->d_name, "..") &&
		    lstat(below, &st) == 0) {
			if (S_ISLNK(st.st_mode) && readlink(below, text, sizeof(text) - 1) < 0)
				text[0] = 0;
			fprintf(to, " %.20s:%c%o:%ld:%u.%u:%u%s%s", all[i]->d_name, type_of(st.st_mode),
			       st.st_mode & 07777, S_ISREG(st.st_mode) ? (long)st.st_size : 0L,
			       st.st_uid, st.st_gid, (unsigned)st.st_nlink, *text ? "->" : "", text);
			if (times) {
				say_time(to, &st.st_atim);
				say_time(to, &st.st_mtim);
			}
			if (S_ISDIR(st.st_mode)) {
				fprintf(to, "{");
				list_folder(to, below, times);
				fprintf(to, " }");
			}
		}
		free(all[i]);
	}
	free(all);
}

/* Text that is put together piece by piece; free() it. */
static inline FILE *text_begin(char **text, size_t *len)
{
	FILE *to = open_memstream(text, len);

	if (!to)
		die("memory");
	return to;
}

#endif
