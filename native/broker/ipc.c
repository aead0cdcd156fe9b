/* ipc.c - System V IPC: only between programs of the run.
 *
 * What makes or looks up an object is done here, with keys of the run's own
 * (ipc/objects.h). Every other call names its object by an id in a register, and
 * goes on in the kernel where the run made that object. */
#include "broker/work.h"

#include "ipc/objects.h"
#include "syscalls/nr.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <time.h>

static const char *const kind_text[] = { "shared memory", "semaphores", "message queue" };

static enum sv_ipc_kind kind_of(int nr)
{
	switch (nr) {
	case __NR_shmget: case __NR_shmat: case __NR_shmctl:
		return SV_IPC_SHM;
	case __NR_semget: case __NR_semop: case __NR_semtimedop: case __NR_semctl:
		return SV_IPC_SEM;
	default:
		return SV_IPC_MSG;
	}
}

void sv_do_ipc_get(struct sv_work *w)
{
	int rc;

	if (sv_still_valid(&w->t) < 0)
		return;
	rc = sv_ipc_get(w->sh->ipc, kind_of(w->call.nr), w->in.which, (uint64_t)w->in.length,
			(int)w->in.flags);
	if (rc < 0)
		sv_fail_call(w, -rc);
	else
		sv_give_value(w, rc);
}

enum command { BY_ID, LIMITS, TOTALS, BY_SLOT, UNKNOWN };

static enum command shm_command(int cmd)
{
	switch (cmd) {
	case IPC_RMID: case IPC_SET: case IPC_STAT: case SHM_LOCK: case SHM_UNLOCK:
		return BY_ID;
	case IPC_INFO:
		return LIMITS;
	case SHM_INFO:
		return TOTALS;
	case SHM_STAT: case SHM_STAT_ANY:
		return BY_SLOT;
	default:
		return UNKNOWN;
	}
}

static enum command sem_command(int cmd)
{
	switch (cmd) {
	case IPC_RMID: case IPC_SET: case IPC_STAT: case GETALL: case GETNCNT: case GETPID:
	case GETVAL: case GETZCNT: case SETALL: case SETVAL:
		return BY_ID;
	case IPC_INFO:
		return LIMITS;
	case SEM_INFO:
		return TOTALS;
	case SEM_STAT: case SEM_STAT_ANY:
		return BY_SLOT;
	default:
		return UNKNOWN;
	}
}

static enum command msg_command(int cmd)
{
	switch (cmd) {
	case IPC_RMID: case IPC_SET: case IPC_STAT:
		return BY_ID;
	case IPC_INFO:
		return LIMITS;
	case MSG_INFO:
		return TOTALS;
	case MSG_STAT: case MSG_STAT_ANY:
		return BY_SLOT;
	default:
		return UNKNOWN;
	}
}

static enum command command_of(const struct sv_work *w)
{
	const int cmd = (int)w->in.flags;

	switch (w->call.nr) {
	case __NR_shmctl:
		return shm_command(cmd);
	case __NR_semctl:
		return sem_command(cmd);
	case __NR_msgctl:
		return msg_command(cmd);
	default:
		return BY_ID;
	}
}

/* Can the caller's memory be read? As the kernel would, before it looks for the
 * object; 0 or an errno. */
static int readable(struct sv_work *w, uint64_t addr, size_t n)
{
	char part[4096];
	size_t k;
	int rc = 0;

	for (; n > 0 && rc == 0; n -= k, addr += k) {
		k = n < sizeof(part) ? n : sizeof(part);
		rc = sv_read_mem(&w->t, addr, part, k);
	}
	return -rc;
}

static int semop_errno(struct sv_work *w)
{
	const uint64_t *a = w->call.args;
	const uint32_t count = (uint32_t)a[2];
	struct seminfo limits;
	int err = 0;

	if (w->call.nr == __NR_semtimedop && a[3])
		err = readable(w, a[3], sizeof(struct timespec));
	if (err)
		return err;
	if (semctl(0, 0, IPC_INFO, &limits) >= 0 && count > (uint32_t)limits.semopm)
		return E2BIG;
	return count ? readable(w, a[1], count * sizeof(struct sembuf)) : EINVAL;
}

static int msgsnd_errno(struct sv_work *w)
{
	const uint64_t *a = w->call.args;
	struct msginfo limits;
	long type;
	int rc = sv_read_mem(&w->t, a[1], &type, sizeof(type));

	if (rc < 0)
		return -rc;
	if (type < 1 || msgctl(0, IPC_INFO, (struct msqid_ds *)&limits) < 0 ||
	    a[2] > (uint64_t)limits.msgmax)
		return EINVAL;
	return readable(w, a[1] + sizeof(type), a[2]);
}

/* SEMVMX, which the C library does not know. */
enum { SEM_VALUE_LIMIT = 32767 };

static int ctl_errno(struct sv_work *w, enum sv_ipc_kind kind)
{
	static const size_t sizes[] = { sizeof(struct shmid_ds), sizeof(struct semid_ds),
					sizeof(struct msqid_ds) };
	const uint64_t last = w->call.args[kind == SV_IPC_SEM ? 3 : 2];
	const int cmd = (int)w->in.flags;
	int err = 0;

	if (w->in.which < 0)
		return EINVAL;
	if (cmd == IPC_SET)
		err = readable(w, last, sizes[kind]);
	else if (kind == SV_IPC_SEM && cmd == SETVAL && (uint32_t)last > SEM_VALUE_LIMIT)
		err = ERANGE;
	return err ? err : EINVAL;
}

/* What the kernel says of an id that nobody has, after all that it looks at before. */
static int missing_errno(struct sv_work *w, enum sv_ipc_kind kind)
{
	int err = 0;

	switch (w->call.nr) {
	case __NR_shmctl: case __NR_semctl: case __NR_msgctl:
		return ctl_errno(w, kind);
	case __NR_semop: case __NR_semtimedop:
		err = semop_errno(w);
		break;
	case __NR_msgsnd:
		err = msgsnd_errno(w);
		break;
	default:
		break;
	}
	return err ? err : EINVAL;
}

static void refuse_id(struct sv_work *w, enum sv_ipc_kind kind, int rc)
{
	const int err = rc == -ENOSYS ? ENOSYS : missing_errno(w, kind);

	if (rc != -EPERM || err != EINVAL)
		return sv_fail_call(w, err);
	w->in.name[0].len = snprintf(w->in.name[0].text, sizeof(w->in.name[0].text), "%s %d",
				     kind_text[kind], w->in.which);
	sv_refuse_why(w, err, "made by a program outside the run");
}

void sv_do_ipc(struct sv_work *w)
{
	const enum sv_ipc_kind kind = kind_of(w->call.nr);
	int rc;

	switch (command_of(w)) {
	case LIMITS:
		return sv_let_go(w);
	case TOTALS:
		return sv_refuse_why(w, EPERM, "counts what programs outside the run have made");
	case BY_SLOT:
		return sv_refuse_why(w, EINVAL, "shows what programs outside the run have made");
	case UNKNOWN:
		return sv_fail_call(w, EINVAL);
	case BY_ID:
		break;
	}
	rc = sv_ipc_check(w->sh->ipc, kind, w->in.which);
	if (rc == 0)
		sv_let_go(w);
	else
		refuse_id(w, kind, rc);
}
