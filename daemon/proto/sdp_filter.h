/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes to a session description that an operator requests in addition to what relaying needs:
 * codecs of RTP media (RFC 8866 5.14, RFC 3551 6) and attributes. Works on the text line by line,
 * so that nothing else changes. Pure. */
#ifndef PROTO_SDP_FILTER_H
#define PROTO_SDP_FILTER_H

#include "base/pool.h"

struct sdp_media;

/* Operations of ng's "codec". A codec that is stripped or ignored is as if the sender had never
 * named it. One that is masked is not offered, but may be transcoded. */
enum sdp_codec_op {
	SDP_CODEC_STRIP, /* removes the codec, "all" and "full": every codec */
	SDP_CODEC_IGNORE,
	SDP_CODEC_MASK,
	SDP_CODEC_EXCEPT,    /* exempts it from these */
	SDP_CODEC_OFFER,     /* exempts it, too, and moves it to the front, in this order */
	SDP_CODEC_FIRST,     /* only moves it to the front */
	SDP_CODEC_TRANSCODE, /* adds it, if it can be transcoded to one of the sender's */
	SDP_CODEC_ACCEPT,    /* the sender may use it, even if the receiver rejects it */
};
struct sdp_codec_rule {
	enum sdp_codec_op op;
	struct str name; /* in the format of a=rtpmap: "PCMA", "opus/48000/2"; case-insensitive */
};

#define SDP_TYPES 128 /* payload types */
/* The codecs that are transcoded: PCMU and PCMA, in this order. */
#define SDP_LAWS 2
/* PCMU 0, PCMA 1, any other name -1. */
int sdp_law(struct str name);
/* G.711 in an m-line. Payload types + 1, 0: none. */
struct sdp_laws {
	uint8_t theirs[SDP_LAWS]; /* of the sender: the answer may name these */
	uint8_t told[SDP_LAWS];   /* offered to the receiver */
	uint8_t accept;           /* bit per law: it must be in the answer to the sender */
	bool engaged;             /* the answer may need transcoding */
};

enum sdp_attr_op { SDP_ATTR_ADD, SDP_ATTR_REMOVE, SDP_ATTR_SUBSTITUTE };
struct sdp_attr_rule {
	enum sdp_attr_op op;
	/* "session" (or "global", "none"), or a media type such as "audio"; empty: any */
	struct str section;
	/* text after "a=": the whole line; remove and substitute also accept the name */
	struct str attr;
	struct str with; /* substitute: the replacement */
};

#define SDP_RULES_MAX 32u
struct sdp_filter {
	struct sdp_codec_rule codec[SDP_RULES_MAX];
	struct sdp_attr_rule attr[SDP_RULES_MAX];
	uint32_t codecs, attrs;
	/* keep only the first codec of each m-line, telephone events and comfort noise */
	bool single;
};

/* Returns the new text, in the pool; body itself if nothing changes; s = NULL if out of memory.
 * *emptied: m-lines that would have lost all codecs, and were therefore left unchanged. Rejected
 * m-lines (port 0) keep their codecs. */
struct str sdp_filter_apply(
	const struct sdp_filter *f, struct pool *p, struct str body, uint32_t *emptied);
/* Whether the rules would remove all codecs of this m-line. m is from sdp_parse(). */
bool sdp_filter_empties(const struct sdp_filter *f, const struct sdp_media *m);

/* Applies the rules to G.711 in this m-line. */
void sdp_filter_laws(const struct sdp_filter *f, const struct sdp_media *m, struct sdp_laws *out);
/* The names of all payload types in this m-line, in the format of a=rtpmap. Empty: none. */
void sdp_codec_names(const struct sdp_media *m, struct str name[SDP_TYPES]);

#endif
