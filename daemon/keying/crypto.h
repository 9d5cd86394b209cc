/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What crypto.c has for others. */
#ifndef KEYING_CRYPTO_H
#define KEYING_CRYPTO_H

#include "call/plan.h"

struct crypto_refused {  /* the first a=crypto line that was left out */
	uint32_t line;   /* from 1, 0: none was */
	const char *why; /* constant */
};

/* Bit of the suite, and NG_SDES_UN*, that a leg speaks by now: what a script once allowed stays
 * good for re-INVITEs. */
uint32_t crypto_in_force(const struct leg *leg);
uint32_t crypto_params_in_force(const struct leg *leg);

struct crypto_rules {    /* what a line of a terminal must keep to */
	uint32_t suites; /* bit per suite */
	uint32_t params; /* NG_SDES_UN*, see sdes_policy */
	const struct neg_in *in;
};

/* Which of a media's a=crypto lines we could accept, in the terminal's order. */
uint32_t crypto_lines(struct sdes out[LEG_MAX_LINES], struct sdes_bag *bag,
	const struct sdp_media *m, const struct crypto_rules *rules,
	struct crypto_refused *refused);

/* The line of the answer that fits an offer of ours, and our key for it; false if none does. */
bool crypto_accepted(struct sdes *out, struct sdes_bag *bag, struct our_key **ours, struct leg *leg,
	const struct sdp_media *m, const struct neg_in *in, struct crypto_refused *refused);

/* Decide on the lines for an offer to leg; asked.suite[] tells which. Suites of the offerer go
 * first. */
void crypto_offer(struct leg *leg, const struct leg_said *offerer, struct neg_in *in);

/* Our key for this line of the terminal's offer: the one we had, or a fresh one. NULL if random
 * bytes ran out. */
struct our_key *crypto_answer(struct leg *leg, const struct sdes *line, struct neg_in *in);

/* Which line of the offer to answer: what is in force; else prefer, the suite that the other side
 * accepted; else the first in the policy's order, which is the strongest. Flags of the answer,
 * only- and no-, choose among the lines (as long as they leave any: flags meant for the other side
 * must not end the call). NULL if there is none. */
const struct sdes *crypto_choose(
	const struct leg *leg, enum srtp_suite_id prefer, const struct neg_in *in);
struct our_key *crypto_ours(struct leg *leg, enum srtp_suite_id suite);

/* Put into force. NULL: plain. */
void crypto_set_rx(struct leg *leg, const struct sdes *s, const struct sdes_bag *bag);
void crypto_set_tx(struct leg *leg, struct our_key *k);

#endif
