/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settings of the audio session of a leg. Plain values, copied between threads.
 *
 * A leg that is transcoded, silenced or played to has an audio session on a codec thread. The
 * session receives the decrypted packets of the leg's terminal, and returns packets for it, which
 * the worker encrypts and sends. Audio of the terminal goes to the session named in "to": as
 * payloads if both legs have the codec, else as PCM. */
#ifndef AUDIO_CONFIG_H
#define AUDIO_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/ceiling.h"
#include "proto/sdp_filter.h"

#define AUDIO_TYPES   8u /* payload types that a session decodes */
#define AUDIO_FMTP    SDP_FMTP_MAX
#define AUDIO_NONE    UINT32_MAX
#define AUDIO_NO_TYPE 255u

/* Meaning of a payload type. */
enum audio_kind {
	AUDIO_CODEC,  /* entry of the codec registry */
	AUDIO_EVENTS, /* telephone-event (RFC 4733) */
	AUDIO_CN,     /* comfort noise (RFC 3389) */
};

struct audio_type {
	uint8_t type;   /* payload type of this terminal */
	uint8_t kind;   /* enum audio_kind */
	uint16_t entry; /* AUDIO_CODEC: index in codec_registry.entry */
	uint32_t clock; /* RTP clock, Hz */
	uint16_t fmtp_len;
	char fmtp[AUDIO_FMTP]; /* from the receiver of these packets */
};

/* Digits of the terminal while AUDIO_GATE_DTMF is set. */
enum audio_cover_mode {
	AUDIO_COVER_DROP,    /* events are dropped, tones stay */
	AUDIO_COVER_SILENCE, /* both are replaced: by silence, */
	AUDIO_COVER_TONE,    /* by a tone of hz, */
	AUDIO_COVER_RANDOM,  /* by a random digit for each, */
	AUDIO_COVER_DIGIT,   /* by digit */
	AUDIO_COVER_MODES
};
struct audio_cover_cfg {
	uint8_t mode;   /* enum audio_cover_mode */
	uint8_t digit;  /* 0 to 15 */
	uint8_t volume; /* of tones, -dBm0 */
	bool listen;    /* report digits, whether they are covered or not */
	uint16_t hz;
};

/* Packets from the terminal, and to it. */
struct audio_cfg {
	uint32_t types;                      /* payload types that it may send */
	struct audio_type type[AUDIO_TYPES]; /* fmtp: ours, from the SDP that it got */
	/* Sent to it. AUDIO_NO_TYPE: nothing of this kind is sent. */
	struct audio_type codec, events, cn;
	uint8_t ptime;    /* ms of each packet to it; 0: the codec's default */
	bool dtx;         /* send nothing in silence, if the codec can */
	uint32_t bitrate; /* 0: the codec's choice */
	uint32_t to;      /* session that gets the terminal's audio; AUDIO_NONE: none */
	uint32_t ssrc;    /* of packets to the terminal; never 0 */
	uint64_t
		index; /* SRTP index of the first packet: its low 16 bits are the sequence number */
	struct ceiling ceiling; /* of the indexes of ssrc */
	uint32_t ts;            /* offset of its timestamps */
	uint32_t spare;         /* SSRC used above the ceiling; 0: such packets are dropped */
	char cname[24];         /* of our RTCP */
	bool events_to_tone; /* telephone events for this terminal become tones: it has no events */
	bool tone_to_events; /* tones of this terminal become telephone events */
	uint8_t gate;        /* MEDIA_GATE_* of this terminal's audio: silence, DTMF blocked */
	struct audio_cover_cfg cover;
	bool emergency;
};

#endif
