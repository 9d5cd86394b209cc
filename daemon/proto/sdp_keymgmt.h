/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a=key-mgmt of SDP (RFC 4567 3.1): a key management protocol and its message in base64. Pure;
 * values are slices of the parsed SDP. */
#ifndef PROTO_SDP_KEYMGMT_H
#define PROTO_SDP_KEYMGMT_H

#include "base/pool.h"
#include "proto/sdp.h"

#define SDP_KEYMGMT_MAX 8u  /* lines of an m-line; further ones are ignored */
#define SDP_KEYMGMT_ID  32u /* characters of a protocol's name */
/* Length of the list of protocols: names, and ";" between them. */
#define SDP_KEYMGMT_IDS_MAX (SDP_KEYMGMT_MAX * (SDP_KEYMGMT_ID + 1))

struct sdp_keymgmt {
	struct str protocol; /* case-sensitive (RFC 4567 3) */
	struct str data;     /* base64 */
};

/* The value after "a=key-mgmt:". 0, or -EBADMSG. */
int sdp_keymgmt_parse(struct sdp_keymgmt *out, struct str value);

/* Lines that apply to one m-line. */
struct sdp_keymgmt_lines {
	uint32_t n;
	struct sdp_keymgmt line[SDP_KEYMGMT_MAX];
	bool malformed; /* a line of this level is malformed, or there are too many */
	bool session;   /* of the session level */
	/* Which of the m-lines that the level applies to this is, from 0, and their number. Session
	 * level: m-lines of SRTP without a line of their own. */
	uint32_t place, places;
};

/* Attributes of the m-line replace all of the session level (RFC 4567 3.1). */
void sdp_keymgmt_read(
	struct sdp_keymgmt_lines *out, const struct sdp *s, const struct sdp_media *m);
/* The first line of a protocol; NULL: none. */
const struct sdp_keymgmt *sdp_keymgmt_find(
	const struct sdp_keymgmt_lines *lines, struct str protocol);
/* "mikey;other": what each protocol authenticates (RFC 4567 4.1.4). Empty without memory. */
struct str sdp_keymgmt_ids(const struct sdp_keymgmt_lines *lines, struct pool *p);
/* "key-mgmt:mikey ..." of a message. s = NULL without memory. */
struct str sdp_keymgmt_write(struct pool *p, struct str protocol, struct str message);

#endif
