/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two terminals and the audio sessions of their legs, without threads. Terminals encode tones and
 * decode received packets; the rig carries the packets and has the clock. */
#ifndef T_AUDIO_RIG_H
#define T_AUDIO_RIG_H

#include "audio/session.h"

enum {
	RIG_PCMU = 0,
	RIG_PCMA = 8,
	RIG_G722 = 9,
	RIG_L16 = 11,
	RIG_CN = 13,
	RIG_EVENTS = 101,
	RIG_EVENTS_16K = 102
};
enum { RIG_GOT = 600, RIG_SECOND_NS = 1000000000 };
#define RIG_MS 1000000ull

struct audio_rig_end {
	struct audio_session *s;
	const struct codec_entry *codec;
	struct codec_stream *coder; /* of the terminal, both ways */
	uint8_t type;
	uint32_t ssrc, ts, step_ms;
	uint16_t seq;
	double phase, hertz;
	struct audio_packet got[RIG_GOT]; /* RTP for this terminal; a ring */
	uint64_t gots;
	struct audio_packet report; /* the last RTCP for it */
	uint32_t reports;
	bool full; /* the worker takes nothing */
};

struct audio_rig {
	struct audio_env env;
	struct codec_registry *codecs;
	struct audio_rig_end end[2];
	uint64_t now_ns;
};

/* Codecs by payload type, of RIG_*; ptime: what the relay sends to each. */
struct audio_rig *audio_rig_new(uint8_t a, uint8_t b);
void audio_rig_free(struct audio_rig *r);
/* The settings that make: payload types of this codec, events and comfort noise for both. */
struct audio_cfg audio_rig_cfg(const struct audio_rig *r, uint32_t end, uint8_t type);
/* Gives them to the session. */
void audio_rig_set(struct audio_rig *r, uint32_t end, const struct audio_cfg *cfg);
/* Creates the next packet of the terminal's tone, but does not carry it. */
struct audio_packet audio_rig_say(struct audio_rig *r, uint32_t end);
/* One with this payload. */
struct audio_packet audio_rig_packet(struct audio_rig *r, uint32_t end, uint8_t type, bool marker,
	const void *payload, uint32_t len);
/* It reaches the session. */
void audio_rig_carry(struct audio_rig *r, uint32_t end, const struct audio_packet *p);
/* Advances the clock and handles the deadlines up to then. */
void audio_rig_wait(struct audio_rig *r, uint64_t ns);
/* The nth packet that the terminal got, counting from the last: 0. */
const struct audio_packet *audio_rig_got(const struct audio_rig *r, uint32_t end, uint32_t back);
/* Decodes what the terminal got since its packet number "from", in order; at most cap samples.
 * Returns the samples. */
uint32_t audio_rig_listen(
	struct audio_rig *r, uint32_t end, uint64_t from, int16_t *pcm, uint32_t cap);
/* Power of the tone in it, in dB over everything else. */
double audio_rig_snr(const int16_t *pcm, uint32_t n, uint32_t rate, double hertz);

#endif
