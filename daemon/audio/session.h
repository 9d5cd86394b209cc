/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The audio session of a leg: receives RTP and RTCP of its terminal, and sends RTP and RTCP to it.
 * A session belongs to one codec thread. It has no socket, thread or clock of its own.
 *
 * Arriving packets drive the audio: a packet in order is decoded, converted to the rate of the
 * other leg's codec, encoded and sent at once, or together with those of other sessions. Deadlines
 * exist only for gaps, comfort noise, RTCP, and while something plays. */
#ifndef AUDIO_SESSION_H
#define AUDIO_SESSION_H

#include "audio/order.h"
#include "audio/stats.h"
#include "packet/audio.h"

#define AUDIO_NEVER UINT64_MAX
/* Digits of the terminal that began, as telephone events or tones (RFC 4733: 0 to 15). */
struct audio_heard {
	uint8_t n, digit[8];
};

#define AUDIO_PCM XCIPHER_CODEC_MAX_PCM /* samples of one channel: 120 ms at 48 kHz */

/* MEDIA_GATE_* of audio_cfg.gate. */
enum {
	AUDIO_GATE_MEDIA = 1,
	AUDIO_GATE_DTMF = 2,
	AUDIO_GATE_QUIET = 4,
	AUDIO_GATE_DROP = 8,
};

struct audio_digit;
struct audio_ended;
struct audio_play;
struct audio_session;
struct audio_tx_batch;

/* Shared by all sessions of a thread. */
struct audio_env {
	const struct codec_registry *codecs;
	/* Send a packet: place() returns an entry of the ring, or NULL if it is full. The session
	 * writes t_ns, len, rtcp and bytes, then calls placed(). id: of the session. */
	struct audio_packet *(*place)(void *arg, uint32_t id, bool rtcp);
	void (*placed)(void *arg, uint32_t id);
	/* The counters of this session changed in audio_tx_run(). */
	void (*counted)(void *arg, uint32_t id);
	void *arg;
	struct audio_tx_batch *batch;       /* NULL: each packet is encoded at once */
	const struct g722_device_ops *g722; /* of the thread; NULL: none */
	uint64_t (*cpu_ns)(void);           /* of this thread; NULL: CPU time is not measured */
	uint32_t cpu_draw;                  /* random */
	uint64_t real_ahead_ns;             /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	uint64_t now_ns;                    /* CLOCK_MONOTONIC of this round */
	/* Scratch. */
	int16_t pcm[2 * AUDIO_PCM], other[2 * AUDIO_PCM];
};

/* Allocates a session, on any thread. NULL: no memory. */
struct audio_session *audio_session_alloc(void);
/* Begins a session. seed: random, for timestamps and intervals. now_ns: CLOCK_MONOTONIC, here and
 * below. */
void audio_session_init(struct audio_session *s, struct audio_env *env, uint32_t id, uint32_t seed,
	uint64_t now_ns);
/* Closes its codecs and wipes it. NULL is fine. */
void audio_session_free(struct audio_session *s);

/* Puts an order into force and frees it. Codecs that stay keep their state. */
void audio_session_set(struct audio_session *s, struct audio_order *o, uint64_t now_ns);
const struct audio_cfg *audio_session_cfg(const struct audio_session *s);
/* Processes a packet of the terminal. to: the session of audio_cfg.to, on the same thread; or NULL.
 */
void audio_session_take(struct audio_session *s, struct audio_session *to,
	const struct audio_packet *p, uint64_t now_ns);
/* Time of the next audio_session_tick(); AUDIO_NEVER: none. */
uint64_t audio_session_deadline(const struct audio_session *s);
/* Handles all deadlines up to now_ns. to: as above. */
void audio_session_tick(struct audio_session *s, struct audio_session *to, uint64_t now_ns);
/* Moves the digits that began since the last call to *out; only the first eight are kept. */
void audio_session_heard(struct audio_session *s, struct audio_heard *out);
/* Sends the session's last RTCP packet. */
void audio_session_bye(struct audio_session *s, uint64_t now_ns);
const struct audio_stats *audio_session_stats(const struct audio_session *s);
/* Returns true once, after the process of an isolated codec has failed too often. */
bool audio_session_broke(struct audio_session *s);

#endif
