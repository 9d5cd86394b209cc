/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our own keys of a=crypto lines, one per suite. */
#ifndef KEYING_SDES_KEYS_H
#define KEYING_SDES_KEYS_H

#include "keying/keying.h"

struct sdes_key *sdes_key_of(struct keying_sdes *s, enum srtp_suite_id suite);

/* Our key for this line of the terminal's offer: the one we had, or a fresh one. NULL if random
 * bytes ran out. */
struct sdes_key *sdes_key_answer(
	const struct keying_leg *l, const struct sdes *line, const struct keying_in *in);

/* Our key of this suite for an offer, with a tag: the one we had, or a fresh one. NULL if
 * random bytes ran out. */
struct sdes_key *sdes_key_offer(const struct keying_leg *l, enum srtp_suite_id suite,
	bool no_rtp_auth, const struct keying_in *in);

/* Appends its a=crypto line. False without memory. */
bool sdes_key_write(struct keying_lines *to, const struct sdes_key *k, const struct keying_in *in);

#endif
