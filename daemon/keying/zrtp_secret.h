/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a completed exchange of ZRTP needs later: the secret for further streams of the same
 * terminal (RFC 6189 4.4.3), and the ZRTP keys, which protect GoClear and SASrelay (4.5.3). Calls
 * hold it and save it, so that it survives a restart. */
#ifndef KEYING_ZRTP_SECRET_H
#define KEYING_ZRTP_SECRET_H

#include "base/bytes.h"

#define ZRTP_SESS_MAX 48u /* bytes of ZRTPSess and MAC keys: the length of the longest hash */
#define ZRTP_CFB_MAX  32u /* bytes of the longest key of a cipher */

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
	/* Whether the members below are known. False in calls that an earlier version saved. */
	bool with_keys;
	bool initiator; /* we sent the Commit */
	bool enrolled;  /* zrtp_relay_sas() is allowed */
	bool mitm;      /* the terminal declares itself a trusted man in the middle */
	bool cleared;   /* GoClear ended its SRTP; sess has been replaced since then */
	uint8_t mac_key[2][ZRTP_SESS_MAX], key[2][ZRTP_CFB_MAX]; /* [initiator] */
};

#endif
