/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of one worker. Private to this room, to tests, and to the baseline of "xcipher-bench
 * path". */
#ifndef MEDIA_STATE_H
#define MEDIA_STATE_H

#include "media/learn.h"
#include "media/media.h"
#include "media/rtcp_stats.h"
#include "proto/rtp.h"
#include <stddef.h>
#include "srtp/replay.h"

struct media_way;
struct media_tags;
struct tags_windows;

/* Per context and direction. A terminal uses one or two; more are a conference or an attack. */
#define MEDIA_SSRCS 16

/* SSRCs of a table that lost their place, under the current key: see media_ssrc_turn(). */
struct past_ssrc {
	uint64_t index; /* of the last packet sent, as in media_mark */
	uint32_t ssrc;
	bool roc_only;
};

#define MEDIA_TURNS   8              /* newcomers that may take places at once */
#define MEDIA_TURN_NS 10000000000ull /* after a burst of these, one per this time */
struct past {
	/* Written by complete.c and commands only. Turns exist for TX_RTP only. */
	uint64_t turn_ns; /* time up to which turns are counted; 0 = none used yet */
	uint32_t turns;   /* left then */
	uint32_t n;
	struct past_ssrc of[MEDIA_PAST];
};

/* Maximum lead of an unauthenticated index over the true one (RFC 3550 A.1). */
#define MEDIA_FAR_AHEAD 3000

/* By how many packets an unauthenticated index may be ahead of those received. It is less than the
 * smallest window, so the packets that are really next still fit into the window (jump.c). */
#define MEDIA_LEAD 60

struct ssrc_state {
	uint32_t ssrc;
	bool used;
	/* Without authentication: packets missing up to the sequence number lead_at. Each packet in
	 * a row since then reduces lead by one. */
	uint8_t lead;
	uint16_t lead_at;
	uint64_t touched;   /* of the worker's clock, to find the least recently used */
	struct replay seen; /* while not started, seen.last >> 16 is the first packet's ROC */
};

/* Session keys of one epoch (index DIV key derivation rate), in one slot of a pair lent to the
 * master key. */
struct epoch {
	uint64_t number; /* 0 = empty: the key's own slot holds epoch 0 */
	uint64_t burst;  /* the last one with a job that uses it */
	/* by an authentic packet, or derived ahead of one; 0 = no authentic packet used it */
	uint64_t touched;
};

/* The first lent pair holds the master key (srtp_vault_fill()), the others epochs. */
#define EPOCH_VAULT 0
struct epochs {
	uint32_t pair[MEDIA_EPOCHS];
	struct epoch of[2][MEDIA_EPOCHS]; /* [rtcp] */
};

/* State of a master key, one per slot pair. */
struct key_state {
	/* Set by commands. */
	_Atomic uint64_t lifetime; /* read by any thread */
	/* Written by complete.c only, read by any thread. */
	_Atomic uint64_t rtp, rtcp;     /* packets; rtp includes credit that lent has not used
					 * yet */
	struct media_way *_Atomic lent; /* the direction that has this key's credit; NULL = none */
	_Atomic bool warned, expired;
	/* Set by commands. */
	uint8_t kdr;
	bool no_rtp_auth;
	bool short_tag; /* short_tag.c: SRTCP's tags have 32 bits; complete.c sets it */
	bool long_tag;  /* short_tag.c: a tag of 80 bits was authentic; complete.c sets it */
	bool kept;      /* struct ledger has its indexes */
	enum srtp_suite_id suite; /* valid if kdr is set */
};

enum { RX_RTP, RX_RTCP, TX_RTP, SSRC_TABLES };

/* The indexes of a key that no context uses at present (ledger.c). Written by commands only; lives
 * as long as the slot pair. */
#define LEDGER_MARKS (2 * (MEDIA_SSRCS + MEDIA_PAST))
struct ledger {
	uint64_t tx_rtcp_next; /* first SRTCP index never sent */
	uint32_t n;
	struct media_mark mark[LEDGER_MARKS];
};

/* Offsets of the parts after the body, from its end: HMAC suites [index word] MKI tag, AEAD suites
 * tag [index word] MKI. */
struct media_tail {
	uint8_t word, mki, tag, len;
};

