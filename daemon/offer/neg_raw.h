/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Negotiates media other than RTP: T.38, BFCP, TCP (RFC 3264). */
#ifndef OFFER_NEG_RAW_H
#define OFFER_NEG_RAW_H

#include "call/plan.h"

/* Whether each side gets the other's m-line unchanged. */
bool raw_passes(const struct sdp_media *m);

/* Both sides get port 0, with a warning: an unknown transport, or voice, video or text that is
 * neither RTP nor SRTP. */
bool raw_rejects(struct plan *plan, const struct sdp_media *m, uint32_t i, const struct neg_in *in);

/* Negotiates offer and answer of datagrams. */
void raw_offer(
	struct leg *from, struct leg *to, const struct sdp_media *m, const struct neg_in *in);

void raw_answer(struct plan *plan, struct side *from, struct side *to, const struct sdp_media *m,
	uint32_t i, const struct neg_in *in);

/* Whether the answer's transport fits the offer: the same, or RTP for RTP (RFC 3264 6.1). Otherwise
 * fails the plan, because no SDP for the offerer would be correct. */
bool raw_fits(struct plan *plan, const struct leg *offerer, const struct sdp_media *m, uint32_t i,
	const struct neg_in *in);

#endif
