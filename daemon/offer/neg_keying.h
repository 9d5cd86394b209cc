/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interface of exchanges to keying/: a leg's keys, and the attributes of the plan. */
#ifndef OFFER_NEG_KEYING_H
#define OFFER_NEG_KEYING_H

#include "call/plan.h"
#include "keying/keying.h"

/* Reads the terminal's offer. False with plan->error if no answer could fit it. */
bool neg_read_offer(
	struct plan *plan, struct leg *l, const struct sdp_media *m, uint32_t i, struct neg_in *in);
/* l may be NULL. */
bool neg_could_accept(const struct neg_in *in, struct leg *l, const struct sdp_media *m);

struct neg_offer_keys {
	struct leg *from, *to;
	bool paired;        /* these two sides were peers before */
	bool ours_only;     /* see keying_offer */
	bool opportunistic; /* keys are offered in RTP, too (RFC 8643) */
	bool later;         /* neg_end_offer() follows */
};
/* Writes the m-line of our offer. False with plan->error. */
bool neg_write_offer(struct plan *plan, const struct neg_offer_keys *how, const struct sdp_media *m,
	uint32_t i, struct neg_in *in);

/* Call it after all m-lines of our offer to this side were written. Writes lines that serve several
 * of them. */
void neg_end_offer(struct plan *plan, struct side *to, struct neg_in *in);

/* Reads the answer to our offer: puts the answerer's keys, or RTP, into force. offerer may be NULL.
 * *joint: the keying spans both legs, so the offerer's SDP must carry its answer. */
void neg_read_answer(struct plan *plan, struct keying_answer *a, struct leg *l, struct leg *offerer,
	uint32_t i, struct neg_in *in);
/* Writes our answer to the offerer, afterwards. a is zero except media if nobody answered
 * (publish). */
void neg_write_answer(
	struct plan *plan, struct keying_answer *a, struct leg *l, uint32_t i, struct neg_in *in);

/* The suites that the sender may use, by the script's minimum: bit per suite. */
uint32_t neg_required(const struct ng_request *r);

#endif
