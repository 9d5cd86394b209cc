/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet side's view of one direction of a media: its master keys and their use. keying/
 * provides the keys. */
#ifndef SRTP_PARAMS_H
#define SRTP_PARAMS_H

#include "srtp/kdf.h"

#define SRTP_PARAMS_KEYS 4u

struct srtp_params {
	/* Same suite and session parameters. More than one only with MKIs of the same length. We
	 * send under the first. */
	struct srtp_master key[SRTP_PARAMS_KEYS];
	uint8_t keys; /* 0: RTP in clear; then key[0].suite is SUITE_PLAIN */
	bool unencrypted_srtp, unencrypted_srtcp;
	/* SRTP+ (preauth.h): RTP has tags by a key that follows from key[0]; 0 = none, else 1 +
	 * enum preauth_scheme */
	uint8_t preauth;
	/* Passed through. rx: the terminal's packets leave unchanged. tx: the terminal gets the
	 * other terminal's packets, and none of ours; then there are no keys. */
	bool pass;
	/* Agreed on, but keys are not available yet: nothing is accepted or sent. keys is 0. */
	bool awaited;
	/* SRTCP's own key (RFC 5764 without rtcp-mux), of the same suite; SUITE_PLAIN: key[0]
	 * serves both. Then keys is 1. */
	struct srtp_master rtcp;
};

static inline bool srtp_params_are_plain(const struct srtp_params *p)
{
	return !p->keys && !p->awaited;
}

static inline enum srtp_suite_id srtp_params_suite(const struct srtp_params *p)
{
	return p->key[0].suite;
}

/* Places in arrays with one entry per key: RTP in clear has one, too. */
static inline uint32_t srtp_params_places(const struct srtp_params *p)
{
	return p->keys ? p->keys : 1;
}

/* Whether suite, key, salt and MKI are equal. Takes the same time for all keys of a suite. */
bool srtp_same_key(const struct srtp_master *a, const struct srtp_master *b);
/* Also compares session parameters: if equal, both have the same session keys. */
bool srtp_same_session(const struct srtp_master *a, const struct srtp_master *b);
/* Whether the key bytes are equal, regardless of suite, salt and MKI. Compares the common part of
 * keys of different length. */
bool srtp_shares_key(const struct srtp_master *a, const struct srtp_master *b);

#endif
