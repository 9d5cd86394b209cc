/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offer and answer (RFC 3264, RFC 4568, RFC 5761), as pure functions: they look at nothing but
 * their arguments and change nothing but the copy of the call they were given. */
#ifndef OFFER_NEGOTIATE_H
#define OFFER_NEGOTIATE_H

#include "call/model.h"
#include "call/plan.h"

struct calls;

/* --- Steps of an exchange that all kinds share (negotiate.c, neg_offer.c, neg_answer.c) ------- */

bool plan_init(struct plan *plan, struct neg_in *in);
uint8_t neg_local(struct plan *plan, const struct neg_in *in, struct str name, int family);
int neg_family(const struct sdp *s);
void neg_said(struct leg *l, const struct sdp_media *m, const struct neg_in *in);
void neg_set_kind(struct leg *l, const struct sdp_media *m);
/* Whether the m-line is not of the leg's kind, "audio" for instance. A leg without a kind takes
 * any. */
bool neg_other_kind(const struct leg *l, const struct sdp_media *m);
/* Warns that m-line i is refused for that. */
void neg_warn_kind(struct plan *plan, struct pool *p, const struct leg *l,
	const struct sdp_media *m, uint32_t i);
void neg_into_force(
	struct leg *l, enum sdp_proto proto, enum sdp_dir dir, const struct sdp_media *m);
void neg_close(struct leg *l, bool for_good);
/* Whether this m-line would be one more than the policy allows for a party; then adds a warning. */
bool neg_too_many(struct plan *plan, const struct side *from, uint32_t media,
	const struct sdp_media *m, const struct neg_in *in);

#endif
