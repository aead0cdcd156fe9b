/* identity.c - files made and read under another identity (root only).
 *
 *   identity UID GID GROUP CAPS FILE...   becomes UID:GID with one more group, with (1) or without
 *                                         (0) CAP_DAC_OVERRIDE kept, then makes "made" and "dir",
 *                                         and says what reading each FILE gives */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int keep_one_capability(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	d[0].effective = d[0].permitted = 1U << CAP_DAC_OVERRIDE;
	return (int)syscall(SYS_capset, &h, d);
}

int main(int argc, char **argv)
{
	gid_t more;
	int i, fd;

	if (argc < 5)
		return 99;
	more = (gid_t)atoi(argv[3]);
	if (*argv[4] == '1' && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return 98;
	if (setgroups(1, &more) < 0 || setgid((gid_t)atoi(argv[2])) < 0 ||
	    setuid((uid_t)atoi(argv[1])) < 0)
		return 97;
	if (*argv[4] == '1' && keep_one_capability() < 0)
		return 96;
	fd = open("made", O_WRONLY | O_CREAT | O_EXCL, 0640);
	printf("made %s\n", fd < 0 ? strerrorname_np(errno) : "ok");
	printf("dir %s\n", mkdir("dir", 0750) < 0 ? strerrorname_np(errno) : "ok");
	for (i = 5; i < argc; i++) {
		fd = open(argv[i], O_RDONLY);
		printf("%s %s\n", argv[i], fd < 0 ? strerrorname_np(errno) : "ok");
		if (fd >= 0)
			close(fd);
	}
	printf("root %s\n", setuid(0) < 0 ? strerrorname_np(errno) : "ok");
	return 0;
}
