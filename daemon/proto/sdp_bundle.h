/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BUNDLE in session descriptions (RFC 9143): which m-lines share a transport, and what tells their
 * packets apart. Pure. */
#ifndef PROTO_SDP_BUNDLE_H
#define PROTO_SDP_BUNDLE_H

#include "proto/rtp_ext.h"
#include "proto/sdp.h"

#define SDP_BUNDLE_MAX 16u /* m-lines of a group; further ones keep their own transport */

struct sdp_bundle {
	uint8_t n;
	uint8_t media[SDP_BUNDLE_MAX]; /* numbers of m-lines, in the group's order */
	uint8_t tag; /* the first with a port: its transport is the group's (RFC 9143 7.1) */
};

/* The first group with BUNDLE that has two m-lines of RTP, or more. An m-line of the group with
 * port 0 counts: a rejected m-line is in no group (RFC 9143 7.3.1). False: there is none. */
bool sdp_bundle_read(struct sdp_bundle *out, const struct sdp *s);

/* m-lines of the group with port 0 get the transport of the tagged m-line: port, address, ICE, DTLS
 * and SDES attributes, rtcp-mux. 0 or -ENOMEM. */
int sdp_bundle_unfold(struct sdp *s, struct pool *p, const struct sdp_bundle *b);

/* The ID of the header extension for the MID; 0: none. */
uint8_t sdp_mid_ext(const struct sdp *s, const struct sdp_media *m);
/* Whether the line is an a=extmap of the MID. */
bool sdp_is_mid_ext(const struct sdp_line *l);
/* Whether the line is an a=extmap or a=rtcp-fb of transport-wide congestion control
 * (draft-holmer-rmcat-transport-wide-cc-extensions). */
bool sdp_is_transport_cc(const struct sdp_line *l);

#define SDP_EXT_IDS 256u
struct sdp_ext_ids {                 /* IDs of header extensions in a group */
	struct str uri[SDP_EXT_IDS]; /* by ID; empty: free */
};
/* Adds the header extensions of the m-line and of the session. False: nothing added, because one of
 * the IDs already has another URI. IDs from 256 on are placeholders (RFC 8285 7) and ignored. */
bool sdp_ext_add(struct sdp_ext_ids *ids, const struct sdp *s, const struct sdp_media *m);

/* The first SSRCs of the m-line's a=ssrc (RFC 5576), each once. Unused places are 0. */
void sdp_ssrcs(uint32_t out[RTP_SSRCS], const struct sdp_media *m);

/* Adds the m-line's payload types, a bit each. */
void sdp_payload_types(uint64_t types[2], const struct sdp_media *m);

#endif
