/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a=crypto lines (RFC 4568), without the "a=crypto:". Pure. Results hold key material: wipe them.
 */
#ifndef PROTO_SDES_H
#define PROTO_SDES_H

#include "base/sbuf.h"
#include "srtp/kdf.h"

#define SDES_MAX_KEYS        4u /* of a line */
#define SDES_PREAUTH         "-xcipher-preauth"
#define SDES_PREAUTH_UNKNOWN 255 /* a scheme that we do not know */

struct sdes {
	uint32_t tag; /* 1 to 9 digits */
	/* suite, key, salt, MKI, lifetime, and the line's KDR and UNAUTHENTICATED_SRTP */
	struct srtp_master master;
	uint8_t more;    /* number of further keys of this line, at most SDES_MAX_KEYS - 1 */
	uint8_t more_at; /* index of the first further key in the bag passed to sdes_parse() */
	bool unencrypted_srtp, unencrypted_srtcp;
	/* SRTP+, the parameter -xcipher-preauth: 0 = none, else 1 + enum preauth_scheme, or
	 * SDES_PREAUTH_UNKNOWN */
	uint8_t preauth;
	bool old_name; /* suite was written as srtp_suite.alias, as phones did before RFC 6188 */
	uint32_t wsh;  /* window size hint, 0 = not given */
};

/* Storage for the second and later keys of lines. Few lines have any, so all lines share it. */
struct sdes_bag {
	struct srtp_master master[8];
	uint32_t n;
};

enum sdes_err {
	SDES_OK,
	SDES_ERR_SYNTAX,     /* not a crypto attribute */
	SDES_ERR_SUITE,      /* well-formed, suite unknown to us: skip the line */
	SDES_ERR_KEY,        /* bad base64, or key and salt of the wrong length */
	SDES_ERR_KEY_METHOD, /* not inline: */
	SDES_ERR_MANY_KEYS,  /* more inline keys than there is room for */
	SDES_ERR_LIFETIME,
	/* also: several keys without MKIs, or with equal ones, or of different lengths */
	SDES_ERR_MKI,
	SDES_ERR_FEC, /* FEC_ORDER, FEC_KEY: FEC streams are not supported */
	/* an unknown mandatory session parameter (RFC 4568 6.3.7), or an unsupported one */
	SDES_ERR_PARAM,
};

/* Accepts base64 with or without padding, lifetime "2^n" or decimal, MKI "value:length". Appends
 * further keys to the bag; bag NULL: there must be none. Writes *out and the bag only with SDES_OK.
 */
enum sdes_err sdes_parse(struct sdes *out, struct sdes_bag *bag, struct str value);
/* pad: base64 with "=" (some phones need it). lifetime: append "|2^31" to keys without one. bag: as
 * for sdes_parse(). */
void sdes_write(
	struct sbuf *b, const struct sdes *s, const struct sdes_bag *bag, bool pad, bool lifetime);
const char *sdes_err_text(enum sdes_err e);

#endif
