/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fast path of prepare, for nearly all packets. Packets with SRTP+ tags have one of their own,
 * so that other packets pay nothing for it. */
#ifndef MEDIA_FAST_PATH_H
#define MEDIA_FAST_PATH_H

#include "media/state.h"
#include "packet/arena.h"

/* Condition of a direction for the fast path. */
bool media_fast_way(const struct media_crypto *c);

/* Prepares the packet in[at] of a burst by the fast path. True: note and job are written. False:
 * prepare.c must handle it. */
bool media_fast(const struct media *m, const struct arena *a, const struct packet_in *in,
	uint32_t at, struct note *note, struct xc_job *job);
/* The same for streams with media_stream_cfg.convert, and packets without padding. */
bool media_fast_convert(const struct media *m, const struct arena *a, const struct packet_in *in,
	uint32_t at, struct note *note, struct xc_job *job);
/* Sets the stream's fast and convert by its configuration. */
void media_fast_set(struct media_stream *s);

/* The same for packets of contexts with SRTP+ tags. */
enum media_fast_result { MEDIA_FAST_NO, MEDIA_FAST_YES, MEDIA_FAST_FORGED };
enum media_fast_result media_fast_tagged(const struct media *m, const struct arena *a,
	const struct packet_in *in, uint32_t at, struct note *note, struct xc_job *job);

#endif
