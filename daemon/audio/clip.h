/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Audio to play, as PCM in memory: read once, shared by all sessions that play it. */
#ifndef AUDIO_CLIP_H
#define AUDIO_CLIP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define AUDIO_CLIP_MAX (64u << 20) /* bytes */

struct audio_clip {
	_Atomic uint32_t refs;
	uint32_t rate;    /* Hz */
	uint32_t samples; /* mono */
	/* Of the file that it was read from. Requests and replies count in these. */
	uint32_t file_rate, file_samples;
	int16_t pcm[];
};

/* Allocates a clip with one reference. The caller fills in pcm before it shares the clip. NULL: no
 * memory, or longer than AUDIO_CLIP_MAX. */
struct audio_clip *audio_clip_create(uint32_t rate, uint32_t samples);
/* The same audio at a rate from which players resample cheaply, a multiple of 8000 up to 48000 Hz.
 * Takes the reference of c, and returns c itself if it has such a rate, or if memory runs out. */
struct audio_clip *audio_clip_usual(struct audio_clip *c);
/* Takes or releases a reference; the last release frees the clip. Any thread. */
struct audio_clip *audio_clip_ref(struct audio_clip *c);
void audio_clip_unref(struct audio_clip *c); /* NULL is fine */

#endif
