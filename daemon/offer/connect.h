/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects two parties of a call without an offer (ng's connect). */
#ifndef OFFER_CONNECT_H
#define OFFER_CONNECT_H

#include "call/call.h"

/* Two parties of a call speak to each other from now on (from-tag, to-tag), and those they spoke to
 * hear and send nothing; with the flag directional only what comes from from-tag goes to to-tag. */
void calls_connect(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out);

#endif
