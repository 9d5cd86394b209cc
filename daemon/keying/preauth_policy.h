/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides whether a direction has tags of SRTP+ (srtp/preauth.h), by the policy and the terminal's
 * SDP. Schemes are numbers as in srtp_params.preauth: 0 = none, else 1 + enum preauth_scheme.
 * Pure. */
#ifndef KEYING_PREAUTH_POLICY_H
#define KEYING_PREAUTH_POLICY_H

#include "keying/keying.h"
#include "srtp/preauth.h"

/* Values of the request's key "preauth" and of the option --preauth. */
bool keying_preauth_accepts(const struct keying_in *in);
/* The scheme to offer; 0: none. in_force: the scheme in force with the terminal, or 0. It is
 * offered again, also where the policy only accepts. */
uint8_t keying_preauth_offers(const struct keying_in *in, uint8_t in_force);

/* a=xcipher-preauth of the terminal's m-line, as sdp_preauth_read(); 0 also if the policy does not
 * accept it. Of keyings other than SDES. */
uint8_t keying_preauth_read(const struct keying_in *in, const struct sdp_media *m);
/* Adds a=xcipher-preauth for this scheme; nothing for scheme 0. False: all lines are used, or no
 * memory is left. */
bool keying_preauth_write(struct keying_lines *to, uint8_t scheme, const struct keying_in *in);

/* The scheme, if these keys can have it; else 0. SRTP must encrypt and authenticate. With chain,
 * the payload must be encrypted. clear: UNENCRYPTED_SRTP. */
uint8_t keying_preauth_fits(uint8_t scheme, const struct srtp_master *m, bool clear);

#endif
