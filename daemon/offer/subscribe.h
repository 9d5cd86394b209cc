/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One-way media: ng's publish, subscribe and unsubscribe. */
#ifndef OFFER_SUBSCRIBE_H
#define OFFER_SUBSCRIBE_H

#include "call/plan.h"

void negotiate_publish(struct plan *out, struct call *next, struct neg_in *in);
void negotiate_subscribe(struct plan *out, struct call *next, struct neg_in *in);
void negotiate_subscribe_answer(struct plan *out, struct call *next, struct neg_in *in);

/* Adds the listener, its sources and their media to the reply. */
void subscribe_reply(struct pool *p, const struct call *c, const struct ng_request *r,
	uint8_t listener, struct ngval *dict);

#endif
