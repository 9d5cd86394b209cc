/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The built-in resampler: mono, between 8, 16, 24, 32 and 48 kHz. It is flat up to 0.42 of the
 * lower rate, and attenuates from 0.58 of it on by 60 dB. Results are delayed by 16 samples of the
 * lower rate: 2 ms at 8 kHz. n samples become exactly n * to / from, so a packet never waits for
 * the next one. Other rates need a plug-in. Pure. */
#ifndef CODEC_RESAMPLER_H
#define CODEC_RESAMPLER_H

#include <stdbool.h>

#include "xcipher_codec.h"

const struct xcipher_resampler *codec_resampler(void);
/* Whether it converts between these rates, in Hz. */
bool codec_resampler_has(uint32_t from, uint32_t to);

#endif
