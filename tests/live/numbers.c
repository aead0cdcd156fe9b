/* numbers.c - system calls by number.
 *
 *   numbers NUMBER...   the errno of each with arguments that are all -1
 *   numbers int80       getpid(2) through the 32-bit gate
 *   numbers x32         getpid(2) by its x32 number */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int i;

	if (argc == 2 && !strcmp(argv[1], "int80")) {
		long rc = 20;

		__asm__ volatile("int $0x80" : "+a"(rc) : : "memory", "r8", "r9", "r10", "r11");
		return rc > 0 ? 0 : 1;
	}
	if (argc == 2 && !strcmp(argv[1], "x32"))
		return syscall(0x40000000 + 39) > 0 ? 0 : 1;
	for (i = 1; i < argc; i++) {
		errno = 0;
		syscall(atol(argv[i]), -1L, -1L, -1L, -1L, -1L, -1L);
		printf("%s %s\n", argv[i], strerrorname_np(errno));
	}
	return 0;
}
