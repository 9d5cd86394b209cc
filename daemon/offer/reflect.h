/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Refuses keys that a terminal must not send under, such as our own, and keys of its choice that we
 * must not send under. */
#ifndef OFFER_REFLECT_H
#define OFFER_REFLECT_H

#include "keying/state.h"
#include "srtp/kdf.h"

/* NULL, or the reason why the terminal must not send under this key. arg: the neg_in. end_to_end:
 * the key of the other terminal is allowed. See keying_in.refusal. */
const char *reflect_refusal(const void *arg, const struct srtp_master *key, bool end_to_end);

/* NULL, or the reason why we must not send under this key, which a terminal chose. leg: the state
 * of the leg that is to have it. See keying_in.tx_refusal. */
const char *reflect_tx_refusal(
	const void *arg, const struct srtp_master *key, const struct keying_state *leg);

#endif
