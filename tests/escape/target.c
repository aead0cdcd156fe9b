/* target.c - the program whose running is the question. Its first act tells
 * through descriptor 9 who ran: 'F' when it is called forbidden or was given
 * the argument "bad", else 'A'. Nothing that ends it later takes that back. */
#include <string.h>
#include <unistd.h>

#ifndef FORBIDDEN
#define FORBIDDEN 0
#endif

/* In data and never 0 or 1, so that both programs are the same but for one byte. */
static volatile int forbidden = FORBIDDEN + 2;

int main(int argc, char **argv)
{
	int bad = forbidden == 3 || (argc > 1 && strcmp(argv[1], "bad") == 0);

	if (write(9, bad ? "F" : "A", 1) != 1)
		return 77;
	return bad ? 66 : 0;
}
