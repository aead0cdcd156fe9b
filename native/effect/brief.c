/* brief.c - a timer that interrupts this thread. */
#include "effect/brief.h"

#include "effect/side.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { PATIENCE = 20 * 1000 * 1000, AGAIN = 1000 * 1000 };	/* ns */

static atomic_flag one_waits = ATOMIC_FLAG_INIT;

static int connect_within(int fd, const struct sockaddr *to, socklen_t len)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SV_WAKE_SIGNAL };
	/* again and again: the first may come just before the call sleeps */
	const struct itimerspec when = { .it_value = { .tv_nsec = PATIENCE },
					 .it_interval = { .tv_nsec = AGAIN } };
	timer_t timer;
	int rc;

	ev.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) < 0)
		return -EINTR;
	rc = timer_settime(timer, 0, &when, NULL) < 0 ? -EINTR : 0;
	if (rc == 0 && connect(fd, to, len) < 0)
		rc = -errno;
	timer_delete(timer);
	return rc;
}

int sv_brief_connect(int fd, const struct sockaddr *to, socklen_t len, bool waits)
{
	int rc;

	if (!waits)
		return connect_within(fd, to, len);
	if (atomic_flag_test_and_set(&one_waits))
		return -EINTR;
	rc = connect_within(fd, to, len);
	atomic_flag_clear(&one_waits);
	return rc;
}
