/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of one worker, shared by the files of this room only. */
#ifndef MEDIA_INT_H
#define MEDIA_INT_H

#include "media/learn.h"
#include "media/media.h"
#include "srtp/replay.h"

#define MEDIA_SSRCS \
	16 /* per context and direction: a terminal uses one or two; more are a conference or an attack */

struct ssrc_state {
	uint32_t ssrc;
	bool used;
	uint64_t touched; /* of the context's clock, to find the least recently used */
	struct replay seen;
};

/* Of a slot pair: a master key's life. */
struct key_state {
	bool set; /* by commands */
	uint64_t lifetime;
	/* Written by complete.c only, read by any thread. */
	_Atomic uint64_t rtp, rtcp; /* packets */
	_Atomic uint32_t warned, expired;
};

struct media_ctx {
	/* Set by commands, constant in between. */
	bool set;
	uint64_t changed; /* number of the burst before the last command */
	struct media_ctx_cfg cfg;
	/* Written by complete.c only, after authentication; prepare.c reads. */
	struct ssrc_state rx_rtp[MEDIA_SSRCS], rx_rtcp[MEDIA_SSRCS];
	struct ssrc_state
		tx_rtp[MEDIA_SSRCS]; /* never forgets while the tx key lives: see nonce guard */
	uint64_t clock;
	uint64_t tx_rtcp_next; /* first SRTCP index never sent */
	/* prepare.c's scratch, good for one burst: how many RTCP jobs it has already numbered for this context. */
	uint64_t scratch_burst;
	uint32_t scratch_rtcp;
};

struct media_stream {
	/* Set by commands, constant in between. */
	bool set;
	uint64_t changed; /* number of the burst before the last command */
	struct media_stream_cfg cfg;
	/* Written by complete.c only, after authentication, and by commands. */
	struct learn learn;
};

struct media {
	struct media_config cfg;
	struct media_ctx *ctx;
	struct media_stream *stream;
	struct media_stream_counters *counters;
	uint32_t *by_port; /* [local_addrs][ports]: stream, or MEDIA_NONE */
	uint64_t burst;    /* number of the burst that is prepared */
	/* Of the burst between prepare and complete: which packet each job is of, and where it shall go. */
	uint32_t *job_in, *job_stream, *job_to;
	struct key_state *key; /* [key_slots / 2] */
	_Atomic uint64_t keys_warned, keys_expired;
	_Atomic uint64_t drops[MEDIA_VERDICTS]; /* of all streams, and of none */
};

static inline uint32_t *media_port_cell(const struct media *m, struct local_port p)
{
	uint32_t ports = (uint32_t)(m->cfg.port_max - m->cfg.port_min) + 1;

	if (p.addr >= m->cfg.local_addrs || p.port < m->cfg.port_min || p.port > m->cfg.port_max)
		return NULL;
	return &m->by_port[(size_t)p.addr * ports + (uint32_t)(p.port - m->cfg.port_min)];
}

/* Counters have one writer, so a relaxed load and store will do. */
static inline void media_count(_Atomic uint64_t *c, uint64_t add)
{
	atomic_store_explicit(
		c, atomic_load_explicit(c, memory_order_relaxed) + add, memory_order_relaxed);
}

static inline uint8_t media_drop(struct media *m, uint32_t stream, enum media_verdict why)
{
	media_count(&m->drops[why], 1);
	if (stream != MEDIA_NONE) {
		media_count(&m->counters[stream].errors, 1);
		media_count(&m->counters[stream].drops[why], 1);
	}
	return (uint8_t)why;
}

/* Where the pieces behind the body lie, from its end: HMAC suites [index word] MKI tag, AEAD suites tag [index word] MKI. */
struct media_tail {
	uint32_t word, mki, tag, len;
};

struct media_tail media_tail(const struct media_crypto *c, bool rtcp);

static inline bool media_is_srtp(const struct media_crypto *c)
{
	return c->suite != SUITE_PLAIN;
}

/* Publish the stream's learned address to whoever asks. */
void media_learned(struct media *m, uint32_t stream);
/* NULL if this SSRC has no state. */
const struct ssrc_state *media_ssrc_find(const struct ssrc_state *t, uint32_t ssrc);

/* An SSRC that the tx key never protected, while there is no room to remember what it will have sent. */
static inline bool media_ssrc_refused(const struct ssrc_state *tx, uint32_t ssrc)
{
	/* Entries are taken in order and never given back. */
	return tx[MEDIA_SSRCS - 1].used && !media_ssrc_find(tx, ssrc);
}

#endif
