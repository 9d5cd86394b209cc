/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prefetches what a burst will look up. With thousands of calls, a packet's stream, contexts and
 * counters are not in the cache, and each look-up depends on the one before. So look-ups of several
 * packets overlap: while one packet is prepared, later packets prefetch their next step. Each
 * packet adds a few prefetches, because memory handles a limited number at once. Reads only, and
 * ignores verdicts. The engine prefetches session keys. */
#include "media/prefetch.h"
#include "media/state.h"
#include "media/tags.h"

enum { PORTS, STREAMS, CONTEXTS, TARGETS };

/* gcc 12 assumes that a function with only prefetches has no effect, and drops its calls. */
#define ASK static inline __attribute__((always_inline)) void

ASK ask(const void *p)
{
	__builtin_prefetch(p);
}

/* Prefetches for writing. */
ASK ask_write(const void *p)
{
	__builtin_prefetch(p, 1);
}

/* Prefetches the stream's cache line for packets, and its counters. */
ASK ask_stream(const struct media *m, uint32_t stream)
{
	ask_write(media_line_stream(m, stream));
	ask_write(media_line_counters(m, stream));
}

static const struct media_ctx *ctx_of(const struct media *m, uint32_t stream)
{
	return &m->ctx[m->stream[stream].cfg.ctx];
}

void media_prefetch_jobs(const struct media *m, const struct note *n)
{
	ask_stream(m, n->stream);
	ask_write(media_line_rx(n->rx));
	if (n->to == MEDIA_NONE)
		return;
	ask_stream(m, n->to);
	ask_write(media_line_tx(n->tx));
}

/* Each step depends on the memory that the previous step prefetched. */
ASK take_step(struct media *m, const struct packet_in *in, uint32_t n, uint32_t i, const int step)
{
	uint32_t stream, to;

	if (i >= n)
		return;
	if (step <= STREAMS) {
		const uint32_t *cell = media_port_cell(m, in[i].local);

		if (step == PORTS) {
			if (cell)
				ask(cell);
			return;
		}
		m->in_stream[i] = stream = cell ? *cell : MEDIA_NONE;
		if (stream != MEDIA_NONE)
			ask_stream(m, stream);
		return;
	}
	stream = m->in_stream[i];
	if (stream == MEDIA_NONE)
		return;
	to = m->stream[stream].cfg.rtp_to;
	if (step == CONTEXTS)
		ask_write(media_line_rx(ctx_of(m, stream)));
	if (to == MEDIA_NONE)
		return;
	if (step == CONTEXTS)
		ask_stream(m, to);
	else
		ask_write(media_line_tx(ctx_of(m, to)));
}

void media_prefetch_begin(struct media *m, const struct packet_in *in, uint32_t n)
{
	const uint32_t d = MEDIA_PREFETCH;

	/* Too few packets gain nothing from prefetching. */
	for (uint32_t i = 0; i < min_u32(n, 4 * d) && n > 2; i++)
		take_step(m, in, n, i, PORTS);
	for (uint32_t i = 0; i < min_u32(n, 3 * d); i++)
		take_step(m, in, n, i, STREAMS);
	for (uint32_t i = 0; i < min_u32(n, 2 * d) && n > 2; i++)
		take_step(m, in, n, i, CONTEXTS);
	for (uint32_t i = 0; i < min_u32(n, d) && n > 2; i++)
		take_step(m, in, n, i, TARGETS);
}

void media_prefetch(struct media *m, const struct packet_in *in, uint32_t n, uint32_t at)
{
	const uint32_t d = MEDIA_PREFETCH;

	/* Prefetch in order of use. */
	take_step(m, in, n, at + d, TARGETS);
	take_step(m, in, n, at + 2 * d, CONTEXTS);
	take_step(m, in, n, at + 3 * d, STREAMS);
	take_step(m, in, n, at + 4 * d, PORTS);
}

