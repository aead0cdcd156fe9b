/* storm.c - calls under a storm of signals: does each happen exactly once?
 *
 *   storm mkdir|open|rename|link COUNT restart|plain|none
 *
 * prints: how many returned 0, how many EINTR, how many something else, how many
 * effects are there, and how many signals came. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

static void on_alarm(int sig)
{
	(void)sig;
	signals++;
}

static int once(const char *what, int i)
{
	char a[32], b[32];
	int fd;

	snprintf(a, sizeof(a), "s/a%d", i);
	snprintf(b, sizeof(b), "s/b%d", i);
	if (!strcmp(what, "mkdir"))
		return mkdir(a, 0755);
	if (!strcmp(what, "rename"))
		return rename(a, b);
	if (!strcmp(what, "link"))
		return link("file", b);
	fd = open(a, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static int count(char first)
{
	DIR *d = opendir("s");
	struct dirent *e;
	int n = 0;

	while ((e = readdir(d)))
		n += e->d_name[0] == first;
	closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	const struct itimerval every = { { 0, 500 }, { 0, 500 } }, none = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = on_alarm };
	int i, n, good = 0, eintr = 0, other = 0, fds[2];

	if (argc != 4)
		return 99;
	n = atoi(argv[2]);
	mkdir("s", 0755);
	close(open("file", O_WRONLY | O_CREAT, 0644));
	for (i = 0; i < n && !strcmp(argv[1], "rename"); i++) {
		char a[32];

		snprintf(a, sizeof(a), "s/a%d", i);
		close(open(a, O_WRONLY | O_CREAT, 0644));
	}
	sa.sa_flags = strcmp(argv[3], "restart") ? 0 : SA_RESTART;
	sigaction(SIGALRM, &sa, NULL);
	if (strcmp(argv[3], "none"))
		setitimer(ITIMER_REAL, &every, NULL);
	for (i = 0; i < n; i++) {
		if (once(argv[1], i) == 0)
			good++;
		else if (errno == EINTR)
			eintr++;
		else
			other++;
	}
	setitimer(ITIMER_REAL, &none, NULL);
	fds[0] = open("/dev/null", O_RDONLY);
	printf("%d %d %d %d %d %d\n", good, eintr, other,
	       count(!strcmp(argv[1], "mkdir") || !strcmp(argv[1], "open") ? 'a' : 'b'),
	       (int)signals, fds[0]);
	return 0;
}
