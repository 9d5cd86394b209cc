/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of an audio session that plays: one packet per packet time, by the clock. It buffers the
 * other party's audio and mixes it in, unless a clip replaces it. */
#ifndef AUDIO_PLAYER_H
#define AUDIO_PLAYER_H

#include "audio/session.h"
#include "audio/source.h"

struct audio_player {
	struct audio_source source;
	struct audio_events events; /* digits, if the terminal has telephone events */
	struct audio_ended ended;
	bool on;                  /* packets are sent by the clock */
	uint64_t due_ns;          /* time of the next one */
	uint32_t n;               /* samples in other */
	int16_t other[AUDIO_PCM]; /* of the other party, mono at tx.rate */
};

/* Plays to the session's terminal (audio/source.h). The session takes the clip's reference only
 * on success. 0; -ENOTSUP: nothing is encoded for this terminal; -ENOSPC: too many at once;
 * -EINVAL. */
int audio_session_play(struct audio_session *s, const struct audio_play *play, uint64_t now_ns);
/* Ends the play of this id; 0: all plays and digits. */
void audio_session_stop(struct audio_session *s, uint32_t id);
/* Sends digits to the terminal: telephone events if it has them, else tones. Errors as above. */
int audio_session_digits(
	struct audio_session *s, const struct audio_digit *d, uint32_t n, uint64_t now_ns);
/* Moves the plays that ended since the last call to *out. */
void audio_session_ended(struct audio_session *s, struct audio_ended *out);

/* Whether audio is sent by the clock now. Then no payload is forwarded unchanged. */
bool audio_player_on(const struct audio_session *s);
/* Whether a clip or a tone replaces the other party's audio now. */
bool audio_player_replaces(const struct audio_session *s);
/* Adds audio of the other party, n mono samples at tx.rate. */
void audio_player_hear(struct audio_session *s, const int16_t *pcm, uint32_t n);
/* Sends the packets that are due. */
void audio_player_tick(struct audio_session *s, uint64_t now_ns);
/* The settings have changed, and the encoder with them. Without an encoder all that plays ends;
 * without telephone events, the digits that wait to be sent as such. */
void audio_player_set(struct audio_session *s, const struct audio_cfg *before);

#endif
