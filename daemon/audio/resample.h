/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resamples samples in memory from any position, by a windowed sinc. Needs neither state nor a
 * library, so clips play without a plug-in. Pure. */
#ifndef AUDIO_RESAMPLE_H
#define AUDIO_RESAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct resample {
	const int16_t *pcm;
	uint32_t samples, rate; /* of pcm; rates in Hz */
	uint32_t to;            /* rate of the output */
};
/* Writes n samples at rate "to". at: position of the first in pcm, in 1/to of a sample of pcm.
 * Positions outside of pcm give silence. */
void resample_run(const struct resample *r, uint64_t at, int16_t *out, size_t n);
/* Writes n samples from position 0, with weights that are computed once: for long audio and any two
 * rates. False: no memory, or the rates need too many weights. */
bool resample_all(const struct resample *r, int16_t *out, size_t n);

#endif
