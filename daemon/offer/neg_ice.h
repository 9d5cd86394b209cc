/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICE in offers and answers (RFC 8445, RFC 8839): which leg uses it, and with which credentials. */
#ifndef OFFER_NEG_ICE_H
#define OFFER_NEG_ICE_H

#include "call/plan.h"

/* Random bytes that one m-line needs at most. */
#define NEG_ICE_RANDOM (2 * (SESSION_UFRAG + SESSION_PWD))

/* Keeps the candidates that checks may be sent to. Returns their number. */
uint32_t neg_ice_filter(struct ice_candidate *c, uint32_t n, const struct reach *r);

/* Reads ICE of m-line i from a terminal's offer. It waits for the answer. */
void neg_ice_said(struct leg *l, uint32_t i, const struct neg_in *in);
/* from: NULL for a listener, which has several sources. Decides whether our offer to the leg has
 * ICE: as the offerer's, unless ICE= says otherwise. False
 * if random bytes ran out. */
bool neg_ice_offer(const struct leg *from, struct leg *to, struct neg_in *in);
/* Reads the answer to that offer, of m-line i. */
void neg_ice_answered(struct leg *l, uint32_t i, const struct neg_in *in);
/* Decides whether our answer to the offerer has ICE. False if random bytes ran out. */
bool neg_ice_answer(struct leg *l, struct neg_in *in);

/* With ICE in force, media use the selected pairs instead of the SDP's address. Call it after
 * setting the leg's remotes. */
void neg_ice_remotes(struct leg *l);

/* Writes the attributes of our offer (asked) or answer to the leg, as whole lines; empty without
 * ICE. addr: our address for the terminal. s = NULL without memory. */
struct str neg_ice_lines(
	const struct leg *l, bool is_answer, const struct endpoint *addr, const struct neg_in *in);

#endif
