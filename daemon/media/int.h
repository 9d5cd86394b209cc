/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of one worker, shared by the files of this room only. */
#ifndef MEDIA_INT_H
#define MEDIA_INT_H

#include "media/learn.h"
#include "media/media.h"
#include "media/rtcp_stats.h"
#include <stddef.h>
#include "srtp/replay.h"

#define MEDIA_SSRCS \
	16 /* per context and direction: a terminal uses one or two; more are a conference or an attack */

#define MEDIA_WINDOW_WORDS (SRTP_REPLAY_WINDOW / 64)

struct ssrc_state {
	uint32_t ssrc;
	bool used;
	/* An unauthenticated side: packets in a row that were too far ahead to be believed, and the last one's sequence number. */
	uint8_t probe;
	uint16_t probe_seq;
	uint32_t roc;     /* of the first packet, while nothing was seen */
	uint64_t touched; /* of the context's clock, to find the least recently used */
	struct replay seen;
	uint64_t window
		[MEDIA_WINDOW_WORDS]; /* the default window lies with what uses it: one cache line */
};
_Static_assert(sizeof(struct ssrc_state) == 64, "one cache line");

/* Session keys of one epoch (index DIV key derivation rate), in one slot of a pair lent to the master key. */
struct epoch {
	uint64_t number; /* 0 = empty: those of epoch 0 are in the key's own slot */
	uint64_t burst;  /* the last one with a job that uses it */
	uint64_t
		touched; /* by an authentic packet, or derived ahead of one; 0 = only ever asked for */
};

/* The first lent pair holds the master key (srtp_vault_fill()), the others epochs. */
#define EPOCH_VAULT 0
struct epochs {
	uint32_t pair[MEDIA_EPOCHS];
	struct epoch of[2][MEDIA_EPOCHS]; /* [rtcp] */
};

/* Of a slot pair: a master key's life. */
struct key_state {
	/* Set by commands. */
	_Atomic uint64_t lifetime; /* read by any thread */
	enum srtp_suite_id suite;  /* with a kdr */
	uint8_t kdr;
	bool no_rtp_auth;
	/* Written by complete.c only, read by any thread. */
	_Atomic uint64_t rtp, rtcp; /* packets */
	_Atomic uint32_t warned, expired;
};

enum {
	RX_RTP = MEDIA_RX_RTP,
	RX_RTCP = MEDIA_RX_RTCP,
	TX_RTP = MEDIA_TX_RTP,
	SSRC_TABLES = MEDIA_TABLES
};
_Static_assert(MEDIA_MARKS_MAX == SSRC_TABLES * MEDIA_SSRCS, "room for all of a context");

struct media_ctx {
	/* Set by commands, constant in between. */
	bool set;
	uint64_t changed;          /* number of the burst before the last command */
	uint32_t roc[SSRC_TABLES]; /* where SSRCs begin that nothing is known of */
	/* prepare.c's scratch, good for one burst: how many RTCP jobs it has already numbered for this context. */
	uint32_t scratch_rtcp;
	uint8_t used[SSRC_TABLES]; /* entries of each table: taken in order, never given back */
	uint64_t scratch_burst;
	/* Written by complete.c only, after authentication. */
	uint64_t clock;
	uint64_t tx_rtcp_next; /* first SRTCP index never sent */
	/* Set by commands; what packets need comes first in it. */
	struct media_ctx_cfg cfg;
	/* Written by complete.c only, after authentication; prepare.c reads. TX_RTP never forgets while the tx key lives: see
	 * nonce guard. A table's first entry, mostly the only one, is in one cache line. */
	_Alignas(64) struct ssrc_state ssrc[SSRC_TABLES][MEDIA_SSRCS];
	uint8_t stagger[64];
};
_Static_assert(sizeof(struct media_ctx) / 64 % 2 == 1, "contexts spread over the cache's sets");

struct media_stream {
	/* Set by commands, constant in between. */
	bool set;
	uint64_t changed; /* number of the burst before the last command */
	struct media_stream_cfg cfg;
	/* Written by complete.c only, after authentication, and by commands. */
	struct learn learn;
};

/* What prepare knows of a job and complete needs. */
struct note {
	uint32_t in, stream,
		to; /* to: MEDIA_NONE = it is only to be tracked, and then counted as why */
	uint32_t rx_key, tx_key; /* slots of the master keys, 0 = plain */
	const struct media_ctx *rx,
		*tx; /* for asking memory ahead only: complete looks again whether they are there */
	uint8_t why;
};