static inline bool media_is_srtp(const struct media_crypto *c)
{
	return c->suite != SUITE_PLAIN;
}

/* One direction of a context: all that an RTP packet needs of it is in one cache line. All zeroes
 * but set: plain. */
struct media_way {
	/* Written by complete.c only, after authentication: first entry of RX_RTP or TX_RTP,
	 * usually the only one. */
	_Alignas(64) struct ssrc_state first;
	/* Also written by complete.c, read by any thread. Packets that need no look at the struct
	 * key_state of slot, which has counted them in advance. Zero if the key has a kdr or is
	 * near its end (keys.c). */
	_Atomic uint32_t credit;
	/* Set by commands, constant in between: values derived from struct media_crypto. */
	uint32_t slot;          /* of the key in use; when receiving, of the first key */
	struct media_tail tail; /* of RTP */
	bool set : 1, srtp : 1;
	bool choose : 1;                /* receiving: the MKI says which key */
	bool no_rtp_auth : 1, pass : 1; /* as in media_crypto */
	bool fast : 1;                  /* media_fast_way() */
	bool f8 : 1;                    /* AES in F8 mode */
	bool tagged : 1;                /* RTP has tags of SRTP+ (tags.h) */
	bool fast_tagged : 1;           /* fast, or would be without these tags */
	/* SRTP+ chain: payloads end with a block of 2 << chains bytes (media_block_len()); 0: they
	 * do not. */
	uint8_t chains : 3;
	bool coming : 1; /* receiving in clear: ZRTP has keys, which will come (ahead.h) */
	bool rename : 1; /* media_ctx_cfg.rename is set, and this is not passed through */
	/* Also written in prepare, of forged packets: authentic packets until tags are no longer
	 * checked (tags.h). */
	uint8_t wary;
	uint8_t clear; /* bit 0: RTP is in the clear, now or by command; bit 1: RTCP by command */
};
_Static_assert(sizeof(struct media_way) == 64, "one cache line");

static inline uint32_t media_block_len(const struct media_way *w)
{
	return w->chains ? 2u << w->chains : 0;
}

struct media_ctx {
	struct media_way rx, tx; /* both are set, or none */
	/* Few packets need the rest. Set by commands: */
	struct media_tail rtcp_tail[2]; /* [tx] */
	uint32_t roc[SSRC_TABLES];      /* ROC at which unknown SSRCs start */
	uint64_t changed;               /* number of the burst before the last command */
	struct media_ctx_cfg *cfg;
	/* Written by complete.c only, after authentication. Further SSRCs lie elsewhere, so that
	 * the packet path touches few pages. Indexes are kept while the key lives: of evicted SSRCs
	 * in struct past, of unused keys in struct ledger. */
	struct ssrc_state first_rtcp;               /* of RX_RTCP */
	struct ssrc_state (*more)[MEDIA_SSRCS - 1]; /* [SSRC_TABLES] */
	uint8_t used[SSRC_TABLES]; /* entries used in each table: allocated in order, never freed */
	uint64_t tx_rtcp_next;     /* first SRTCP index never sent */
	/* Scratch of prepare.c, valid until that burst completes: the last burst with RTCP for this
	 * context, and the next RTCP index. */
	uint64_t scratch_burst;
	uint64_t scratch_rtcp;
	uint64_t coming_ns; /* ahead.c: the first packet since rx.coming; 0: none */
	/* The lines are an odd number: with four, contexts would use only half of the cache sets.
	 */
	/* Scratch of prepare.c: the last SSRC and its new name, as xc_job's ssrc_change. 0 =
	 * empty. */
	struct {
		uint32_t ssrc, change;
	} scratch_name;
};
_Static_assert(sizeof(struct media_ctx) / 64 % 2 == 1, "contexts spread over the cache's sets");

