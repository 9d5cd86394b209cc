/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Audio in memory, counted by references. */
#include "audio/clip.h"

#include <stdbool.h>
#include <stdlib.h>

#include "audio/resample.h"

enum { STEP = 8000, MOST = 48000 /* Hz */ };

struct audio_clip *audio_clip_create(uint32_t rate, uint32_t samples)
{
	struct audio_clip *c;

	if ((uint64_t)samples * sizeof(c->pcm[0]) > AUDIO_CLIP_MAX)
		return NULL;
	c = malloc(sizeof(*c) + samples * sizeof(c->pcm[0]));
	if (!c)
		return NULL;
	atomic_init(&c->refs, 1);
	c->rate = c->file_rate = rate;
	c->samples = c->file_samples = samples;
	return c;
}

struct audio_clip *audio_clip_usual(struct audio_clip *c)
{
	uint32_t rate = (c->rate + STEP - 1) / STEP * STEP;
	struct audio_clip *next;
	uint64_t samples;

	rate = rate > MOST ? MOST : rate;
	samples = (uint64_t)c->samples * rate / c->rate;
	if (rate == c->rate || !samples || samples > AUDIO_CLIP_MAX / sizeof(c->pcm[0]))
		return c;
	next = audio_clip_create(rate, (uint32_t)samples);
	if (!next ||
		!resample_all(&(struct resample){c->pcm, c->samples, c->rate, rate}, next->pcm,
			(size_t)samples)) {
		audio_clip_unref(next);
		return c;
	}
	next->file_rate = c->file_rate;
	next->file_samples = c->file_samples;
	audio_clip_unref(c);
	return next;
}

struct audio_clip *audio_clip_ref(struct audio_clip *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

void audio_clip_unref(struct audio_clip *c)
{
	if (c && atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1)
		free(c);
}
