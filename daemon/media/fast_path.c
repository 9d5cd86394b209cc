/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fast path of prepare, for nearly all packets: RTP without extension, from a confirmed source, not
 * gated, copied or passed through. The SSRC must be the context's first, the index the highest on
 * both sides, and the keys must have credit. Results equal prepare.c's (test_media_fast_path
 * compares them). Reads state only. */
#include "media/fast_path.h"
#include "layout.h"
#include "media/state.h"
#include "media/tags.h"
#include "packet/arena.h"
#include "proto/rtp.h"

/* The column "fast" of media/fields.h. */
#define FAST_ANY(v)                                          true
#define FAST_WAY(v)                                          true
#define FAST_ZERO(v)                                         !(v)
#define FAST_SET(v)                                          (v)
#define FAST_NAMED(v)                                        ((v) != MEDIA_NONE)
#define FAST_RTP_ZERO(v)                                     !(v)[false]
#define X(type, name, suffix, compared, fast, kernel, saved) &&FAST_##fast(c->name)

/* Condition of a stream for the fast path. */
static bool media_fast_stream(const struct media_stream_cfg *c)
{
	return true STREAM_FIELDS(X);
}

void media_fast_set(struct media_stream *s)
{
	struct media_stream_cfg other = s->cfg;
	bool usual = !s->watched && !s->guarded && !s->suspected && !s->limited;

	other.convert = 0;
	s->fast = usual && media_fast_stream(&s->cfg);
	s->convert = usual && s->cfg.convert && media_fast_stream(&other);
}

bool media_fast_way(const struct media_crypto *c)
{
	return true CRYPTO_FIELDS(X);
}
#undef X

/* The index if it is the highest of this direction's first SSRC, under a key with credit. Otherwise
 * SRTP_INDEX_MAX + 1. */
static inline uint64_t newest(const struct media_way *w, uint32_t ssrc, uint16_t seq)
{
	const struct ssrc_state *s = &w->first;
	uint64_t index = srtp_index_estimate(s->seen.last, seq);

	return s->ssrc == ssrc && s->used && s->seen.started && index > s->seen.last &&
			atomic_load_explicit(&w->credit, memory_order_relaxed)
		? index
		: SRTP_INDEX_MAX + 1;
}

/* Three copies of one function, with a constant kind each. */
enum fast_kind {
	USUAL,
	CONVERTED, /* of streams with media_stream_cfg.convert */
	TAGGED,    /* of contexts with SRTP+ tags */
};

struct place {
	const struct arena *a;
	const struct packet_in *in; /* the burst */
	uint32_t at;                /* in it */
};

/* SRTP+ chain: prepares a packet with a block. False: no room for a block, or the received one is
 * missing. Usually the engine replaces the block. If the received block is needed, or the block to
 * send is not known yet, the engine only decrypts, and complete.c changes and encrypts the
 * packet. */
static bool replace_block(
	const struct media *m, const struct arena *a, struct note *note, struct xc_job *job)
{
	const struct media_way *rx = &note->rx->rx, *tx = &note->tx->tx;
	uint32_t cut = media_block_len(rx), add = media_block_len(tx);

	if (job->body_len < cut ||
		job->hdr_len + job->body_len + PREAUTH_BLOCK_MAX + tx->tail.len > ARENA_MAX_PACKET)
		return false;
	if ((cut && rx->wary) ||
		(add &&
			!media_tag_block_copy(m, note->tx, job->ssrc, job->tx_index,
				a->out + job->out_off - XC_BLOCK_MAX))) {
		note->block = true;
		note->late_key = job->tx_key;
		job->tx_key = 0;
		return true;
	}
	job->flags = XC_BLOCKS(cut, add);
	job->tx_tag_off += add - cut;
	return true;
}

static inline __attribute__((always_inline)) enum media_fast_result fast(const struct media *m,
	struct place place, struct note *note, struct xc_job *job, const enum fast_kind kind)
{
	const struct arena *a = place.a;
	const struct packet_in *in = &place.in[place.at];
	uint32_t at = place.at;
	uint32_t stream = m->in_stream[at], len, ssrc, body_end, out_end, to;
	const struct media_stream *s, *target;
	const uint8_t *p;
	uint64_t rx_index = 0, tx_index = 0;
	const struct media_ctx *rx, *tx;

