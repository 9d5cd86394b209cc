/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts mono PCM between the rates of two codecs, by a resampler of the registry. */
#ifndef AUDIO_RATE_H
#define AUDIO_RATE_H

#include "codec/registry.h"

struct audio_rate { /* all zeroes at first */
	const struct xcipher_resampler *how;
	void *state;
	uint32_t from, to;
};

/* Selects a resampler between these rates, in Hz. Returns 0, -ENOTSUP if none has them, or -ENOMEM.
 * Cheap if the rates are those of the last call. */
int audio_rate_set(
	struct audio_rate *r, const struct codec_registry *codecs, uint32_t from, uint32_t to);
/* Converts n samples. Returns the samples written, at most cap, or a negative errno. */
int audio_rate_run(struct audio_rate *r, const int16_t *in, uint32_t n, int16_t *out, uint32_t cap);
/* Frees the resampler's state. */
void audio_rate_fini(struct audio_rate *r);

#endif
