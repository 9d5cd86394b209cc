/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All that the packet side needs to know of one direction of a media: its master keys, and how they
 * are used. Where they come from is keying's business. */
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
	/* Passed through. rx: what comes from the terminal leaves unchanged. tx: the terminal gets
	 * what the other one sent, and nothing of ours; then there are no keys. */
	bool pass;
	/* Agreed on, and the keys are still to come: nothing is accepted or sent. keys is 0. */
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

/* The same suite, key, salt and MKI. Takes the same time for all keys of a suite. */
bool srtp_same_key(const struct srtp_master *a, const struct srtp_master *b);
/* And the same session parameters: the session keys that were derived for one serve the other. */
bool srtp_same_session(const struct srtp_master *a, const struct srtp_master *b);
/* The same key bytes, whatever suite, salt and MKI. Of keys of different length the common part is
 * compared. */
bool srtp_shares_key(const struct srtp_master *a, const struct srtp_master *b);

#endif