struct media_stream {
	_Alignas(64) uint8_t before[8];
	/* Written by complete.c only, after authentication, and by commands. The end of this and
	 * the start of the rest share the cache line that packets of a confirmed source need. */
	struct learn learn;
	/* Set by commands, constant in between. */
	uint64_t changed : 55; /* number of the burst before the last command */
	bool set : 1;
	bool watched : 1;   /* again.c */
	bool guarded : 1;   /* attack.c */
	bool suspected : 1; /* attack.c */
	bool limited : 1;   /* rate.c; complete.c changes it */
	bool fast : 1;      /* media_fast_stream() */
	bool convert : 1;   /* the same, but for cfg.convert */
	bool listed : 1;    /* bundle.h has a list of its SSRCs: media_bundle_lists() */
	/* Packets to its terminal need media_may_leave(): cfg.wait, or learn_is_old(), which
	 * complete.c changes, too. */
	bool look : 1;
	struct media_stream_cfg cfg;
	_Alignas(64) uint8_t spread[64]; /* see media_ctx.spread */
};
#define MEDIA_STREAM_HOT offsetof(struct media_stream, learn.remote)
_Static_assert(MEDIA_STREAM_HOT == 64 && offsetof(struct media_stream, cfg.remote) == 128,
	"one cache line");
_Static_assert(sizeof(struct media_stream) / 64 % 2 == 1, "streams spread over the cache's sets");

_Static_assert(offsetof(struct media_stream_counters, drops) <= 64, "one cache line");

/* A run of packets whose indexes are too far ahead to be accepted. */
struct jump {
	uint64_t last, since_ns; /* highest accepted index, and start of the run */
	uint32_t ssrc;
	uint16_t seq; /* of the run's last packet */
	uint8_t count;
};

/* Filled by time. */
struct roc_bucket {
	uint64_t ns;
	uint32_t tokens;
};

/* Sources that sent authentic ICE checks to this port (checked.h). Written between bursts. */
#define MEDIA_CHECKED 4
struct media_checked {
	struct endpoint of[MEDIA_CHECKED]; /* the latest first; family 0 = free */
	uint32_t serial;                   /* of the session that answered the checks */
};

/* Counts forged packets of one second, while the stream has no guard (attack.c). */
struct attack_count {
	uint64_t since_ns;      /* start of the second */
	uint64_t not_before_ns; /* no guard begins before this time */
	uint64_t suspected_ns;  /* the latest reason to suspect it */
	uint32_t forged;        /* packets */
	uint32_t rate;          /* forged packets per second, before since_ns */
	uint32_t trues;         /* authentic packets until since_ns, modulo 2^32 */
	uint32_t place;         /* of a guarded stream in struct attacks */
};

/* The packets of a second (rate.c). While the stream is not limited: since the last look. */
struct media_rate {
	uint64_t since_ns;
	uint64_t others; /* packets that other.c relayed, and that media do not count */
	uint64_t number; /* the stream's packets and others, at since_ns */
	uint32_t n;
};

/* State that only few packets of a stream need. Written by complete.c, roc.c and commands. */
struct media_trial {
	struct learn_trials learn;
	struct jump jump[2];      /* [tx]: of received indexes, and of sent ones */
	struct endpoint answered; /* other.c: the source of packets other than RTP */
	uint32_t blind; /* other.c: such packets sent to a destination that has sent none */
	/* Of a terminal that receives early media: the source stream + 1, and the time of its last
	 * packet. */
	uint32_t early_from;
	uint64_t early_ns;
	uint64_t short_ns[2]; /* [known SSRC] short_tag.c: rate limit of tests of tags */
	/* roc.c: rate limit of tests; how far ahead the last counter tried was, 0 = none */
	struct roc_bucket roc;
	uint8_t roc_at;
	uint16_t roc_used; /* tests in the second roc_second */
	uint64_t roc_second;
	struct side_share side;   /* side.c, in prepare */
	struct audio_share audio; /* audio.c, in complete */
	struct media_checked checked;
	struct attack_count attack;
	struct media_rate rate;
};

