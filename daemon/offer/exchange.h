/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Executes an offer or an answer, from its SDP to the reply. */
#ifndef OFFER_EXCHANGE_H
#define OFFER_EXCHANGE_H

#include "call/call.h"

/* now_ns: CLOCK_REALTIME. The reply's SDP is in the pool. On errors the call is unchanged, and no
 * new call is left. */
void calls_offer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out);

void calls_answer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out);

/* One-way media: publish and subscribe request also fill dict with the parties; the answer to a
 * subscription has no SDP. */
void calls_publish(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict);

void calls_subscribe(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict);

void calls_subscribe_answer(struct calls *c, struct pool *p, const struct ng_request *r,
	uint64_t now_ns, struct call_reply *out);

#endif
