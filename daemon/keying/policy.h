/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the operator decided about keying. */
#ifndef KEYING_POLICY_H
#define KEYING_POLICY_H

#include "srtp/suite.h"

/* Which suites and session parameters. A script that asks for one by name in its flags gets it
 * nevertheless: it is the operator's as well. */
struct sdes_policy {
	uint8_t offer[SUITE_COUNT]; /* suites that we offer, in order; SUITE_PLAIN ends the list */
	uint32_t accept;            /* bit per enum srtp_suite_id: what a terminal may offer us */
	uint32_t params;            /* NG_SDES_UN*: session parameters that it may ask for */
};

#endif
