/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conceals lost packets of codecs that do not do it themselves: repeats the last period of the
 * voice, ever weaker, and silences it after 60 ms. Pure. */
#ifndef CODEC_GAP_H
#define CODEC_GAP_H

#include <stddef.h>
#include <stdint.h>

enum { GAP_MAX_PAST = 48 * 30 }; /* samples: 30 ms at 48 kHz */

struct gap {
	uint32_t rate, channels;
	uint32_t past_n;     /* samples in past, newest last */
	uint32_t period, at; /* of the repetition; at: samples filled since the last packet */
	int16_t past[GAP_MAX_PAST * 2]; /* interleaved */
};

/* rate: 8000 to 48000, channels: 1 or 2. */
void gap_init(struct gap *g, uint32_t rate, uint32_t channels);
/* Samples of a packet that came. The first ones after a gap are mixed with its continuation. */
void gap_heard(struct gap *g, int16_t *pcm, size_t samples);
/* Fills samples that were lost. */
void gap_fill(struct gap *g, int16_t *pcm, size_t samples);
/* The sender is silent: the next gap starts from silence. */
void gap_silence(struct gap *g);

#endif
