/* twin_tree.h - the tree of one twin: emptied, made anew, told line by line.
 *
 * It lies eight folders below the place given, so that ".." ends in folders
 * that are its own, too. */
#ifndef TWIN_TREE_H
#define TWIN_TREE_H

#include "table.h"

enum { DEPTH = 8, TEXT_MAX = 1 << 16 };

/* What a line holds, odd bytes made visible. */
static char line[TEXT_MAX];
static size_t used;
static char tree[1024];
static size_t tree_len;

static inline void say(const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line + used, sizeof(line) - used, format, args);
	va_end(args);
	if (n < 0 || used + (size_t)n >= sizeof(line))
		die("line");
	used += (size_t)n;
}

static inline void say_bytes(const char *s, size_t n)
{
	const size_t shown = n > 70 ? 70 : n;
	size_t i;

	for (i = 0; i < shown; i++) {
		const unsigned char c = (unsigned char)s[i];

		if (c <= ' ' || c >= 127 || c == '\\')
			say("\\x%02x", c);
		else
			say("%c", c);
	}
	if (n > shown)
		say("~%zu", n);
}

/* A name without what must differ, the twin's own place. */
static inline void say_name(const char *s)
{
	if (!strncmp(s, tree, tree_len)) {
		say("TREE");
		s += tree_len;
	}
	say_bytes(s, strlen(s));
}

static inline void end_line(void)
{
	puts(line);
	used = 0;
	line[0] = 0;
}

/* Times that were set are below a billion; whatever else is now. */
static inline void say_when(const struct timespec *t)
{
	if (t->tv_sec < 1000000000)
		say(" %ld.%09ld", (long)t->tv_sec, t->tv_nsec);
	else
		say(" now");
}

static inline void say_stat(const struct stat *st)
{
	say(" %c%o %u.%u %u %ld", type_of(st->st_mode), st->st_mode & 07777, st->st_uid,
	    st->st_gid, (unsigned)st->st_nlink, S_ISDIR(st->st_mode) ? 0L : (long)st->st_size);
	say_when(&st->st_mtim);
}

static inline uint32_t sum_of(uint32_t sum, const char *p, size_t n)
{
	while (n--)
		sum = (sum ^ (unsigned char)*p++) * 16777619u;
	return sum;
}

static inline void say_content(int dir, const char *name, mode_t mode)
{
	char buf[8192];
	uint32_t sum = 2166136261u;
	ssize_t k;
	int fd;

	if (fchmodat(dir, name, mode | 0400, 0) < 0)
		die("chmod");
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("content");
	while ((k = read(fd, buf, sizeof(buf))) > 0)
		sum = sum_of(sum, buf, (size_t)k);
	close(fd);
	say(" %08x", sum);
}

static inline int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The entries of a folder that was opened for listing, sorted; the caller frees. */
static inline int names_of(int dir, char ***all)
{
	DIR *d = fdopendir(dup(dir));
	struct dirent *e;
	int n = 0;

	*all = NULL;
	if (!d)
		die("list");
	rewinddir(d);
	while ((e = readdir(d))) {
		*all = realloc(*all, (size_t)(n + 1) * sizeof(**all));
		if (!*all || !((*all)[n++] = strdup(e->d_name)))
			die("memory");
	}
	closedir(d);
	if (n)
		qsort(*all, (size_t)n, sizeof(**all), by_text);
	return n;
}

static inline int open_folder(int dir, const char *name)
{
	int fd;

	if (fchmodat(dir, name, 0700, 0) < 0)
		die("chmod");
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		die("folder");
	return fd;
}

static inline void wipe(int dir)
{
	char **all;
	int n = names_of(dir, &all), i;

	for (i = 0; i < n; i++) {
		const char *name = all[i];

		if (strcmp(name, ".") && strcmp(name, "..") && unlinkat(dir, name, 0) < 0) {
			int fd = open_folder(dir, name);

			wipe(fd);
			close(fd);
			if (unlinkat(dir, name, AT_REMOVEDIR) < 0)
				die(name);
		}
		free(all[i]);
	}
	free(all);
}

/* A line for every name below dir. Modes are opened where they must be, after
 * they were told. */
static inline void tell(int dir, int depth)
{
	char **all;
	int n = names_of(dir, &all), i;

	for (i = 0; i < n; i++) {
		const char *name = all[i];
		char text[4097];
		struct stat st;
		ssize_t k;

		if (!strcmp(name, ".") || !strcmp(name, "..")) {
			free(all[i]);
			continue;
		}
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			die("lstat");
		say("tree\t%*s", depth, "");
		say_name(name);
		say("\t");
		say_stat(&st);
		if (S_ISREG(st.st_mode))
			say_content(dir, name, st.st_mode & 07777);
		if (S_ISLNK(st.st_mode)) {
			k = readlinkat(dir, name, text, sizeof(text) - 1);
			text[k < 0 ? 0 : k] = 0;
			say(" -> ");
			say_name(text);
		}
		end_line();
		if (S_ISDIR(st.st_mode)) {
			int fd = open_folder(dir, name);

			tell(fd, depth + 1);
			close(fd);
		}
		free(all[i]);
	}
	free(all);
}

/* What an epoch starts with; ends with the tree as working folder. */
static inline void make_tree(int top)
{
	char name[8];
	int i;

	if (fchdir(top) < 0)
		die("top");
	umask(022);
	for (i = 0; i < DEPTH; i++) {
		snprintf(name, sizeof(name), "%d", i);
		if (mkdir(name, 0755) < 0 || chdir(name) < 0)
			die("tree");
	}
	mkdir("a", 0755);
	put_file("a/a", 0644, "in a");
	put_file("a/b", 0400, "read only");
	put_file("a/d", 0644, "by two names");
	mkdir("a/c", 0700);
	put_file("b", 0644, "hello");
	(void)!link("a/d", "d");
	(void)!symlink("a", "e");
	(void)!symlink("b", "f");
	(void)!symlink("new", "g");
	(void)!symlink("a/../a/a", "a/f");
	(void)!symlink("h", "h");
	mknod("p", S_IFIFO | 0644, 0);
	mknod("a/s", S_IFSOCK | 0644, 0);
	mkdir("sg", 0755);
	chmod("sg", 02777);
	mkdir("st", 0755);
	put_file("st/a", 0666, "sticky");
	(void)!symlink("../b", "st/f");
	chmod("st", 01777);
	mkdir("no", 0755);
	put_file("no/a", 0644, "shut in");
	chmod("no", 0);
}

#endif
