/* execs.c - ways to start a program that shells do not have.
 *
 *   execs show                      argv, one a line, the environment's MARK, the folder, open fds
 *   execs at DIR NAME [FLAGS]       execveat(open(DIR), NAME, {"at", "show"}, FLAGS)
 *   execs fd PATH                   fexecve(open(PATH, O_PATH))
 *   execs memfd PATH                copies PATH to a memfd, and fexecve's that
 *   execs thread PATH               from a thread that is not the first
 *   execs spawn PATH | vfork PATH   posix_spawn, vfork
 *   execs huge BYTES COUNT PATH     COUNT arguments of BYTES bytes each
 *   execs env null|odd|bad|huge PATH   PATH with such an environment
 *   execs as NAME PATH ARG...       PATH with NAME as argv[0] */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *show_argv[] = { "at", "show", "one", "two words", "", NULL };

static int failed(void)
{
	printf("%s\n", strerrorname_np(errno));
	return 1;
}

static int show(int argc, char **argv)
{
	char here[4096];
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int i, fds = 0;

	for (i = 0; i < argc; i++)
		printf("[%.200s]", argv[i]);
	printf("\nMARK=%s\n", getenv("MARK") ? getenv("MARK") : "");
	printf("cwd=%s\n", getcwd(here, sizeof(here)) ? here : "?");
	while (d && (e = readdir(d)))
		fds += e->d_name[0] != '.';
	printf("fds=%d\nargc=%d\n", fds - 1, argc);
	return 0;
}

static void *in_thread(void *path)
{
	execv(path, show_argv);
	failed();
	exit(1);
}

static int wait_for(pid_t pid)
{
	int st = 0;

	if (pid < 0)
		return failed();
	waitpid(pid, &st, 0);
	return WEXITSTATUS(st);
}

static int spawned(const char *path)
{
	pid_t pid;
	int err = posix_spawn(&pid, path, NULL, NULL, show_argv, environ);

	if (err) {
		errno = err;
		return failed();
	}
	return wait_for(pid);
}

static int vforked(const char *path)
{
	volatile int err = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		execv(path, show_argv);
		err = errno;
		_exit(1);
	}
	if (err) {
		errno = err;
		failed();
	}
	return wait_for(pid);
}

static int from_memory(const char *path)
{
	int in = open(path, O_RDONLY), out = memfd_create("program", MFD_CLOEXEC);
	struct stat st;

	if (in < 0 || out < 0 || fstat(in, &st) < 0 ||
	    sendfile(out, in, NULL, (size_t)st.st_size) != st.st_size)
		return 2;
	syscall(SYS_execveat, out, "", show_argv, environ, AT_EMPTY_PATH);
	return failed();
}

static int huge(size_t bytes, int count, char *path)
{
	char **argv = calloc((size_t)count + 4, sizeof(*argv));
	char *text = malloc(bytes + 1);
	int i;

	memset(text, 'x', bytes);
	text[bytes] = 0;
	argv[0] = path;
	argv[1] = "show";
	for (i = 0; i < count; i++)
		argv[2 + i] = text;
	execv(path, argv);
	return failed();
}

static int with_env(const char *what, char *path)
{
	static char *odd[] = { "PLAIN", "TWICE=1", "TWICE=2", "=x", "A_TOKEN=1", "", "LAST=", NULL };
	char *huge = malloc(120001), *many[40], **env = NULL, *args[] = { path, NULL };

	memset(huge, 'x', 120000);
	huge[0] = 'H';
	huge[1] = '=';
	huge[120000] = 0;
	for (int i = 0; i < 39; i++)
		many[i] = huge;
	many[39] = NULL;
	if (!strcmp(what, "odd"))
		env = odd;
	else if (!strcmp(what, "bad"))
		env = (char **)16;
	else if (!strcmp(what, "huge"))
		env = many;
	syscall(SYS_execve, path, args, env);
	return failed();
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int fd;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "show"))
		return show(argc, argv);
	if (argc > 3 && !strcmp(argv[1], "at")) {
		fd = open(argv[2], O_PATH | O_CLOEXEC);
		syscall(SYS_execveat, fd, argv[3], show_argv, environ,
			argc > 4 ? (int)strtol(argv[4], NULL, 0) : 0);
		return failed();
	}
	if (argc == 3 && !strcmp(argv[1], "fd")) {
		fd = open(argv[2], O_PATH | O_CLOEXEC);
		syscall(SYS_execveat, fd, "", show_argv, environ, AT_EMPTY_PATH);
		return failed();
	}
	if (argc == 3 && !strcmp(argv[1], "memfd"))
		return from_memory(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "thread")) {
		pthread_create(&thread, NULL, in_thread, argv[2]);
		pthread_join(thread, NULL);
	}
	if (argc == 3 && !strcmp(argv[1], "spawn"))
		return spawned(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "vfork"))
		return vforked(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "env"))
		return with_env(argv[2], argv[3]);
	if (argc == 5 && !strcmp(argv[1], "huge"))
		return huge(strtoul(argv[2], NULL, 0), atoi(argv[3]), argv[4]);
	if (argc > 3 && !strcmp(argv[1], "as")) {
		fd = open(argv[3], O_PATH | O_CLOEXEC);
		argv[3] = argv[2];
		syscall(SYS_execveat, fd, "", argv + 3, environ, AT_EMPTY_PATH);
		return failed();
	}
	return 99;
}
