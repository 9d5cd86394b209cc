/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of an audio session: session.c has its creation, end and RTCP, hear.c handles
 * the terminal's packets. */
#ifndef AUDIO_SESSION_INT_H
#define AUDIO_SESSION_INT_H

#include "audio/dtmf_cover.h"
#include "audio/player.h"
#include "audio/rate.h"
#include "audio/reorder.h"
#include "audio/tx.h"
#include "base/bytes.h"
#include "codec/noise.h"
#include "proto/rtp.h"

/* The terminal's audio. */
struct audio_rx {
	struct codec_stream *decoder[AUDIO_TYPES];
	struct reorder order;
	bool heard;        /* ssrc is valid */
	bool placed;       /* expected is valid */
	bool cn;           /* the terminal sent CN: noise is generated for the other one */
	uint32_t ssrc;     /* of the terminal's packets */
	uint32_t lost;     /* lost packets that were not concealed yet */
	uint32_t expected; /* timestamp of the next packet */
	uint32_t clock;    /* rate of that timestamp, Hz */
	uint32_t step;     /* length of the last packet in timestamp units */
	uint64_t last_ns;  /* when the last packet arrived */
	uint64_t noise_ns; /* when the next noise is due */
	uint64_t until_ns; /* the audio that arrived so far would play until then */
	struct {
		bool known;
		uint32_t ts;       /* timestamp of the terminal's event */
		uint32_t to_ts;    /* timestamp that the event is sent on with */
		bool hidden;       /* AUDIO_GATE_DTMF was set when it began */
		bool as_tone;      /* the event is sent on as a tone */
		uint64_t heard_ns; /* the digits reported so far would last until then */
		uint32_t done;     /* length of the tone given so far, in units of its clock */
	} event;
	struct tone_out tone;  /* of that event */
	struct tones_in tones; /* detects digits in the audio */
	uint32_t tones_rate;   /* rate of that audio, Hz; 0: digits are not detected */
	struct audio_cover cover;
	struct noise noise;
	struct audio_rate rate;
};

struct audio_session {
	struct audio_env *env;
	uint32_t id;
	uint32_t random;
	bool set; /* cfg is valid */
	bool broke, told;
	struct audio_cfg cfg;
	struct audio_stats stats;
	struct audio_rtcp_rx report;
	uint64_t report_ns; /* time of the next RTCP */
	struct audio_rx rx;
	struct audio_tx tx;
	struct audio_player player;
	struct audio_heard heard;
};

static inline uint64_t audio_real(const struct audio_session *s, uint64_t mono_ns)
{
	return mono_ns + s->env->real_ahead_ns;
}

/* A random number for timestamps, intervals of reports (RFC 3550 6.3.1) and replaced digits. Not
 * for secrets. */
static inline uint32_t audio_session_draw(struct audio_session *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 17;
	s->random ^= s->random << 5;
	return s->random;
}

/* Counts and reports a digit that the terminal has begun. */
static inline void audio_dtmf_heard(struct audio_session *s, uint8_t event)
{
	s->stats.digits++;
	if (s->heard.n < ARRAY_LEN(s->heard.digit))
		s->heard.digit[s->heard.n++] = event;
}

#endif
