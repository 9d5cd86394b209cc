/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects two parties of a call without an offer (ng's connect). */
#ifndef OFFER_CONNECT_H
#define OFFER_CONNECT_H

#include "call/call.h"

/* Joins two parties of a call (from-tag, to-tag). Their former peers then receive and send nothing.
 * With the flag directional, media flow only from from-tag to to-tag. */
void calls_connect(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out);

#endif
