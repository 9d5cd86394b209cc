/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Comfort noise of RFC 3389, "CN", for codecs that have none of their own: a level, and up to ten
 * coefficients that give the noise its colour. Pure. */
#ifndef CODEC_NOISE_H
#define CODEC_NOISE_H

#include <stddef.h>
#include <stdint.h>

enum { NOISE_ORDER = 10, NOISE_MAX = 1 + NOISE_ORDER };

struct noise {
	double reflection[NOISE_ORDER]; /* of the lattice filter */
	double memory[NOISE_ORDER];
	double gain; /* of white noise between -1 and 1 */
	uint32_t random;
};

/* Takes the payload of a CN packet. Coefficients beyond ten are ignored. 0 or -EBADMSG. */
int noise_take(struct noise *n, const uint8_t *in, size_t len);
/* Makes that noise. */
void noise_make(struct noise *n, int16_t *pcm, size_t samples);
/* Describes samples as a payload with that many coefficients. Returns its length, or -ENOSPC. */
int noise_describe(const int16_t *pcm, size_t samples, uint32_t order, uint8_t *out, size_t cap);

#endif
