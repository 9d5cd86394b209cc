/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends a call by command, or one of its dialogs, branches or subscribers. */
#ifndef CALL_DELETE_H
#define CALL_DELETE_H

#include "call/call.h"

struct call;

void calls_unsubscribe(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out);

/* delete and query fill dict with the tree of rtpengine's query (no keys, ever). */
void calls_delete(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict);

/* Ends these sides of a call, a bit each (delete.c). The call is replaced. 0 or a negative errno;
 * then all is as it was. */
int calls_end_sides(
	struct calls *c, struct pool *p, struct call *call, uint32_t sides, uint64_t now_ns);

#endif
