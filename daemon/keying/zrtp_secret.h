/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The secret that an exchange of ZRTP leaves for further streams of the same terminal (RFC 6189
 * 4.4.3). Calls hold it and save it, so that it survives a restart. */
#ifndef KEYING_ZRTP_SECRET_H
#define KEYING_ZRTP_SECRET_H

#include "base/bytes.h"

#define ZRTP_SESS_MAX 48u /* bytes of ZRTPSess: the length of the longest hash */

struct zrtp_secret { /* wipe it */
	bool known;
	uint8_t hash; /* enum zrtp_hash */
	/* enum zrtp_cipher, zrtp_tag: our Commit for a further stream names them, too. Zero in
	 * calls of an earlier version: those that every terminal has. */
	uint8_t cipher, tag;
	bool passive; /* the terminal never commits */
	uint8_t sess[ZRTP_SESS_MAX];
	/* Of the terminal's Hello. Another stream of the same ZID has another H3. */
	uint8_t zid[12], h3[32];
};

#endif
