/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides which packets are relayed, and learns the source of a stream. */
#ifndef MEDIA_SOURCE_H
#define MEDIA_SOURCE_H

#include "media/state.h"
#include "packet/arena.h"

/* Whether the source may be at the interface that the packet came by, if nobody has checked that
 * yet (prepare.c). PACKET_JOB, or why not. */
enum packet_verdict media_believe(
	const struct media *m, const struct media_stream *s, const struct packet_in *in);

/* Whether to relay this packet; learns its source. proved: it is authentic; otherwise only its
 * source is known. */
bool media_learn(struct media *m, const struct arena *a, uint32_t stream,
	const struct packet_in *in, const struct xc_job *j, bool proved);

/* The same for a packet that is not RTP (other.c). */
bool media_learn_other(struct media *m, uint32_t stream, const struct packet_in *in);

/* The learned address changed: updates dependent state and publishes the address. */
void media_learned(struct media *m, uint32_t stream);

/* Whether a stream with "look" may send a packet now. May change the destination. */
bool media_may_leave(struct media *m, uint32_t stream, uint64_t now_ns);

/* Before the answer several branches of a fork may send to the same caller. Only the first one is
 * relayed, until it pauses for EARLY_PAUSE_NS. Returns whether this stream's packet may be sent to
 * the stream "to". */
#define EARLY_PAUSE_NS 2000000000ull
bool media_early_turn(struct media *m, uint32_t stream, uint32_t to, uint64_t now_ns);

#endif