/* chain: the tags to be sent to the first SSRC, which start at a multiple of 16. */
ASK ask_store(const struct media *m, const struct media_ctx *tx)
{
	const struct tags_store *s =
		&m->tags_windows[tx - m->ctx].sent[tx->tx.first.ssrc % TAGS_SSRCS];

	ask(s);
	ask((const uint8_t *)s + 64);
	ask(s->packed + sizeof(s->packed) / 2);
}

void media_prefetch_tags(const struct media *m, uint32_t n, uint32_t at)
{
	uint32_t i = at + MEDIA_PREFETCH, stream, to;
	const struct media_ctx *c;

	if (i >= n || (stream = m->in_stream[i]) == MEDIA_NONE)
		return;
	c = ctx_of(m, stream);
	if (c->rx.wary)
		ask_write(media_line_tags(m, (uint32_t)(c - m->ctx)));
	to = m->stream[stream].cfg.rtp_to;
	if (to != MEDIA_NONE && ctx_of(m, to)->tx.chains)
		ask_store(m, ctx_of(m, to));
}

void media_prefetch_tags_job(const struct media *m, const struct note *n, const struct xc_job *j)
{
	if (!n->fast_tagged)
		return;
	if (n->rx->rx.wary)
		ask_write(media_line_tags(m, (uint32_t)(n->rx - m->ctx)));
	if (n->tx->tx.tagged)
		ask_write(media_line_sent(m, (uint32_t)(n->tx - m->ctx), media_sent_ssrc(j)));
}

/* The lines of the key that the scheme needs. */
ASK ask_key(const struct arena *a, uint32_t slot, uint32_t scheme)
{
	const uint8_t *p = (const uint8_t *)&a->key[slot];

	ask(p);
	for (uint32_t at = 64; at < sizeof(struct preauth_key); at += 64)
		if (scheme != PREAUTH_HEADER_SIPHASH)
			ask(p + at);
}

/* One packet in PREAUTH_GROUP: its window, and the tags of the next group. */
ASK ask_window(const struct media *m, const struct arena *a, uint32_t ctx, const struct xc_job *j)
{
	const struct tags_next *t = &m->tags[ctx].rx;
	struct tags_window *w = m->tags_windows[ctx].of;

	ask_write(w);
	ask_write((uint8_t *)w + 64);
	ask(&w->w.tag[(j->rx_index + 1) % PREAUTH_WINDOW]);
	if (j->rx_index % 32 == PREAUTH_GROUP - 1) /* tags will be computed */
		ask_key(a, t->slot, t->scheme);
}

/* chain: the window of the first SSRC, with the places of this packet and of the tag that it
 * announces. */
ASK ask_announced(const struct media *m, uint32_t ctx, const struct xc_job *j)
{
	struct tags_window *w = m->tags_windows[ctx].of;

	ask_write(w);
	ask_write((uint8_t *)w + 64);
	ask_write(&w->w.tag[(j->rx_index + PREAUTH_GROUP * 4) % PREAUTH_WINDOW]);
}

/* header-hmac-sha1: the tag of this header and of the next one are probably known. */
static inline bool is_expected(const struct tags_sent *t, const struct xc_job *j)
{
	return t->scheme == PREAUTH_HEADER_HMAC &&
		(uint16_t)((uint16_t)j->tx_index - t->heads.seq) < t->heads.n;
}

void media_prefetch_tags_more(
	const struct media *m, const struct arena *a, const struct note *n, const struct xc_job *j)
{
	const struct tags_sent *t;
	uint32_t rx, tx;

	if (!n->fast_tagged)
		return;
	rx = (uint32_t)(n->rx - m->ctx);
	tx = (uint32_t)(n->tx - m->ctx);
	if (n->rx->rx.wary && n->rx->rx.chains)
		ask_announced(m, rx, j);
	else if (n->rx->rx.wary && !media_tag_is_marked(&m->tags[rx].rx, j) && m->tags[rx].rx.n)
		ask_window(m, a, rx, j);
	if (!n->tx->tx.tagged || n->tx->tx.chains)
		return;
	t = media_line_sent(m, tx, media_sent_ssrc(j));
	if (!is_expected(t, j) && !media_tag_is_ready(t, j))
		ask_key(a, t->slot, t->scheme);
}
