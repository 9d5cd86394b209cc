/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An audio file of a recording in either format: WAV (record/record_wav.h) or Ogg Opus
 * (record/record_opus.h). One thread only; may block. */
#ifndef RECORD_RECORD_SOUND_H
#define RECORD_RECORD_SOUND_H

#include "codec/registry.h"

struct record_sound;

struct record_sound_cfg {
	const struct codec_entry *opus; /* the encoder; NULL: WAV */
	uint32_t rate;                  /* Hz */
	uint16_t channels;              /* 1 or 2 */
};

/* As record_wav_open() and record_opus_open(). */
int record_sound_open(
	struct record_sound **out, const char *path, const struct record_sound_cfg *cfg);
int record_sound_write(struct record_sound *s, const int16_t *pcm, uint32_t n);
void record_sound_silence(struct record_sound *s, uint64_t n);
/* Writes the rest, and closes the file. discard: removes it instead. NULL is fine. 0 or -errno. */
int record_sound_close(struct record_sound *s, bool discard);

#endif
