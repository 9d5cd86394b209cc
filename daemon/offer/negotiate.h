/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offer and answer (RFC 3264, RFC 4568, RFC 5761) as pure functions: they read their arguments, and
 * change only the given copy of the call. */
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
/* Whether the m-line's kind, such as "audio", differs from the leg's. A leg without a kind accepts
 * any. */
bool neg_other_kind(const struct leg *l, const struct sdp_media *m);
/* Warns that m-line i is refused for its kind. */
void neg_warn_kind(struct plan *plan, struct pool *p, const struct leg *l,
	const struct sdp_media *m, uint32_t i);
void neg_into_force(
	struct leg *l, enum sdp_proto proto, enum sdp_dir dir, const struct sdp_media *m);
void neg_close(struct leg *l, bool for_good);
/* Whether this m-line exceeds the policy's limit for a party; then adds a warning. */
bool neg_too_many(struct plan *plan, const struct side *from, uint32_t media,
	const struct sdp_media *m, const struct neg_in *in);

#endif
