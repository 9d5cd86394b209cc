/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trickle ICE (RFC 8838, RFC 8840): candidates that a terminal sends after its offer or answer, in
 * a body of application/trickle-ice-sdpfrag. */
#ifndef OFFER_TRICKLE_H
#define OFFER_TRICKLE_H

#include "call/call.h"

/* The request has the flag fragment. is_answer: its to-tag names the sender. Errors are in the
 * reply; candidates of m-lines without ICE, or of other credentials, cause a warning. */
void calls_trickle(struct calls *c, struct pool *p, const struct ng_request *r, bool is_answer,
	uint64_t now_ns, struct call_reply *out);

#endif
