/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets of several sessions that are decoded together, before the sessions process them in turn.
 * This has no effect on the result (codec_streams_foresee()): a session takes a decoded payload
 * only if it comes to the same payload. */
#ifndef AUDIO_AHEAD_H
#define AUDIO_AHEAD_H

#include "audio/session.h"

#define AHEAD_MOST  64u
#define AHEAD_LEAST 3u /* fewer are not worth copies of their states */
#define AHEAD_PCM   480u

struct audio_ahead {
	uint32_t n, taken;
	const struct audio_packet *packet[AHEAD_MOST];
	struct audio_session *session[AHEAD_MOST];
	struct codec_stream *stream[AHEAD_MOST];
	struct xcipher_codec_job job[AHEAD_MOST];
	int16_t pcm[AHEAD_MOST][AHEAD_PCM];
};

/* Adds p, a packet of s, if s is likely to decode it next, for "to", and the codec has
 * decode_batch. The packet stays where it is until audio_ahead_taken(). */
void audio_ahead_add(struct audio_ahead *a, struct audio_session *s, const struct audio_session *to,
	const struct audio_packet *p);
void audio_ahead_run(struct audio_ahead *a);
/* Call it after each packet that a session took, in the order of audio_ahead_add(). */
void audio_ahead_taken(struct audio_ahead *a, const struct audio_packet *p);
/* Call it after the last one. */
void audio_ahead_end(struct audio_ahead *a);

#endif
