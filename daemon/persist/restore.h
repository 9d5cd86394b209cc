/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Restores a saved call, without sending an index twice. */
#ifndef PERSIST_RESTORE_H
#define PERSIST_RESTORE_H

#include "call/call.h"

/* Restores a call: same ports, same keys, later indexes. whole, and state if there is one: the
 * stored bytes. 0: *why is NULL, or one line about parts that were not restored; -EEXIST: the call
 * exists; other errors: nothing changed, and *why is one line. */
int calls_restore(struct calls *c, struct pool *p, struct str whole, struct str state,
	uint64_t now_ns, const char **why);

#endif
