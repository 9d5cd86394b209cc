/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a burst will look up is asked of memory beforehand: with thousands of calls nothing of a packet's stream, contexts, keys
 * and counters is in the cache, and each look-up needs the one before it. For all packets at once they cost one wait per step
 * instead of one per packet and step. Reads only, decides nothing: what a packet turns out to be does not matter here. */
#include "media/int.h"

enum { LINE = 64 };

static void ask(const void *p, size_t len)
{
	const uint8_t *end = (const uint8_t *)p + len;

	for (const uint8_t *at = (const uint8_t *)p - (uintptr_t)p % LINE; at < end; at += LINE)
		__builtin_prefetch(at);
}

/* Will be written, too. */
static void ask_write(const void *p)
{
	__builtin_prefetch(p, 1);
}

static const struct media_ctx *ctx_of(const struct media *m, uint32_t stream)
{
	return &m->ctx[m->stream[stream].cfg.ctx];
}

static void ask_stream(const struct media *m, uint32_t stream)
{
	ask(&m->stream[stream], sizeof(m->stream[stream]));
	ask_write(&m->counters[stream]);
}

/* The part that packets use, and the first SSRC, which nearly always is the only one. */
static void ask_ctx(const struct media_ctx *c, const struct media_crypto *crypto, int table)
{
	ask_write(c);
	ask(crypto, offsetof(struct media_crypto, key[1]));
	ask_write(&c->ssrc[table][0]);
}

/* The key's life, and for the engine the slot's hot part (layout.h). */
static void ask_key(const struct media *m, const struct arena *a, uint32_t slot)
{
	const struct xc_key *k = &a->key[slot];

	ask_write(&m->key[slot / 2]);
	ask(k, offsetof(struct xc_key, rk) + 11 * 16);
}

void media_ahead_again(const struct media *m, const struct note *n)
{
	ask_stream(m, n->stream);
	ask_write(n->rx);
	ask_write(&n->rx->ssrc[RX_RTP][0]);
	ask_write(&m->key[n->rx_key / 2]);
	if (n->to == MEDIA_NONE)
		return;
	ask_stream(m, n->to);
	ask_write(n->tx);
	ask_write(&n->tx->ssrc[TX_RTP][0]);
	ask_write(&m->key[n->tx_key / 2]);
}

void media_ahead(
	const struct media *m, const struct arena *a, const struct media_in *in, uint32_t n)
{
	uint32_t stream[MEDIA_AHEAD], to[MEDIA_AHEAD];
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t *cell = media_port_cell(m, in[i].local);

		if (cell)
			__builtin_prefetch(cell);
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t *cell = media_port_cell(m, in[i].local);

		if (!cell || *cell == MEDIA_NONE)
			continue;
		stream[k++] = *cell;
		ask_stream(m, *cell);
	}
	for (uint32_t i = 0; i < k; i++) {
		to[i] = m->stream[stream[i]].cfg.rtp_to;
		ask_ctx(ctx_of(m, stream[i]), &ctx_of(m, stream[i])->cfg.rx, RX_RTP);
		if (to[i] != MEDIA_NONE)
			ask_stream(m, to[i]);
	}
	for (uint32_t i = 0; i < k; i++) {
		ask_key(m, a, ctx_of(m, stream[i])->cfg.rx.key[0].slot);
		if (to[i] != MEDIA_NONE)
			ask_ctx(ctx_of(m, to[i]), &ctx_of(m, to[i])->cfg.tx, TX_RTP);
	}
	for (uint32_t i = 0; i < k; i++) {
		const struct media_crypto *tx;

		if (to[i] == MEDIA_NONE)
			continue;
		tx = &ctx_of(m, to[i])->cfg.tx;
		ask_key(m, a, tx->key[tx->use].slot);
	}
}
