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
	SDP_CODEC_SET,       /* only its options */
};
struct sdp_codec_rule {
	enum sdp_codec_op op;
	struct str name; /* in the format of a=rtpmap: "PCMA", "opus/48000/2"; case-insensitive */
	/* options of transcode, consume and set; 0 or s = NULL: the codec's own */
	uint32_t bitrate; /* bits per second */
	uint8_t ptime;    /* ms */
	struct str fmtp;
};

#define SDP_TYPES    128  /* payload types */
#define SDP_FMTP_MAX 256u /* bytes; a codec with a longer a=fmtp is not transcoded */
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

/* A codec that can be transcoded to every other one of these. */
struct sdp_known {
	struct str name; /* in the format of a=rtpmap; "/1" is omitted */
	int type;        /* static payload type; -1: none */
	struct str fmtp; /* in our offers; s = NULL: none */
	/* Whether the codec can be used with a terminal's fmtp. NULL: with any. */
	bool (*takes)(const void *codec, struct str fmtp);
	const void *codec;
};

#define SDP_FORMATS 24u /* of an m-line; further ones are relayed, but not transcoded */
struct sdp_format {
	uint8_t type;
	bool accept;           /* the answer to the sender must have it */
	struct str name, fmtp; /* slices of the SDP; s = NULL: none */
};
struct sdp_formats {
	uint32_t n;
	struct sdp_format at[SDP_FORMATS];
};
/* The codecs of an offer, in their order. */
struct sdp_codecs {
	struct sdp_laws laws;
	struct sdp_formats theirs; /* of the sender, without those that are stripped */
	struct sdp_formats told;   /* offered to the receiver */
	bool engaged;              /* the answer may need transcoding */
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
	const struct sdp_known *known; /* NULL: PCMU and PCMA only */
	uint32_t knowns;
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

/* Applies the rules to this m-line. Texts are those of the m-line and the filter. */
void sdp_filter_codecs(
	const struct sdp_filter *f, const struct sdp_media *m, struct sdp_codecs *out);
/* Whether the relay encodes and decodes the codec of this name. */
bool sdp_filter_knows(const struct sdp_filter *f, struct str name);
/* Whether it does so with the terminal's fmtp. */
bool sdp_filter_takes(const struct sdp_filter *f, struct str name, struct str fmtp);
/* Whether a rule matches a name. "PCMA" matches all PCMA, "PCMA/8000" and "PCMA/8000/1" the same
 * one. */
bool sdp_codec_is(struct str rule, struct str name);
/* The clock rate in a name, such as "8000"; empty: none. */
struct str sdp_codec_rate(struct str name);
/* False for telephone events and comfort noise, which accompany a codec. */
bool sdp_codec_is_voice(struct str name);
/* The names of all payload types in this m-line, in the format of a=rtpmap. Empty: none. */
void sdp_codec_names(const struct sdp_media *m, struct str name[SDP_TYPES]);

#endif
