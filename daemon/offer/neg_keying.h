/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What exchanges ask of keying/: the keys of a leg, and the attributes that the plan writes. */
#ifndef OFFER_NEG_KEYING_H
#define OFFER_NEG_KEYING_H

#include "call/plan.h"
#include "keying/keying.h"

/* Reads what the terminal offers. False with plan->error when nobody could answer it. */
bool neg_read_offer(
	struct plan *plan, struct leg *l, const struct sdp_media *m, uint32_t i, struct neg_in *in);
/* l may be NULL. */
bool neg_could_accept(const struct neg_in *in, struct leg *l, const struct sdp_media *m);

struct neg_offer_keys {
	struct leg *from, *to;
	bool paired;        /* these two spoke to each other so far */
	bool ours_only;     /* see keying_offer */
	bool opportunistic; /* keys are offered in RTP, too (RFC 8643) */
};
/* Writes the m-line of an offer of ours. False with plan->error. */
bool neg_write_offer(struct plan *plan, const struct neg_offer_keys *how, const struct sdp_media *m,
	uint32_t i, struct neg_in *in);

/* The answer to our offer: the answerer's keys come into force, or RTP does. offerer may be NULL.
 * *joint: the keying holds for both legs, so the offerer's SDP must have its answer. */
void neg_read_answer(struct plan *plan, struct keying_answer *a, struct leg *l, struct leg *offerer,
	uint32_t i, struct neg_in *in);
/* The offerer's answer, after that. a zeroed but for media: nobody answered (publish). */
void neg_write_answer(
	struct plan *plan, struct keying_answer *a, struct leg *l, uint32_t i, struct neg_in *in);

/* The suites that whoever said this may speak, by the script's minimum: bit per suite. */
uint32_t neg_required(const struct ng_request *r);

#endif
