/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps packets that arrive before their keys. A terminal sends media as soon as its DTLS handshake
 * or its ZRTP exchange ends. The keys pass the keying thread and the control thread, and reach the
 * worker some milliseconds later. Until then the worker keeps the first packets of the stream, also
 * if it was in clear before. */
#ifndef MEDIA_AHEAD_H
#define MEDIA_AHEAD_H

#include "media/state.h"
#include "packet/arena.h"

#define MEDIA_AHEAD_MAX   256u /* packets kept by a worker */
#define MEDIA_AHEAD_SHARE 64u  /* packets kept of a stream: a further one replaces the oldest */
#define MEDIA_AHEAD_NS    2000000000ull /* longer than a retransmission of the last flight takes */

/* Lists instead of searches: whoever knows the terminal's address can send as many packets as there
 * are places, and each further one. Places are stored plus 1; 0 = none. */
struct media_ahead {
	uint32_t n;
	bool look;            /* a command came since media_ahead_take() found no packet */
	uint16_t used;        /* places that have been in use */
	uint16_t free;        /* list of free ones among these, by after */
	uint16_t first, last; /* in order of arrival */
	struct ahead_bucket { /* packets of the streams with these low bits of their numbers */
		uint16_t first, last, n; /* in order of arrival */
	} bucket[MEDIA_AHEAD_MAX];
	struct ahead_link {
		uint32_t stream;
		uint16_t before, after; /* in order of arrival */
		uint16_t later;         /* the next one of the bucket */
	} link[MEDIA_AHEAD_MAX];
	struct packet_in in[MEDIA_AHEAD_MAX];
	uint8_t bytes[MEDIA_AHEAD_MAX][ARENA_MAX_PACKET];
};

/* Keeps RTP or RTCP from a believed source (signalled, confirmed, selected by ICE, or of an
 * authentic ICE check) of a stream that awaits keys. False: another packet, or no room. */
bool media_ahead_keep(
	struct media *m, const struct arena *a, const struct packet_in *in, uint32_t stream);

/* The terminal's exchange of ZRTP ends with a packet that is being sent: media of this stream wait
 * for the keys from now on, for MEDIA_AHEAD_NS after the first of them. */
void media_ahead_expect(struct media *m, uint32_t stream);

static inline bool media_ahead_waits(const struct media *m)
{
	return m->ahead->n != 0;
}

/* Takes up to max packets whose streams have keys now, in order of arrival. Moves them to in[], and
 * to the arena's slots from "first" on. Drops packets that waited too long, or whose stream was
 * closed. Returns how many it moved. Steering already has their verdicts, so it gets none. */
uint32_t media_ahead_take(struct media *m, const struct arena *a, uint32_t first,
	struct packet_in *in, uint32_t max, uint64_t now_ns);

#endif