/* Passed from prepare to complete with each job. */
struct note {
	uint32_t in, stream, to; /* MEDIA_NONE = track only; counted as why */
	uint32_t rx_key, tx_key; /* slots of the master keys, 0 = plain */
	/* Slot of the session keys that complete.c encrypts with, after it changed SSRCs in the
	 * body or the header extension. 0 = the engine encrypts. */
	uint32_t late_key;
	/* xc_job.convert, if complete.c converts the packet before it encrypts it. Then the engine
	 * only decrypts. */
	uint32_t convert;
	/* Contexts of stream and to, valid unless those are stale. */
	struct media_ctx *rx, *tx;
	uint8_t why;
	bool received;        /* set by complete.c: authentic and new, so copies may go */
	bool passed;          /* sent unchanged; media.open has the job that decrypts it, */
	bool opened : 1;      /* if there is one */
	bool mid : 1;         /* complete.c writes the m-line's MID into it */
	bool block : 1;       /* complete.c removes or appends the block of SRTP+ chain */
	bool fast_tagged : 1; /* prepared by media_fast_tagged() */
	bool ours : 1;        /* of an audio session: prepared by media_audio_prepare() */
	bool fast;            /* prepared by media_fast() */
	bool other;           /* prepared by media_other(): not RTP */
	bool bundle;          /* RTCP of a bundle: sent to the m-lines whose SSRCs it names */
	uint8_t kind;         /* if other: enum pkt_kind */
	uint32_t copy_of;     /* job of the packet itself; MEDIA_NONE: this is it */
	uint32_t named;       /* if bundle: m-lines that the packet itself names, a bit each */
};

/* Estimated index of an SSRC without state, in bursts not completed yet. Scratch. */
struct first_seen {
	uint64_t burst, index;
	uint32_t ctx, ssrc;
	struct endpoint src;
	uint8_t table;
};

struct media {
	struct media_config cfg;
	struct media_ctx *ctx;
	struct media_ctx_cfg *ctx_cfg; /* [max_ctx] */
	struct ssrc_state (
		*ssrc)[SSRC_TABLES][MEDIA_SSRCS - 1]; /* [max_ctx]: used for further SSRCs */
	struct media_stream *stream;
	struct media_trial *trial; /* [max_stream] */
	struct media_stream_counters *counters;
	struct rtcp_stats *rtcp;
	uint32_t *by_port; /* [local_addrs][ports]: stream, or MEDIA_NONE */
	/* Burst numbers: last prepared; last completed, or being completed; last prepared before
	 * the last command. Bursts after done are in flight. */
	uint64_t burst, done, changed;
	uint64_t clock;             /* of ssrc_state.touched */
	uint64_t now_ns;            /* CLOCK_MONOTONIC at the last burst of audio sessions */
	uint32_t bursts;            /* maximum in flight */
	uint64_t shed_before_ns[2]; /* [emergency]: packets received before are too old */
	/* number of streams that are listeners or need silence: a packet may make several jobs */
	uint32_t doublers;
	uint32_t bundlers; /* number of streams with bundle: a packet may make several jobs */
	/* [max_stream], from the start: few ports have bundles, so they lie together. bundle_at:
	 * place + 1 by stream, 0 = none. */
	struct media_bundle *bundle;
	uint32_t *bundle_at;
	uint32_t bundle_used, bundle_free; /* places used so far; an unused one of them + 1 */
	struct media_ahead *ahead;         /* packets that wait for keys */
	struct media_tags *tags;           /* [max_ctx]: touched only where one has tags */
	struct tags_windows *tags_windows; /* [max_ctx]: touched only where one has tags */
	uint32_t taggers;                  /* number of contexts with tags */
	/* Scratch between prepare and complete; media_lane_use() selects the burst. [bursts] times
	 * as long. */
	/* [burst_max]: the burst's own arena slots in use; checked for copies only */
	uint8_t *slot_used;
	uint32_t slot_next;
	struct note *note;   /* [burst_max], one per job */
	struct xc_job *open; /* [burst_max], one per job: packets that are passed through */
	uint32_t *in_stream; /* [burst_max], one per packet: stream of the port it arrived at, or
			      * MEDIA_NONE */
	/* [burst_max], one per packet sent: stream of its source port */
	uint32_t *out_stream;
	/* Packets of the burst in completion that are encrypted at its end (rewrite.h). */
	struct media_late {
		struct xc_job *job; /* [burst_max], as the others */
		uint32_t *status;
		struct {
			const struct media_ctx *tx;
			struct packet_out *out;
		} * of;
		uint32_t n;
	} late;
	struct first_seen *first; /* [first_mask + 1], a hash table */
	uint32_t first_mask;
	struct lane {
		uint8_t *slot_used;
		struct note *note;
		struct xc_job *open;
		uint32_t *in_stream, *out_stream;
		struct first_seen *first;
	} lane[MEDIA_BURSTS_MAX];
	/* [max_ctx][SSRC_TABLES][MEDIA_SSRCS][window_words], if longer than the default */
	uint64_t *windows;
	uint32_t window_words;
	struct key_state *key; /* [key_slots / 2] */
	struct epochs *epochs; /* [key_slots / 2], used of keys with a kdr only */
	uint64_t epoch_clock;
	/* Derivations that unauthenticated packets may still cause: a token bucket. */
	uint64_t derive_ns;
	uint32_t derive_tokens;
	/* Rate limit of tests of lost roll-over counters, shared by the streams that test: this
	 * second, and how many streams test in it and did in the one before. */
	uint64_t roc_second;
	uint32_t roc_streams[2];
	_Atomic uint64_t keys_warned, keys_expired;
	_Atomic uint64_t drops[PACKET_VERDICTS]; /* of all streams, and without a stream */
	_Atomic uint64_t side[SIDE_KINDS_N];
	_Atomic uint64_t handovers[LEARN_CAUSE_N];
	struct attacks *attacks;
	uint64_t *again; /* [AGAIN_HASHES], see again.c */
	struct again_watch {
		uint64_t until_ns; /* 0 = no packet was seen yet */
		uint32_t left;     /* packets left to compare */
		uint32_t reports;  /* RTCP packets that repeated */
		bool found;        /* a packet repeated */
	} * watch;                 /* [max_stream]: touched only where one is watched */
	struct past (*past)
		[SSRC_TABLES];  /* [max_ctx]: touched only where there are more SSRCs than places */
	struct ledger *ledger;  /* [key_slots / 2]: touched only when a key leaves use */
	struct media_ctx *ours; /* receives packets of audio sessions: plain, constant */
};

