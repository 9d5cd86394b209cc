/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lower band of G.722 (codec/g722.h) for several streams at once, one per lane of a vector. A
 * step of G.722 waits for the one before, so one stream alone leaves most of a core idle. Pure. */
#ifndef CODEC_G722_LANES_H
#define CODEC_G722_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/g722.h"

#define G722_LANES 16u /* streams at once */
/* From this many streams on, lanes are faster than one stream after another. */
#define G722_LANES_LEAST 3u

struct g722_lane {
	struct g722 *g;    /* each lane has a state of its own */
	const uint8_t *in; /* encode: int16_t samples; decode: bytes */
	uint8_t *out;      /* encode: bytes; decode: int16_t samples */
};

/* Whether this processor has the instructions: AVX-512 F, BW, DQ and VL. Otherwise the functions
 * below must not be called. */
bool g722_lanes_work(void);
/* The results are those of g722_encode_low() and g722_decode_low() for n samples of each lane.
 * n: a multiple of 4. lanes: up to G722_LANES. */
void g722_lanes_encode(const struct g722_lane *lane, uint32_t lanes, size_t n);
/* All states are of the rate 64000. */
void g722_lanes_decode(const struct g722_lane *lane, uint32_t lanes, size_t n);

#endif
