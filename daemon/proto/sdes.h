/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a=crypto lines (RFC 4568), without the "a=crypto:". Pure. Results hold key material: wipe them. */
#ifndef PROTO_SDES_H
#define PROTO_SDES_H

#include "base/sbuf.h"
#include "srtp/kdf.h"

struct sdes {
	uint32_t tag;              /* 1 to 9 digits */
	struct srtp_master master; /* suite, key, salt, MKI */
	bool unencrypted_srtp, unencrypted_srtcp, unauthenticated_srtp;
	uint64_t lifetime; /* packets; 0 = not given */
	uint8_t kdr;       /* key derivation rate as exponent, 0 = not given */
	uint32_t wsh;      /* window size hint, 0 = not given */
};

enum sdes_err {
	SDES_OK,
	SDES_ERR_SYNTAX,     /* not a crypto attribute at all */
	SDES_ERR_SUITE,      /* well-formed, suite unknown to us: skip the line */
	SDES_ERR_KEY,        /* bad base64, or key and salt of the wrong length */
	SDES_ERR_KEY_METHOD, /* not inline: */
	SDES_ERR_MANY_KEYS,  /* more than one inline key */
	SDES_ERR_LIFETIME,
	SDES_ERR_MKI,
	SDES_ERR_PARAM, /* an unknown session parameter that is mandatory (RFC 4568 6.3.7), or one we cannot do */
};

/* Base64 with or without padding; lifetime "2^n" or decimal; MKI "value:length". *out is written only with SDES_OK. */
enum sdes_err sdes_parse(struct sdes *out, struct str value);
/* pad: base64 with "=" (some phones need it). lifetime: append "|2^31" when s->lifetime is 0. */
void sdes_write(struct sbuf *b, const struct sdes *s, bool pad, bool lifetime);
const char *sdes_err_text(enum sdes_err e);

#endif
