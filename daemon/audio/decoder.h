/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decodes compressed audio files by xcipher-av, a program of its own: this process has keys, and
 * must not parse such files. Each file gets a process without privileges, with bounded memory and
 * time. */
#ifndef AUDIO_DECODER_H
#define AUDIO_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audio_clip;

#define AUDIO_DECODER_MS 60000u /* limit_ms of the daemon */

struct audio_decoder {
	const char *program; /* the path of xcipher-av; "": none */
	int stop_fd;         /* becomes readable when decoding should end at once; -1: never */
	uint32_t limit_ms;   /* most time for a file */
};

/* Whether bytes look like a file that xcipher-av decodes: Ogg, or MP3 with or without ID3. Pure. */
bool audio_decoder_knows(const uint8_t *bytes, size_t len);

/* Decodes the plain file that is open for reading as "file", from its beginning. Blocks, so call it
 * on a thread of its own. 0: the caller owns *out. -ENOPKG: the program is missing; -ETIME: it did
 * not end in time; -ECANCELED: stop_fd; -EBADMSG: malformed, or it ended without a result;
 * -ENOTSUP: a codec that it does not decode; -EFBIG: longer than AUDIO_CLIP_MAX; -ENOMEM; -EIO. */
int audio_decoder_file(const struct audio_decoder *d, int file, struct audio_clip **out);
/* The same for a file in memory. */
int audio_decoder_bytes(
	const struct audio_decoder *d, const uint8_t *bytes, size_t len, struct audio_clip **out);

#endif