/* An SSRC without state: where its packets of this burst put the index. Scratch: nothing of it outlives the burst. */
struct first_seen {
	uint64_t burst, index;
	uint32_t ctx, ssrc;
	uint32_t in;
	uint8_t table;
};

struct media {
	struct media_config cfg;
	struct media_ctx *ctx;
	struct media_stream *stream;
	struct media_stream_counters *counters;
	struct rtcp_stats *rtcp;
	uint32_t *by_port;          /* [local_addrs][ports]: stream, or MEDIA_NONE */
	uint64_t burst;             /* number of the burst that is prepared */
	uint64_t shed_before_ns[2]; /* [emergency]: what came in before is too old */
	/* Of the burst between prepare and complete. */
	struct note *note;        /* [burst_max], one per job */
	struct first_seen *first; /* [first_mask + 1], a hash table */
	uint32_t first_mask;
	uint64_t *
		windows; /* [max_ctx][SSRC_TABLES][MEDIA_SSRCS][window_words], if longer than the default */
	uint32_t window_words;
	struct key_state *key; /* [key_slots / 2] */
	struct epochs *epochs; /* [key_slots / 2], used of keys with a kdr only */
	uint64_t epoch_clock;
	/* How many derivations unauthenticated packets may still ask for: a bucket, filled by time. */
	uint64_t derive_ns;
	uint32_t derive_tokens;
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
/* --- ahead.c ---------------------------------------------------------------------------------------------------- */

#define MEDIA_AHEAD 16 /* packets whose look-ups are asked for at once */
/* n is at most MEDIA_AHEAD. */
void media_ahead(
	const struct media *m, const struct arena *a, const struct media_in *in, uint32_t n);
/* The same for what complete needs of a job: a large burst's tables do not stay in the nearest cache. */
void media_ahead_again(const struct media *m, const struct note *n);

/* --- ssrc.c: indexes and windows ------------------------------------------------------------------------------ */

/* NULL if this SSRC has no state. */
const struct ssrc_state *media_ssrc_find(const struct ssrc_state *t, uint32_t ssrc);
/* The state of an SSRC, made if there is none. evict: when all are taken the one that was silent longest goes; without it NULL is
 * returned then. For authentic packets only. */
struct ssrc_state *media_ssrc_get(
	struct media *m, struct media_ctx *c, int table, uint32_t ssrc, bool evict);
/* Forget a table, and start it as the command says. */
void media_ssrc_reset(struct media *m, struct media_ctx *c, int table, uint32_t roc,
	const struct media_start *start, uint32_t starts);
/* Go on behind this index; what is further already stays. */
void media_ssrc_resume(struct media *m, struct media_ctx *c, const struct media_mark *mark);
/* The index of an RTP packet of this burst, in[at]. Reads state, writes scratch. */
uint64_t media_ssrc_index(struct media *m, const struct media_ctx *c, int table, uint32_t ssrc,
	uint16_t seq, const struct media_in *in, uint32_t at);

/* An SSRC that the tx key never protected, while there is no room to remember what it will have sent. */
static inline bool media_ssrc_refused(const struct media_ctx *tx, uint32_t ssrc)
{
	return tx->used[TX_RTP] == MEDIA_SSRCS && !media_ssrc_find(tx->ssrc[TX_RTP], ssrc);
}

/* --- keys.c: master keys' lifetimes and epochs ------------------------------------------------------------------ */

int media_key_set(struct media *m, const struct media_cmd *cmd);
int media_key_del(struct media *m, uint32_t slot);
/* Packets of an earlier life count too. */
int media_key_resume(struct media *m, uint32_t slot, const struct media_key_resume *r);
/* The lifetime is used up: nothing under this key (0 = plain: never). */
bool media_key_spent(const struct media *m, uint32_t key);
/* One packet more under this key. */
void media_key_count(struct media *m, uint32_t key, bool rtcp);
/* The slot with the session keys for this index; prepare.c. MEDIA_NONE: those keys would have to be derived, and too much was asked
 * for already. now_ns: the packet's time. */
uint32_t media_key_slot(struct media *m, const struct arena *a, uint32_t key, bool rtcp,
	uint64_t index, uint64_t now_ns);
/* A packet with this index was authentic, or was sent: keep its epoch's keys, and have the next ones ready in time. complete.c */
void media_key_reached(
	struct media *m, const struct arena *a, uint32_t key, bool rtcp, uint64_t index);

#endif
