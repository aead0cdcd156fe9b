/* ioctl.c - the commands that the filter's tests pick out: all but one refused. */
#include "broker/work.h"

#include <errno.h>
#include <sys/ioctl.h>

static const char *reason(uint32_t cmd)
{
	switch (cmd >> 8 & 0xff) {
	case 'T':
		return "types into a terminal, or takes it from others";
	case 0x89:
		return "network interfaces";
	default:
		return "changes inodes, volumes or whole file systems past write access";
	}
}

/* TIOCSCTTY with an argument takes the terminal away from the session that has
 * it, which root may do. */
void sv_do_ioctl(struct sv_work *w)
{
	const uint32_t cmd = (uint32_t)w->call.args[1];

	if (cmd == TIOCSCTTY && w->call.args[2] == 0)
		sv_let_go(w);
	else
		sv_refuse_why(w, EPERM, reason(cmd));
}
