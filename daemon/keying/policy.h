/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The operator's policy for keying. */
#ifndef KEYING_POLICY_H
#define KEYING_POLICY_H

#include "srtp/preauth.h"
#include "srtp/suite.h"

/* Use of SRTP+ for requests without the key preauth. */
enum preauth_use { PREAUTH_USE_OFF, PREAUTH_USE_ACCEPT, PREAUTH_USE_OFFER };
struct preauth_policy {
	enum preauth_use use;
	enum preauth_scheme scheme; /* the one to offer */
};

/* Allowed suites and session parameters. Flags of a script may name others, because the script
 * belongs to the operator too. */
struct sdes_policy {
	uint8_t offer[SUITE_COUNT]; /* suites that we offer, in order; SUITE_PLAIN ends the list */
	uint32_t accept;            /* bit per enum srtp_suite_id: what a terminal may offer us */
	uint32_t params;            /* NG_SDES_UN*: session parameters that it may ask for */
	struct preauth_policy preauth;
};

/* Treatment of ZRTP if a request does not say. */
/* clang-format off */
/* X(id, name) */
#define ZRTP_POLICIES(X) \
	X(PASSTHROUGH, "passthrough") /* between the terminals, where both legs speak RTP */ \
	X(TERMINATE, "terminate")     /* ends here, where the other terminal does not speak it */ \
	X(OFF, "off")                 /* none; a=zrtp-hash does not pass */
/* clang-format on */
enum zrtp_policy {
#define X(id, name) ZRTP_POLICY_##id,
	ZRTP_POLICIES(X)
#undef X
		ZRTP_POLICY_COUNT
};

#endif
