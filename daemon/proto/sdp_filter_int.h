/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to the filter of session descriptions (proto/sdp_filter.h): sdp_filter_codecs.c has its
 * codecs, sdp_filter.c its attributes and the sections. */
#ifndef PROTO_SDP_FILTER_INT_H
#define PROTO_SDP_FILTER_INT_H

#include "base/sbuf.h"
#include "proto/sdp.h"
#include "proto/sdp_filter.h"

#define SDP_ADDS 16u

/* One m= section, or the session section before the first. */
struct sdp_section {
	struct str text;
	struct str kind; /* "session" or the media's */
	bool rtp;
	struct str name[SDP_TYPES]; /* of each payload type, as in its rtpmap */
	/* the rules for it, looked up once because an m= line may be long */
	bool strip[SDP_TYPES], voice[SDP_TYPES];
	bool lost[SDP_TYPES]; /* stripped for good: not transcoded either */
	uint8_t rank[SDP_TYPES];
	bool gone[SDP_TYPES];
	struct sdp_laws laws;
	struct str fmtp[SDP_TYPES]; /* of each payload type; s = NULL: none */
	bool stays[SDP_TYPES], accept[SDP_TYPES];
	uint8_t added[SDP_ADDS]; /* payload types to add, in their order */
	uint32_t adds;
};

/* Takes the next line from rest, with its line break. */
static inline struct str sdp_section_line(struct str *rest)
{
	const char *end = rest->len ? memchr(rest->s, '\n', rest->len) : NULL;
	struct str line = {rest->s, end ? (size_t)(end - rest->s) + 1 : rest->len};

	rest->s += line.len;
	rest->len -= line.len;
	return line;
}

/* The line without its line break. */
static inline struct str sdp_section_bare(struct str line)
{
	while (line.len && (line.s[line.len - 1] == '\n' || line.s[line.len - 1] == '\r'))
		line.len--;
	return line;
}

static inline bool sdp_section_starts(struct str s, struct str with)
{
	return s.len >= with.len && memcmp(s.s, with.s, with.len) == 0;
}

static inline struct str sdp_section_rest(struct str s, size_t from)
{
	return (struct str){s.s + from, s.len - from};
}

/* Applies the rules to the codecs of the section. *emptied: see sdp_filter_apply(). */
void sdp_codecs_look(struct sdp_section *s, const struct sdp_filter *f, uint32_t *emptied);
/* Writes the m= line without removed codecs, and with added ones. */
void sdp_codecs_write_m(
	struct sbuf *b, const struct sdp_section *s, const struct sdp_filter *f, struct str line);
/* Whether the line describes a removed codec. */
bool sdp_codecs_drop_line(const struct sdp_section *s, struct str line);
/* Writes a=rtpmap of added codecs. */
void sdp_codecs_write_added(struct sbuf *b, const struct sdp_section *s, struct str end);

#endif
