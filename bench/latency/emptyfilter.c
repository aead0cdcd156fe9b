/* emptyfilter.c - `emptyfilter CMD [ARG...]`: a filter of one instruction, allow.
 *
 * What the kernel itself asks for having any seccomp filter at all: the floor
 * under "a syscall that no rule speaks about". */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter f[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog p = { 1, f };

	if (argc < 2)
		return 125;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p) < 0) {
		perror("seccomp");
		return 125;
	}
	execvp(argv[1], argv + 1);
	return 127;
}
