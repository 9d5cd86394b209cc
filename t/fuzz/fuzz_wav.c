/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Audio files of an operator, or blobs of a request. */
#include <stdlib.h>

#include "audio/clip.h"
#include "audio/wav.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct audio_clip *c;
	struct wav w;
	int64_t sum = 0;

	if (wav_parse(&w, data, len))
		return 0;
	if (w.rate < WAV_MIN_RATE || w.rate > WAV_MAX_RATE || !w.channels)
		abort();
	if (w.data < data || w.data + (size_t)w.frames * w.bytes * w.channels > data + len)
		abort();
	c = wav_clip(&w);
	for (uint32_t i = 0; c && i < c->samples; i++)
		sum += c->pcm[i];
	audio_clip_unref(c);
	return sum == INT64_MAX;
}
