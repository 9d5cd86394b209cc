/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lower band of G.722 (codec/g722.h) for several streams at once, one per lane of a vector. A
 * step of G.722 waits for the one before, so one stream alone leaves most of a core idle. Pure. */
#ifndef CODEC_G722_LANES_H
#define CODEC_G722_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/g722.h"

#define G722_LANES_MOST 16u /* streams at once, on any processor */

struct g722_lane {
	struct g722 *g;    /* each lane has a state of its own */
	const uint8_t *in; /* encode: int16_t samples; decode: bytes */
	uint8_t *out;      /* encode: bytes; decode: int16_t samples */
};

/* A kind of processor. */
struct g722_lanes_ops {
	const char *name;
	uint32_t lanes; /* streams at once */
	uint32_t least; /* fewest streams for which this is faster than one after another */
	/* Whether this processor has the instructions. Otherwise the others must not be called.
	 * NULL: this architecture has none of them. */
	bool (*works)(void);
	/* The results are those of g722_encode_low() and g722_decode_low() for n samples of each
	 * lane. n: a multiple of 4. lanes: 1 to those above. decode: all states are of the rate
	 * 64000. */
	void (*encode)(const struct g722_lane *lane, uint32_t lanes, size_t n);
	void (*decode)(const struct g722_lane *lane, uint32_t lanes, size_t n);
};

/* AVX-512 F, BW, DQ and VL; AVX2. Neither works on other architectures. */
extern const struct g722_lanes_ops g722_lanes_avx512, g722_lanes_avx2;

/* Whether it works on this processor. */
static inline bool g722_lanes_work(const struct g722_lanes_ops *ops)
{
	return ops->works && ops->works();
}

/* The fastest that works on this processor. NULL: none. */
const struct g722_lanes_ops *g722_lanes_here(void);

#endif
