/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The audio of one recording as WAV or Opus files: decodes the packets of all parties and puts them
 * on one timeline. Audio is written in blocks of half a second, each half a second after its end,
 * so that late packets find their place. Telephone events are silence: a recording should not have
 * the digits of a card number. One thread only; may block. */
#ifndef RECORD_RECORD_AUDIO_H
#define RECORD_RECORD_AUDIO_H

#include "audio/session.h"
#include "call/recorder.h"
#include "record/record_name.h"

/* The longest block, per channel. */
#define RECORD_AUDIO_RATE_MAX 48000u
#define RECORD_AUDIO_BLOCK    (RECORD_AUDIO_RATE_MAX / 2)

/* Shared by all recordings of a thread. */
struct record_audio_env {
	const struct codec_registry *codecs;
	const struct codec_entry *opus; /* encodes the files; NULL: they are WAV */
	uint32_t rate;    /* Hz, 8000 to RECORD_AUDIO_RATE_MAX, a multiple of 2; that of opus */
	bool mixed;       /* a file NAME-mix.wav: all parties */
	bool single;      /* a file of each party: NAME-1.wav, NAME-2.wav, ... */
	bool by_channels; /* NAME-mix.wav: side 0 left, all others right; else they are added */
	uint32_t share;   /* seconds of audio that a recording may decode per second */
	/* Scratch. */
	int16_t pcm[2 * AUDIO_PCM];
	int16_t out[2 * RECORD_AUDIO_BLOCK];
	int32_t side[RECORD_AUDIO_BLOCK], left[RECORD_AUDIO_BLOCK], right[RECORD_AUDIO_BLOCK];
};

struct record_audio;

/* Begins at now_ns (CLOCK_MONOTONIC, here and below). path: of the files, without ending. 0 or
 * -errno. */
int record_audio_open(
	struct record_audio **out, struct record_audio_env *env, const char *path, uint64_t now_ns);
/* Sets the codecs of each port from now on. Codecs that stay keep their state. */
void record_audio_media(struct record_audio *a, const struct record_media *m, uint64_t now_ns);
/* Takes an RTP packet that arrived at "to" at t_ns. RTCP and unknown payload types are ignored. */
void record_audio_packet(struct record_audio *a, struct local_port to, const uint8_t *bytes,
	uint32_t len, uint64_t t_ns);
/* Writes the blocks that are due. 0, or -errno: a part was not written, and is missing. Call it
 * several times per second. */
int record_audio_tick(struct record_audio *a, uint64_t now_ns);
struct record_audio_counts {
	/* Packets. broken: a codec refused them; skipped: not decoded, as the terminal sends more
	 * codecs or more audio than a call needs (record_share.h), or its codec does not start. */
	uint64_t decoded, lost, broken, skipped;
	uint32_t files;
};
void record_audio_counts(const struct record_audio *a, struct record_audio_counts *out);
/* Writes the rest. discard: removes the files. 0 or -errno. NULL is fine. */
int record_audio_close(struct record_audio *a, uint64_t now_ns, bool discard);

#endif
