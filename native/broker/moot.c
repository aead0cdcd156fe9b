/* moot.c - refusals that the kernel would not come to.
 *
 * It looks a name up before it asks who may change it: what is there cannot be
 * made, what is missing cannot be removed, whoever asks. Programs count on it:
 * rm -f of a missing file is no failure, nor is mkdir of a folder that is there. */
#include "broker/work.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

/* The pinned folder's entry, whatever slash its name ended in. 0 or -errno. */
static int look(const struct sv_place *p, struct stat *st)
{
	char name[SV_PATH_MAX];
	const size_t n = strcspn(p->last, "/");

	memcpy(name, p->last, n);
	name[n] = 0;
	return fstatat(p->parent, name, st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int sv_moot_new(const struct sv_place *p, bool folder)
{
	struct stat st;
	const int rc = look(p, &st);

	if (rc == 0)
		return EEXIST;
	if (rc == -ENOENT)
		return p->slash && !folder ? ENOENT : 0;
	return rc == -ENAMETOOLONG ? ENAMETOOLONG : 0;
}

/* Nothing is removed from such a mount, so nothing is looked up there. */
static bool read_only(const struct sv_place *p)
{
	struct statfs fs;

	return fstatfs(p->parent, &fs) == 0 && (fs.f_flags & ST_RDONLY);
}

int sv_moot_old(const struct sv_place *p, bool folder)
{
	struct stat st;
	const int rc = look(p, &st);

	if (rc == -ENOENT && read_only(p))
		return EROFS;
	if (rc < 0)
		return rc == -ENOENT || rc == -ENAMETOOLONG ? -rc : 0;
	if (!p->slash || folder)
		return 0;
	return S_ISDIR(st.st_mode) ? EISDIR : ENOTDIR;
}

void sv_refuse_unless(struct sv_work *w, int err)
{
	/* of a hidden name nothing is told, not even that it is taken */
	if (!err || sv_match_hides(w->sh->policy, &w->match))
		return sv_refuse(w);
	w->match = (struct sv_match){ .action = SV_ALLOW, .rule = -1 };
	sv_fail_call(w, err);
}

bool sv_refuse_hidden(struct sv_work *w, const struct sv_place *p)
{
	struct sv_str path = { (const uint8_t *)p->path, (size_t)p->len };
	struct sv_match m;

	if (w->sh->observe || p->held)
		return false;
	sv_match_path(w->sh->policy, path, SV_OP_READ, &m);
	if (!sv_match_hides(w->sh->policy, &m))
		return false;
	w->ops |= SV_OP_READ;
	w->match = m;
	sv_refuse(w);
	return true;
}
