/* exec_over.h - what an exec's plan keeps for when its outcome is known. */
#ifndef SV_BROKER_EXEC_OVER_H
#define SV_BROKER_EXEC_OVER_H

#include "broker/work.h"

/* What the record needs once the program runs. */
struct sv_exec_memo {
	uint32_t ops;
	int err;
	bool counted;		/* as an exec: given back where it comes to nothing */
	size_t path_len;
	char path[];
};

#endif
