/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sending half of an audio session: PCM and payloads in, RTP packets to the terminal out, with
 * an SSRC, sequence numbers and timestamps of the relay. */
#ifndef AUDIO_TX_H
#define AUDIO_TX_H

#include "audio/rtcp.h"
#include "audio/session.h"

/* Less than one packet that is left over, and one call's samples. */
#define TX_FIFO (2 * AUDIO_PCM + 64)
/* Bytes of a payload that fits into a packet of 1,500 bytes with IPv6, SRTP and its MKI. */
#define TX_PAYLOAD 1400u

struct audio_tx {
	struct audio_env *env;
	const struct audio_cfg *cfg;
	struct audio_stats *stats;
	uint32_t id;
	struct codec_stream *encoder; /* NULL: nothing is encoded */
	uint32_t rate, channels;      /* of the encoder's PCM */
	uint32_t frame;               /* samples of a packet */
	uint32_t ts;                  /* of the first sample in fifo */
	uint32_t ssrc;                /* cfg->ssrc or cfg->spare */
	uint64_t index;               /* of the next packet */
	uint32_t refused;             /* packets that were above the ceiling */
	uint64_t t_ns;                /* arrival of the packet that causes the next ones */
	bool waits;                   /* a packet is in env->batch */
	bool marker;                  /* the next packet of audio begins a talkspurt */
	bool begun;                   /* audio_tx_at() was called under this SSRC */
	bool broke;                   /* the encoder's process failed too often */
	int mode;     /* that the encoder uses as requested; -ENOENT: its own choice */
	uint8_t loss; /* percent that the encoder expects */
	struct audio_rtcp_tx sent;
	uint32_t n; /* samples in fifo, mono */
	int16_t fifo[TX_FIFO];
};

/* Samples of a packet of this codec: the ptime in whole frames, at least one frame, at most 120 ms.
 * ptime 0: that of the codec. If the payload would exceed TX_PAYLOAD, the packet is shorter. */
uint32_t audio_tx_frame(const struct codec_about *a, uint32_t ptime);
/* Puts the codec, packet time and SSRC of cfg into force. The caller still owns encoder. */
void audio_tx_set(struct audio_tx *t, const struct audio_cfg *cfg, const struct audio_cfg *before,
	struct codec_stream *encoder);
/* Sets the time of the packet that causes the next ones. The first call for an SSRC takes the first
 * timestamp from the clock. So after a restart the timestamps of the next process continue where
 * the terminal expects them. */
void audio_tx_at(struct audio_tx *t, uint64_t t_ns);
/* The terminal requests a mode of the encoder's codec, such as AMR's CMR (RFC 4867 4.3.1), or
 * withdraws its request with -ENOENT. */
void audio_tx_mode(struct audio_tx *t, int mode);
/* The terminal reports so many percent of lost packets; -1: nothing. An encoder with redundancy
 * adapts to it: at once to more loss, slowly to less. */
void audio_tx_loss(struct audio_tx *t, int percent);
/* Adds n mono samples at tx.rate, at most AUDIO_PCM, and sends all complete packets. */
void audio_tx_pcm(struct audio_tx *t, const int16_t *pcm, uint32_t n);
/* Skips samples of silence: completes the packet in progress and advances the timestamp. */
void audio_tx_gap(struct audio_tx *t, uint32_t samples);
/* Sends the packet in progress, filled up with silence. */
void audio_tx_flush(struct audio_tx *t);
struct audio_tx_packet {
	uint8_t type;
	bool marker;
	uint32_t ts;
	const uint8_t *payload;
	uint32_t len;
	uint32_t skip; /* sequence numbers to leave out before it */
};
/* Sends a payload unchanged. */
void audio_tx_payload(struct audio_tx *t, const struct audio_tx_packet *p);

/* Encodes and sends the packet that waits in the batch, if any, and with it all others there. Call
 * it before the session's settings or codecs change, or its counters matter. */
void audio_tx_settle(struct audio_tx *t);

/* Encodes and sends all packets that wait in env->batch. Call it after the last one of a round. */
void audio_tx_run(struct audio_env *env);

/* Converts samples at tx.rate to units of the codec's RTP clock. */
uint32_t audio_tx_units(const struct audio_tx *t, uint32_t samples);

#endif