	if (stream == MEDIA_NONE)
		return MEDIA_FAST_NO;
	s = &m->stream[stream];
	p = a->in + in->in_off;
	len = in->len;
	if (!(kind == CONVERTED ? s->convert : s->fast) || !s->learn.confirmed ||
		len < RTP_FIXED_LEN || len > ARENA_MAX_PACKET)
		return MEDIA_FAST_NO;
	/* Version 2, any padding bit, no CSRCs, and not RTCP by RFC 5761. */
	if ((p[0] & 0xdf) != RTP_VERSION << 6 || (p[1] >= 192 && p[1] <= 223))
		return MEDIA_FAST_NO;
	/* Without the hint gcc treats the code below as rare, and clears job and note by "rep
	 * stos", which starts slowly. */
	if (__builtin_expect(
		    in->dev != s->learn.dev || !endpoint_eq(&in->src, &s->learn.remote), 0))
		return MEDIA_FAST_NO;
	if (in->t_ns < m->shed_before_ns[s->cfg.emergency])
		return MEDIA_FAST_NO;
	if (kind == CONVERTED && __builtin_expect(p[0] & RTP_P_BIT || m->ctx[s->cfg.ctx].rx.f8, 0))
		return MEDIA_FAST_NO;
	to = s->cfg.rtp_to;
	target = &m->stream[to];
	rx = &m->ctx[s->cfg.ctx];
	tx = &m->ctx[target->cfg.ctx];
	if (!target->set || !rx->rx.set || !(kind == TAGGED ? rx->rx.fast_tagged : rx->rx.fast) ||
		!tx->tx.set || !(kind == TAGGED ? tx->tx.fast_tagged : tx->tx.fast))
		return MEDIA_FAST_NO;
	if (kind == TAGGED && rx->rx.wary && media_tag_check(m, a, rx, p, len) == PREAUTH_FORGED)
		return MEDIA_FAST_FORGED;
	body_end = len - rx->rx.tail.len;
	out_end = body_end + tx->tx.tail.len;
	if (len - RTP_FIXED_LEN < rx->rx.tail.len || out_end > ARENA_MAX_PACKET)
		return MEDIA_FAST_NO;
	ssrc = be32(p + 8);
	if (rx->rx.srtp)
		rx_index = newest(&rx->rx, ssrc, be16(p + 2));
	if (tx->tx.srtp)
		tx_index = newest(&tx->tx, ssrc, be16(p + 2));
	if ((rx_index | tx_index) > SRTP_INDEX_MAX)
		return MEDIA_FAST_NO;
	*job = (struct xc_job){
		.rx_index = rx_index,
		.tx_index = tx_index,
		.in_off = in->in_off,
		.out_off = in->slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.rx_key = rx->rx.slot,
		.tx_key = tx->tx.slot,
		.hdr_len = RTP_FIXED_LEN,
		.body_len = body_end - RTP_FIXED_LEN,
		.rx_tag_off = body_end + rx->rx.tail.tag,
		.tx_tag_off = body_end + tx->tx.tail.tag,
		.ssrc = ssrc,
		.convert = kind == CONVERTED ? media_convert(s->cfg.convert, p[1] & 0x7f) : 0,
	};
	*note = (struct note){.in = at,
		.stream = stream,
		.to = to,
		.rx_key = rx->rx.slot,
		.tx_key = tx->tx.slot,
		.rx = (struct media_ctx *)rx,
		.tx = (struct media_ctx *)tx,
		.why = PACKET_SENT,
		.fast = kind != TAGGED || !(rx->rx.tagged | tx->tx.tagged),
		.fast_tagged = kind == TAGGED && (rx->rx.tagged | tx->tx.tagged),
		.copy_of = MEDIA_NONE};
	if (kind == TAGGED && (rx->rx.chains | tx->tx.chains) && !replace_block(m, a, note, job))
		return MEDIA_FAST_NO;
	return MEDIA_FAST_YES;
}

bool media_fast(const struct media *m, const struct arena *a, const struct packet_in *in,
	uint32_t at, struct note *note, struct xc_job *job)
{
	return fast(m, (struct place){a, in, at}, note, job, USUAL) == MEDIA_FAST_YES;
}

bool media_fast_convert(const struct media *m, const struct arena *a, const struct packet_in *in,
	uint32_t at, struct note *note, struct xc_job *job)
{
	return fast(m, (struct place){a, in, at}, note, job, CONVERTED) == MEDIA_FAST_YES;
}

enum media_fast_result media_fast_tagged(const struct media *m, const struct arena *a,
	const struct packet_in *in, uint32_t at, struct note *note, struct xc_job *job)
{
	return fast(m, (struct place){a, in, at}, note, job, TAGGED);
}
