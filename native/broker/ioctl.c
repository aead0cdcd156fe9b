/* ioctl.c - the commands that the filter's tests pick out: most are refused. */
#include "broker/work.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

static const char *reason(uint32_t cmd)
{
	switch (cmd >> 8 & 0xff) {
	case 'T':
		return "types into a terminal, or takes it from others";
	case 0x89:
	case 0x8b:
		return "network interfaces";
	default:
		return "changes inodes, volumes or whole file systems past write access";
	}
}

/* SIOCG*: what interfaces there are, and how they are set; of wireless ones odd numbers get. */
static bool only_reads(uint32_t cmd)
{
	static const uint8_t reading[] = { 0x03, 0x04, 0x05, 0x06, 0x07, 0x10, 0x12, 0x13, 0x15, 0x17,
					   0x19, 0x1b, 0x1d, 0x1f, 0x21, 0x27, 0x33, 0x42, 0x70 };

	if (cmd >> 8 == 0x8b)
		return cmd & 1;
	return cmd >> 8 == 0x89 && memchr(reading, (int)(cmd & 0xff), sizeof(reading));
}

/* TIOCSCTTY with an argument takes the terminal away from the session that has
 * it, which root may do. */
void sv_do_ioctl(struct sv_work *w)
{
	const uint32_t cmd = (uint32_t)w->call.args[1];

	if ((cmd == TIOCSCTTY && w->call.args[2] == 0) || only_reads(cmd))
		sv_let_go(w);
	else
		sv_refuse_why(w, EPERM, reason(cmd));
}
