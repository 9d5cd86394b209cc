/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an operator wants taken out of a session description or put into it, beside what relaying needs: codecs of RTP media
 * (RFC 8866 5.14, RFC 3551 6) and attributes. Works on the text, line by line, so that nothing else changes. Pure. */
#ifndef PROTO_SDP_FILTER_H
#define PROTO_SDP_FILTER_H

#include "base/pool.h"

struct sdp_media;

/* strip: the codec goes, "all": every one. except: but not this one. offer: nor this one, and in this order, first. */
enum sdp_codec_op { SDP_CODEC_STRIP, SDP_CODEC_EXCEPT, SDP_CODEC_OFFER };
struct sdp_codec_rule {
	enum sdp_codec_op op;
	struct str name; /* as in a=rtpmap: "PCMA", "opus/48000/2", in any case of letters */
};

enum sdp_attr_op { SDP_ATTR_ADD, SDP_ATTR_REMOVE, SDP_ATTR_SUBSTITUTE };
struct sdp_attr_rule {
	enum sdp_attr_op op;
	struct str
		section; /* "session" (or "global", "none"), or a kind of media: "audio"; empty: any */
	struct str attr; /* behind "a=": a whole one, or to remove and substitute, its name */
	struct str with; /* substitute: what stands there then */
};

#define SDP_RULES_MAX 32u
struct sdp_filter {
	struct sdp_codec_rule codec[SDP_RULES_MAX];
	struct sdp_attr_rule attr[SDP_RULES_MAX];
	uint32_t codecs, attrs;
	bool single; /* of each media the first codec stays alone, beside telephone events and comfort noise */
};

/* The new text, in the pool; body itself when there is nothing to do; s = NULL without memory. *emptied: media whose every codec
 * would have gone, and that were therefore left as they are. Rejected media (port 0) keep their codecs. */
struct str sdp_filter_apply(
	const struct sdp_filter *f, struct pool *p, struct str body, uint32_t *emptied);
/* Whether no codec of this media would be left. m is of sdp_parse(). */
bool sdp_filter_empties(const struct sdp_filter *f, const struct sdp_media *m);

#endif