static inline struct xc_job *media_open(const struct media *m, const struct note *n)
{
	return &m->open[n - m->note];
}

static inline uint32_t *media_port_cell(const struct media *m, struct local_port p)
{
	uint32_t ports = (uint32_t)(m->cfg.port_max - m->cfg.port_min) + 1;

	if (p.addr >= m->cfg.local_addrs || p.port < m->cfg.port_min || p.port > m->cfg.port_max)
		return NULL;
	return &m->by_port[(size_t)p.addr * ports + (uint32_t)(p.port - m->cfg.port_min)];
}

/* The SSRC that the job's packet is sent under. */
static inline uint32_t media_sent_ssrc(const struct xc_job *j)
{
	return j->ssrc ^ j->ssrc_change;
}

/* Cache lines of a stream and its context that an RTP packet needs once a source is confirmed. Used
 * by prefetch.c, and by the baseline of xcipher-bench, which only touches them. */
static inline void *media_line_stream(const struct media *m, uint32_t stream)
{
	return (uint8_t *)&m->stream[stream] + MEDIA_STREAM_HOT;
}

static inline void *media_line_counters(const struct media *m, uint32_t stream)
{
	return &m->counters[stream];
}

static inline void *media_line_rx(const struct media_ctx *c)
{
	return (void *)&c->rx;
}

static inline void *media_line_tx(const struct media_ctx *c)
{
	return (void *)&c->tx;
}

/* One writer per counter, so a relaxed load and store suffices. */
static inline void media_count(_Atomic uint64_t *c, uint64_t add)
{
	atomic_store_explicit(
		c, atomic_load_explicit(c, memory_order_relaxed) + add, memory_order_relaxed);
}

static inline uint8_t media_drop(struct media *m, uint32_t stream, enum packet_verdict why)
{
	media_count(&m->drops[why], 1);
	if (stream != MEDIA_NONE) {
		media_count(&m->counters[stream].errors, 1);
		media_count(&m->counters[stream].drops[why], 1);
	}
	return (uint8_t)why;
}

/* Whether a context authenticates received packets of this kind. */
static inline bool media_proves(const struct media_way *rx, bool rtcp)
{
	return rx->srtp && !rx->pass && (rtcp || !rx->no_rtp_auth);
}

#endif
