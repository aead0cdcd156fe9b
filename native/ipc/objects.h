/* objects.h - the System V objects of one run: shared memory, semaphores, queues.
 *
 * The kernel has one space of ids and keys for the whole machine, and programs
 * of the same user reach each other's objects there. So a program's key is
 * private to the run: the object is made under a random key, and this table
 * says which of the run's keys that stands for. An id counts as the run's while
 * the kernel has, under that id, an object with that random key: ids come to be
 * used again, and programs outside may remove what the run made.
 *
 * The table lies in memory that is shared with the guardian, so that it can
 * remove what a supervisor that died has left. sv_ipc_get and sv_ipc_check may
 * be called by all threads of one process at once. */
#ifndef SV_IPC_OBJECTS_H
#define SV_IPC_OBJECTS_H

#include "model.h"

#include <sys/types.h>

enum sv_ipc_kind { SV_IPC_SHM, SV_IPC_SEM, SV_IPC_MSG };

/* Objects of each kind that a run may have; the machine's own limit is 4,096
 * segments for all. */
enum { SV_IPC_MAX = 1024 };

struct sv_ipc;

/* NULL = out of memory. Children made by fork share the table. */
struct sv_ipc *sv_ipc_new(void);
/* Removes all objects. Takes no lock: for when nobody else uses the table. */
void sv_ipc_clear(struct sv_ipc *t);
/* The same, and the table's end in this process. NULL is fine. */
void sv_ipc_close(struct sv_ipc *t);

/* shmget, semget or msgget with the identity of the calling thread; arg is the
 * size or the number of semaphores. An id, or -errno as the kernel's. */
int sv_ipc_get(struct sv_ipc *t, enum sv_ipc_kind kind, key_t key, uint64_t arg, int flags);
/* 0: the id is the run's. -EINVAL: there is no such object; -EPERM: it is
 * somebody else's; -ENOSYS: this kernel has none at all. */
int sv_ipc_check(struct sv_ipc *t, enum sv_ipc_kind kind, int id);

#endif
