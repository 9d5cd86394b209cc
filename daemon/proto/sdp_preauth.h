/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a=xcipher-preauth:SCHEME, an attribute of the category TRANSPORT (RFC 8859). Its sender offers to
 * receive and send packets with tags of SRTP+, under keys of DTLS-SRTP, ZRTP or MIKEY. For a=crypto
 * there is a parameter of its own. An answer repeats the scheme of the offer, or has no such line.
 * Others ignore it (RFC 8866 5.13). Pure. */
#ifndef PROTO_SDP_PREAUTH_H
#define PROTO_SDP_PREAUTH_H

#include "proto/sdp.h"

#define SDP_PREAUTH "xcipher-preauth"

/* The scheme for m-line m of s: of the m-line, else of the session level. 0 = none or unknown, else
 * 1 + enum preauth_scheme. */
uint8_t sdp_preauth_read(const struct sdp *s, const struct sdp_media *m);

/* The line without "a=", in the pool. An empty string without a scheme; NULL: out of memory. */
struct str sdp_preauth_write(struct pool *p, uint8_t scheme);

#endif
