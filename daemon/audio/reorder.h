/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts the RTP packets of one source in order. A packet that arrives in order is neither copied nor
 * delayed. A packet after a gap is held until the gap is filled, REORDER_LATER packets have arrived
 * after it, or REORDER_NS have passed. Pure. */
#ifndef AUDIO_REORDER_H
#define AUDIO_REORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/audio.h"

#define REORDER_LATER 3u
#define REORDER_NS    60000000ull
#define REORDER_AHEAD 3000u /* a larger step is a restart of the source (RFC 3550 A.1) */
#define REORDER_NEVER UINT64_MAX

struct reorder {
	bool started;
	uint16_t next;   /* sequence number that is due */
	uint64_t seen;   /* bit n: packet next - 1 - n arrived */
	uint32_t astray; /* sequence number that would prove a restart; UINT32_MAX: none */
	uint32_t held;
	struct reorder_place {
		bool used;
		uint16_t seq;
		struct audio_packet packet;
	} place[REORDER_LATER];
	uint64_t since_ns; /* when the first one was held */
};

enum reorder_result {
	REORDER_NOW,    /* it is due: process it, then those of reorder_next() */
	REORDER_HELD,   /* copied; reorder_next() returns it later */
	REORDER_LATE,   /* it was given up already: drop it */
	REORDER_DOUBLE, /* it arrived before: drop it */
	REORDER_ASTRAY, /* far from the others: drop it; if the next one follows it, AGAIN */
	REORDER_AGAIN,  /* the source has restarted: process it */
};

/* Takes a packet with this sequence number; copies it only if held. now_ns: monotonic. */
enum reorder_result reorder_take(
	struct reorder *r, uint16_t seq, const struct audio_packet *p, uint64_t now_ns);
/* Returns the next packet that is due, valid until the next call. *lost: missing packets before it,
 * which are given up. NULL: none is due. */
const struct audio_packet *reorder_next(struct reorder *r, uint32_t *lost, uint64_t now_ns);
/* Time by which to call reorder_next(); REORDER_NEVER: no packet is held. */
uint64_t reorder_deadline(const struct reorder *r);

#endif
