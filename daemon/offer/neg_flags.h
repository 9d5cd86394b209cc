/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Applies the flags that concern a call or a side as a whole. Pure. */
#ifndef OFFER_NEG_FLAGS_H
#define OFFER_NEG_FLAGS_H

#include "call/plan.h"

void neg_flags(struct call *c, struct side *from, const struct neg_in *in);

/* Warns about unsupported flags. */
void neg_unsupported(struct plan *plan, const struct neg_in *in);

/* The profile of the answer to this leg: that of its offer, with or without feedback as the request
 * says. m: of the answerer. */
enum sdp_proto neg_answer_proto(struct plan *plan, const struct leg *to, const struct sdp_media *m,
	uint32_t i, const struct neg_in *in);

/* Sets which sides get their own media back: by an offer, or by an answer with the flag. */
/* Of a publisher whose media are echoed: the answer's direction. An offer of media loopback is
 * accepted (RFC 6849; the relay is the mirror). */
void neg_mirror(struct plan_media *pm, const struct sdp_media *m, const struct neg_in *in);
void neg_echo(struct plan *plan, struct side *from, struct side *to, const struct neg_in *in,
	bool is_answer);

#endif
