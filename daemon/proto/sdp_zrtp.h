/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ZRTP in SDP: a=zrtp-hash (RFC 6189 8), the hash of the Hello message that the terminal sends. It
 * binds the exchange in the media path to signalling. Pure. */
#ifndef PROTO_SDP_ZRTP_H
#define PROTO_SDP_ZRTP_H

#include "base/sbuf.h"
#include "proto/sdp.h"

#define SDP_ZRTP_HASH 32u /* bytes: SHA-256, in version 1.10 */

struct sdp_zrtp {
	bool given; /* a line of version 1.10 that is well-formed */
	uint8_t hash[SDP_ZRTP_HASH];
};

/* "1.10 <64 hex digits>" after "a=zrtp-hash:". 0, -EBADMSG (syntax or length), -ENOTSUP (another
 * version). Hex digits of either case are accepted. Writes *out on success only. */
int sdp_zrtp_parse(struct sdp_zrtp *out, struct str value);
/* The value after "a=zrtp-hash:", with lowercase digits. */
void sdp_zrtp_write(struct sbuf *b, const struct sdp_zrtp *z);
bool sdp_zrtp_eq(const struct sdp_zrtp *a, const struct sdp_zrtp *b);

/* The hash that applies to m-line m: its first usable line, or that of the session level. A
 * terminal may write a line for each version; others than 1.10 are skipped. s may be NULL: no
 * session level. */
void sdp_zrtp_read(struct sdp_zrtp *out, const struct sdp *s, const struct sdp_media *m);

#endif
