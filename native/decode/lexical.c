/* lexical.c - what can be said of a name without asking the kernel. */
#include "decode/lexical.h"

#include <fcntl.h>
#include <string.h>

bool sv_names_start(const struct sv_pathname *name, uint64_t flags)
{
	return flags & AT_EMPTY_PATH && name->len == 0 && !name->err;
}

bool sv_leads_to_proc(const char *path)
{
	while (path[0] == '/' && path[1] == '/')
		path++;
	return !strncmp(path, "/proc/", 6) || !strncmp(path, "/dev/fd", 7) ||
	       !strncmp(path, "/dev/std", 8);
}

bool sv_drop_last(struct sv_pathname *name)
{
	int n = name->len;

	while (n > 0 && name->text[n - 1] == '/')
		n--;
	while (n > 0 && name->text[n - 1] != '/')
		n--;
	while (n > 1 && name->text[n - 1] == '/')
		n--;
	if (n <= 0 || n >= name->len)
		return false;
	name->text[n] = 0;
	name->len = n;
	return true;
}

bool sv_plain_names(const char *rest)
{
	while (*rest) {
		size_t n = strcspn(rest, "/");

		if (n == 0 || (n == 1 && rest[0] == '.') || (n == 2 && !strncmp(rest, "..", 2)))
			return false;
		rest += n;
		if (*rest)
			rest++;
	}
	return true;
}
