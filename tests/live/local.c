/* local.c - local sockets as an attacker would have them.
 *
 *   local race N INSIDE OUTSIDE   binds and serves INSIDE, connects N times to an address
 *                                 that another thread flips to OUTSIDE; prints what answered
 *   local swap N FOLDER OUTSIDE   binds names in FOLDER while somebody moves OUTSIDE there
 *   local kinds                   which sockets listen
 *   local queue PATH              more connections than the queue holds, then a signal
 *   local identity PATH           as somebody else, to one's own server */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *outcome(long rc)
{
	return rc < 0 ? strerrorname_np(errno) : "ok";
}

static struct sockaddr_un address(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	return a;
}

static int serve(const char *path, int queue)
{
	struct sockaddr_un a = address(path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, queue) < 0) {
		printf("serve %s\n", outcome(-1));
		exit(1);
	}
	return fd;
}

static struct sockaddr_un shared, good, bad;
static volatile int over;

/* The other thread's connect reads it, which the compiler does not know. */
static void put(const struct sockaddr_un *a)
{
	memcpy(shared.sun_path, a->sun_path, sizeof(a->sun_path));
	__asm__ volatile("" ::: "memory");
	for (volatile int i = 0; i < 400; i++)
		;
}

static void *flip(void *unused)
{
	(void)unused;
	while (!over) {
		put(&bad);
		put(&good);
	}
	return NULL;
}

static void *accept_all(void *fd)
{
	for (;;) {
		int c = accept(*(int *)fd, NULL, NULL);

		if (c < 0)
			return NULL;
		if (write(c, "i", 1) != 1)
			return NULL;
		close(c);
	}
}

static void race(int n, const char *inside, const char *outside)
{
	int server = serve(inside, 64), in = 0, out = 0, refused = 0;
	pthread_t a, f;

	good = address(inside);
	bad = address(outside);
	shared = good;
	pthread_create(&a, NULL, accept_all, &server);
	pthread_create(&f, NULL, flip, NULL);
	for (int i = 0; i < n; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		char c = 0;

		if (connect(fd, (struct sockaddr *)&shared, sizeof(shared)) < 0)
			refused++;
		else if (read(fd, &c, 1) == 1)
			c == 'i' ? in++ : out++;
		close(fd);
	}
	over = 1;
	pthread_join(f, NULL);
	printf("inside %d outside %d refused %d\n", in, out, refused);
}

static char victim[108];
static char spot[108];

/* Puts the outside socket where one was just bound. */
static void *mover(void *unused)
{
	(void)unused;
	while (!over) {
		rename(spot, victim);
		rename(victim, spot);
	}
	return NULL;
}

static void swap(int n, const char *folder, const char *outside)
{
	int reached = 0, bound = 0;
	pthread_t m;

	snprintf(spot, sizeof(spot), "%s/s", folder);
	snprintf(victim, sizeof(victim), "%s", outside);
	pthread_create(&m, NULL, mover, NULL);
	for (int i = 0; i < n; i++) {
		struct sockaddr_un a = address(spot);
		int s = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);
		char byte;

		bound += bind(s, (struct sockaddr *)&a, sizeof(a)) == 0;
		reached += connect(c, (struct sockaddr *)&a, sizeof(a)) == 0 && read(c, &byte, 1) == 1;
		close(c);
		close(s);
	}
	over = 1;
	pthread_join(m, NULL);
	printf("bound %s reached %d\n", bound ? "some" : "none", reached);
}

static void kinds(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int tcp = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un hidden = { .sun_family = AF_UNIX, .sun_path = "\0name" };

	printf("tcp bind %s\n", outcome(bind(tcp, (struct sockaddr *)&any, sizeof(any))));
	printf("tcp listen %s\n", outcome(listen(tcp, 1)));
	printf("unbound %s\n", outcome(listen(local, 1)));
	printf("abstract %s\n", outcome(bind(local, (struct sockaddr *)&hidden, sizeof(hidden))));
	printf("file %s\n", outcome(listen(0, 1)));
	printf("none %s\n", outcome(listen(99, 1)));
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void queue(const char *path)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct sockaddr_un a = address(path);
	int server = serve(path, 0), first = socket(AF_UNIX, SOCK_STREAM, 0), status;
	int second = socket(AF_UNIX, SOCK_STREAM, 0), eager = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	pid_t pid;

	sigaction(SIGALRM, &sa, NULL);
	printf("first %s\n", outcome(connect(first, (struct sockaddr *)&a, sizeof(a))));
	printf("eager %s\n", outcome(connect(eager, (struct sockaddr *)&a, sizeof(a))));
	ualarm(300000, 300000);	/* again and again: the first may come before the call */
	printf("second %s\n", outcome(connect(second, (struct sockaddr *)&a, sizeof(a))));
	ualarm(0, 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		usleep(300000);
		accept(server, NULL, NULL);
		_exit(0);
	}
	printf("third %s\n", outcome(connect(second, (struct sockaddr *)&a, sizeof(a))));
	waitpid(pid, &status, 0);
}

static void identity(const char *path)
{
	struct sockaddr_un a = address(path);
	int server = serve(path, 4), c = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)server;
	if (setresuid(65534, 65534, 65534) < 0)
		exit(2);
	printf("connect %s\n", outcome(connect(c, (struct sockaddr *)&a, sizeof(a))));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "race"))
		race(atoi(argv[2]), argv[3], argv[4]);
	else if (!strcmp(mode, "swap"))
		swap(atoi(argv[2]), argv[3], argv[4]);
	else if (!strcmp(mode, "kinds"))
		kinds();
	else if (!strcmp(mode, "queue"))
		queue(argv[2]);
	else if (!strcmp(mode, "identity"))
		identity(argv[2]);
	return 0;
}
