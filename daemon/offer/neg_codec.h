/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Codecs of an offer and its answer: the terminal may choose the other law of G.711, and the
 * offerer still gets its own in the answer. Pure. */
#ifndef OFFER_NEG_CODEC_H
#define OFFER_NEG_CODEC_H

#include "call/plan.h"

/* Notes which G.711 the offerer has, and what the receiver is offered. Warns if a codec that the
 * request wants transcoded is not offered. */
void neg_codec_offer(struct plan *plan, struct leg *to, const struct sdp_media *m, uint32_t i,
	const struct neg_in *in);
/* The answer to the offerer's leg lt from that of lf, and the G.711 of both legs. */
void neg_codec_answer(struct plan_media *pm, struct leg *lf, struct leg *lt,
	const struct sdp_media *m, const struct neg_in *in);
/* The request's rules, and those that its flags add. */
const struct sdp_filter *neg_codec_filter(const struct neg_in *in);

#endif
