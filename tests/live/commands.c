/* commands.c - what ioctl and setsockopt answer. Numbers are hexadecimal.
 *
 *   commands ioctl REQUEST...        errno of each, asked of a pipe
 *   commands group TYPE              "direction number" of those that are not EPERM, as above
 *   commands socket LEVEL OPTION...  errno of each pair, asked of a TCP socket of IPv6, or
 *                                    of IPv4 where the level is its own
 *   commands filter                  errno of a classic filter for a TCP socket of one's own
 *   commands terminal REQUEST ARG... errno of each pair, asked of stdin in a new session */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* No file system knows a pipe, and nothing lies at the end of memory: whatever is
 * let through does nothing. */
static int a_pipe(void)
{
	int ends[2];

	return pipe(ends) ? -1 : ends[0];
}

static int say(long rc)
{
	printf("%s\n", rc < 0 ? strerrorname_np(errno) : "done");
	return fflush(stdout);
}

static int ioctls(char **request)
{
	const int fd = a_pipe();

	for (; *request; request++)
		say(syscall(SYS_ioctl, fd, strtoul(*request, NULL, 16), -1L));
	return 0;
}

static int group(unsigned long type)
{
	static const unsigned long sizes[] = { 0, 4, 8, 40, 4096 };
	const int fd = a_pipe();

	for (unsigned long at = 0; at < 4 * 256; at++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			if (syscall(SYS_ioctl, fd, (at >> 8) << 30 | sizes[i] << 16 | type << 8 |
					    (at & 0xff), -1L) == 0 || errno != EPERM) {
				printf("%lu %lu\n", at >> 8, at & 0xff);
				break;
			}
	return 0;
}

/* Zeros are no table of a filter. */
static int options(char **pair)
{
	static const char zeros[4096];

	for (; pair[0] && pair[1]; pair += 2) {
		const unsigned long level = strtoul(pair[0], NULL, 16);
		const int fd = socket((uint32_t)level == IPPROTO_IP ? AF_INET : AF_INET6,
				      SOCK_STREAM, 0);

		say(syscall(SYS_setsockopt, fd, level, strtoul(pair[1], NULL, 16), zeros,
			    sizeof(zeros)));
		close(fd);
	}
	return 0;
}

static int filter(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	struct sock_fprog prog = { 1, &all };

	return say(setsockopt(socket(AF_INET, SOCK_STREAM, 0), SOL_SOCKET, SO_ATTACH_FILTER,
			      &prog, sizeof(prog)));
}

/* A process that leads its group can have no new session. */
static int terminal(char **pair)
{
	pid_t pid = fork();
	int status;

	if (pid)
		return waitpid(pid, &status, 0) == pid ? status : 99;
	if (setsid() < 0)
		_exit(99);
	for (; pair[0] && pair[1]; pair += 2)
		say(syscall(SYS_ioctl, 0, strtoul(pair[0], NULL, 16), strtoul(pair[1], NULL, 16)));
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "ioctl"))
		return ioctls(argv + 2);
	if (argc == 3 && !strcmp(argv[1], "group"))
		return group(strtoul(argv[2], NULL, 16));
	if (argc > 3 && !strcmp(argv[1], "socket"))
		return options(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "filter"))
		return filter();
	if (argc > 3 && !strcmp(argv[1], "terminal"))
		return terminal(argv + 2);
	return 99;
}
