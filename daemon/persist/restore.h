/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Restores a saved call, without sending an index twice. */
#ifndef PERSIST_RESTORE_H
#define PERSIST_RESTORE_H

#include "call/call.h"

/* Bring a call back: same ports, same keys, indexes behind those that were used. whole, and state
 * if there is one, are what was written. 0, then *why is NULL or one line on what did not come with
 * it; -EEXIST: it is there already; else nothing was changed, and *why is one line. */
int calls_restore(struct calls *c, struct pool *p, struct str whole, struct str state,
	uint64_t now_ns, const char **why);

#endif
