/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Audio in memory, counted by references. */
#include "audio/clip.h"

#include <stdlib.h>

struct audio_clip *audio_clip_create(uint32_t rate, uint32_t samples)
{
	struct audio_clip *c;

	if ((uint64_t)samples * sizeof(c->pcm[0]) > AUDIO_CLIP_MAX)
		return NULL;
	c = malloc(sizeof(*c) + samples * sizeof(c->pcm[0]));
	if (!c)
		return NULL;
	atomic_init(&c->refs, 1);
	c->rate = rate;
	c->samples = samples;
	return c;
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
