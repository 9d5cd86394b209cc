/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads WAV files (RIFF, little-endian) into a clip: PCM of 8, 16, 24 and 32 bits, float of 32 and
 * 64 bits, A-law and mu-law, any number of channels, which are mixed into one. Pure. */
#ifndef AUDIO_WAV_H
#define AUDIO_WAV_H

#include <stddef.h>
#include <stdint.h>

struct audio_clip;

enum { WAV_CHANNELS = 16, WAV_MIN_RATE = 4000, WAV_MAX_RATE = 192000 };

enum wav_coding { WAV_PCM, WAV_FLOAT, WAV_ALAW, WAV_ULAW };

struct wav {
	uint8_t coding;      /* enum wav_coding */
	uint8_t bytes;       /* of a sample of one channel */
	uint16_t channels;   /* 1 to WAV_CHANNELS */
	uint32_t rate;       /* Hz */
	uint32_t frames;     /* samples of each channel */
	const uint8_t *data; /* a slice of the file */
};

/* Finds the format and the samples. 0; -ENOMSG: not a WAV file; -EBADMSG: malformed; -ENOTSUP: a
 * coding, rate or number of channels that is not supported. A truncated file plays up to its
 * end. */
int wav_parse(struct wav *out, const uint8_t *file, size_t len);
/* Describes mono samples without a header: WAV_PCM of 16 bits, little-endian, WAV_ALAW or WAV_ULAW.
 * 0 or -ENOTSUP. */
int wav_raw(
	struct wav *out, enum wav_coding coding, uint32_t rate, const uint8_t *file, size_t len);
/* Decodes the samples and mixes the channels. The caller owns the clip. NULL: no memory, or longer
 * than AUDIO_CLIP_MAX. */
struct audio_clip *wav_clip(const struct wav *w);

#endif
