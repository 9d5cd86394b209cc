/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several m-lines on one port (BUNDLE, RFC 9143). The port's own stream and those with "via" are
 * one list, linked by "bundle". Also the MIDs that we send, which m-lines with ports of their own
 * may need, too. notes/bundle.md says how it fits together. */
#ifndef MEDIA_BUNDLE_H
#define MEDIA_BUNDLE_H

#include "media/state.h"
#include "proto/rtp_ext.h"

#define MEDIA_BUNDLE_MAX   16 /* streams of a bundle */
#define MEDIA_BUNDLE_SSRCS 32 /* remembered per direction; a new one replaces the oldest */

#define BUNDLE_REPORTED UINT64_MAX

struct media_bundle { /* written by complete.c only, and by commands */
	struct bundle_ssrc {
		/* Received: index of the last packet that named this m-line. Sent: BUNDLE_REPORTED
		 * if RTCP of the terminal has named the SSRC. */
		uint64_t index;
		uint32_t stream; /* handle + 1, 0 = free */
		uint32_t ssrc;
	} of[2][MEDIA_BUNDLE_SSRCS]; /* [sent] */
	uint32_t turn[2];            /* whose place is taken next */
	uint32_t free;               /* next unused place + 1; 0: none */
};

/* The next stream of the list, or MEDIA_NONE. */
static inline uint32_t media_bundle_next(const struct media *m, uint32_t line)
{
	return m->stream[line].cfg.bundle - 1; /* 0 is none: MEDIA_NONE */
}

/* The stream whose port and destination this one uses: mostly itself. */
static inline uint32_t media_bundle_port(const struct media *m, uint32_t stream)
{
	uint32_t via = m->stream[stream].cfg.via;

	return via && m->stream[via - 1].set ? via - 1 : stream;
}

/* Whether the SSRCs of a port are remembered: several m-lines share it, or its only m-line gets
 * MIDs until its terminal has reported our SSRC. */
static inline bool media_bundle_lists(const struct media_stream_cfg *c)
{
	return c->bundle || (c->mids && c->mid_ext && !c->via);
}

/* The m-line that a packet to this port belongs to (RFC 9143 9.2), or MEDIA_NONE. RTP by its MID,
 * by an SSRC that is known, by a payload type that is only one m-line's. RTCP by its sender; that
 * of an unknown one is the port's own. Reads only. */
uint32_t media_bundle_find(
	const struct media *m, uint32_t port, const uint8_t *p, size_t len, bool rtcp);

/* An authentic packet of this m-line came. */
void media_bundle_learn(
	struct media *m, uint32_t port, uint32_t line, uint32_t ssrc, uint64_t index);
/* An authentic, decrypted RTCP packet came to this port. The MIDs of its source descriptions name
 * the m-lines of SSRCs that are not known yet (RFC 9143 15.2). RTP decides about known SSRCs,
 * because its index shows which packet is newer. */
void media_bundle_describe(struct media *m, uint32_t port, const uint8_t *p, size_t len);
/* A packet of this m-line is sent. */
void media_bundle_sent(struct media *m, uint32_t port, uint32_t line, uint32_t ssrc);

/* Whether the MID of n->to must be written into a packet (RFC 9143 9.2). False if its terminal did
 * not agree on MIDs. True if the packet has another MID. Also true if it has none, and the
 * terminal's RTCP has not named this SSRC of ours. p, len: at least the header, which need not be
 * authentic yet. Changes nothing. */
bool media_bundle_wants_mid(
	const struct media *m, const struct note *n, uint32_t ssrc, const uint8_t *p, size_t len);
/* Writes the MID of n->to into the decrypted packet, which has room for MEDIA_MID_GROWTH more
 * bytes. Returns by how many bytes the header grew. */
int32_t media_bundle_write_mid(const struct media *m, const struct note *n, uint8_t *p, size_t len);
#define MEDIA_MID_GROWTH RTP_EXT_GROWTH(RTP_MID_MAX)

/* Starts the bundle of a port, without SSRCs, and ends it. Both by commands. */
void media_bundle_begin(struct media *m, uint32_t port);
void media_bundle_end(struct media *m, uint32_t port);
/* The port's bundle; NULL: it has none. */
static inline struct media_bundle *media_bundle_at(const struct media *m, uint32_t port)
{
	uint32_t at = m->bundle_at[port];

	return at ? &m->bundle[at - 1] : NULL;
}
/* RTCP of a bundle that was received: whether it goes to this note's m-line. */
bool media_bundle_is_for(
	struct media *m, const struct arena *a, struct note *n, const struct xc_job *j);

#endif
