/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets that are ahead of their keys. A terminal that ends its DTLS handshake sends media at
 * once. They reach the worker some milliseconds before its keys do, which come by the keying thread
 * and the control thread. So the first packets of such a stream are kept until then. */
#ifndef MEDIA_AHEAD_H
#define MEDIA_AHEAD_H

#include "media/state.h"
#include "packet/arena.h"

#define MEDIA_AHEAD_MAX   256u          /* packets of a worker */
#define MEDIA_AHEAD_SHARE 64u           /* packets of a stream: then its oldest is dropped */
#define MEDIA_AHEAD_NS    2000000000ull /* longer than a lost last flight takes to be repeated */

struct media_ahead {
	uint32_t n;
	uint64_t number; /* of the last packet kept */
	struct ahead_packet {
		uint64_t number; /* order of arrival; 0 = free */
		uint32_t stream;
		struct packet_in in;
	} of[MEDIA_AHEAD_MAX];
	uint8_t bytes[MEDIA_AHEAD_MAX][ARENA_MAX_PACKET];
};

/* Keeps RTP or RTCP from a believed source (signalled, confirmed, or selected by ICE) of a stream
 * that awaits keys. False: it is another packet, or there is no room. */
bool media_ahead_keep(
	struct media *m, const struct arena *a, const struct packet_in *in, uint32_t stream);

static inline bool media_ahead_waits(const struct media *m)
{
	return m->ahead->n != 0;
}

/* Moves up to max packets whose streams have keys now to in[] and to the arena's slots from "first"
 * on, in order of arrival. Drops those that waited too long, or whose stream is gone. Returns the
 * number of packets moved. steering does not know them: it gets no verdicts. */
uint32_t media_ahead_take(struct media *m, const struct arena *a, uint32_t first,
	struct packet_in *in, uint32_t max, uint64_t now_ns);

#endif
