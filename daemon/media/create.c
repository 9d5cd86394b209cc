/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates and destroys the tables of one worker, and gets memory for their entries
 * (media/media.h). */
#include "media/media.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bigmem.h"
#include "base/lines.h"
#include "media/again.h"
#include "media/ahead.h"
#include "media/attack.h"
#include "media/bundle.h"
#include "media/keys.h"
#include "media/ledger.h"
#include "media/ssrc.h"
#include "media/state.h"
#include "media/tags.h"

static uint32_t pow2_from(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static bool config_is_sound(const struct media_config *cfg)
{
	uint32_t w = cfg->replay_window;

	return cfg->bursts <= MEDIA_BURSTS_MAX && w % 64 == 0 && w <= SRTP_REPLAY_WINDOW_MAX;
}

static size_t port_cells(const struct media_config *cfg)
{
	return cfg->port_max < cfg->port_min
		? 0
		: ((size_t)(cfg->port_max - cfg->port_min) + 1) * cfg->local_addrs;
}

/* 64-bit words of all windows that are not stored in struct ssrc_state. */
static size_t window_words(const struct media *m)
{
	return m->window_words > SRTP_REPLAY_NEAR
		? (size_t)m->cfg.max_ctx * SSRC_TABLES * MEDIA_SSRCS * m->window_words
		: 0;
}

static bool lanes_alloc(struct media *m)
{
	uint32_t n = m->cfg.burst_max;
	bool all = true;

	for (uint32_t i = 0; i < m->bursts; i++) {
		struct lane *l = &m->lane[i];

		l->slot_used = lines_alloc(n, 1);
		l->note = lines_alloc(n, sizeof(*l->note));
		l->open = lines_alloc(n, sizeof(*l->open));
		l->in_stream = lines_alloc(n, sizeof(*l->in_stream));
		l->out_stream = lines_alloc(n + 1, sizeof(*l->out_stream));
		l->first = calloc((size_t)m->first_mask + 1, sizeof(*l->first));
		all = all && l->slot_used && l->note && l->open && l->in_stream && l->out_stream &&
			l->first;
	}
	return all;
}

static void lanes_free(struct media *m)
{
	for (uint32_t i = 0; i < MEDIA_BURSTS_MAX; i++) {
		free(m->lane[i].slot_used);
		free(m->lane[i].note);
		free(m->lane[i].open);
		free(m->lane[i].in_stream);
		free(m->lane[i].out_stream);
		free(m->lane[i].first);
	}
}

int media_create(struct media **out, const struct media_config *cfg)
{
	struct media *m;
	size_t cells = port_cells(cfg);

	if (!config_is_sound(cfg))
		return -EINVAL;
	m = lines_alloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->cfg = *cfg;
	m->bursts = cfg->bursts ? cfg->bursts : 1;
	m->window_words = (cfg->replay_window ? cfg->replay_window : SRTP_REPLAY_WINDOW) / 64;
	m->first_mask = pow2_from(4 * cfg->burst_max + 1) - 1; /* rx and tx, half full at most */
	m->ctx = bigmem_alloc(cfg->max_ctx, sizeof(*m->ctx));
	m->ctx_cfg = bigmem_alloc(cfg->max_ctx, sizeof(*m->ctx_cfg));
	m->ssrc = bigmem_alloc(cfg->max_ctx, sizeof(*m->ssrc));
	m->past = bigmem_alloc(cfg->max_ctx, sizeof(*m->past));
	m->stream = bigmem_alloc(cfg->max_stream, sizeof(*m->stream));
	m->trial = bigmem_alloc(cfg->max_stream, sizeof(*m->trial));
	m->counters = bigmem_alloc(cfg->max_stream, sizeof(*m->counters));
	if (rtcp_stats_create(&m->rtcp, cfg->max_stream)) {
		media_destroy(m);
		return -ENOMEM;
	}
	m->by_port = bigmem_alloc(cells, sizeof(*m->by_port));
	/* Large, but only used pages get memory: for SSRCs, and for keys with a kdr. */
	m->windows = bigmem_alloc(window_words(m), sizeof(*m->windows));
	m->key = bigmem_alloc(cfg->key_slots / 2 + 1, sizeof(*m->key));
	m->again = bigmem_alloc(AGAIN_HASHES, sizeof(*m->again));
	m->attacks = media_attacks_alloc();
	m->watch = bigmem_alloc(cfg->max_stream, sizeof(*m->watch));
	m->bundle = bigmem_alloc(cfg->max_stream, sizeof(*m->bundle));
	m->bundle_at = bigmem_alloc(cfg->max_stream, sizeof(*m->bundle_at));
	m->ledger = bigmem_alloc(cfg->key_slots / 2 + 1, sizeof(*m->ledger));
	m->ahead = bigmem_alloc(1, sizeof(*m->ahead));
	m->tags = bigmem_alloc(cfg->max_ctx, sizeof(*m->tags));
	m->tags_windows = bigmem_alloc(cfg->max_ctx, sizeof(*m->tags_windows));
	m->late.job = lines_alloc(cfg->burst_max, sizeof(*m->late.job));
	m->late.status = calloc(cfg->burst_max, sizeof(*m->late.status));
	m->late.of = calloc(cfg->burst_max, sizeof(*m->late.of));
	m->epochs = calloc(cfg->key_slots / 2 + 1, sizeof(*m->epochs));
	m->ours = lines_alloc(1, sizeof(*m->ours));
	if (!m->ledger || !m->ctx || !m->ctx_cfg || !m->ssrc || !m->past || !m->stream ||
		!m->trial || !m->counters || !m->by_port || !lanes_alloc(m) || !m->windows ||
		!m->key || !m->epochs || !m->again || !m->attacks || !m->watch || !m->bundle ||
		!m->bundle_at || !m->ahead || !m->tags || !m->tags_windows || !m->ours ||
		!m->late.job || !m->late.status || !m->late.of) {
		media_destroy(m);
		return -ENOMEM;
	}
	for (size_t i = 0; i < cells; i++)
		m->by_port[i] = MEDIA_NONE;
	m->ours->rx.set = m->ours->tx.set = true;
	*out = m;
	return 0;
}

void media_destroy(struct media *m)
{
	if (!m)
		return;
	bigmem_free(m->ctx, m->cfg.max_ctx, sizeof(*m->ctx));
	bigmem_free(m->ctx_cfg, m->cfg.max_ctx, sizeof(*m->ctx_cfg));
	bigmem_free(m->ssrc, m->cfg.max_ctx, sizeof(*m->ssrc));
	bigmem_free(m->past, m->cfg.max_ctx, sizeof(*m->past));
	bigmem_free(m->stream, m->cfg.max_stream, sizeof(*m->stream));
	bigmem_free(m->trial, m->cfg.max_stream, sizeof(*m->trial));
	bigmem_free(m->counters, m->cfg.max_stream, sizeof(*m->counters));
	rtcp_stats_destroy(m->rtcp);
	lanes_free(m);
	bigmem_free(m->by_port, port_cells(&m->cfg), sizeof(*m->by_port));
	bigmem_free(m->windows, window_words(m), sizeof(*m->windows));
	bigmem_free(m->ledger, m->cfg.key_slots / 2 + 1, sizeof(*m->ledger));
	bigmem_free(m->key, m->cfg.key_slots / 2 + 1, sizeof(*m->key));
	bigmem_free(m->again, AGAIN_HASHES, sizeof(*m->again));
	bigmem_free(m->watch, m->cfg.max_stream, sizeof(*m->watch));
	bigmem_free(m->bundle, m->cfg.max_stream, sizeof(*m->bundle));
	bigmem_free(m->bundle_at, m->cfg.max_stream, sizeof(*m->bundle_at));
	bigmem_free(m->ahead, 1, sizeof(*m->ahead));
	bigmem_free(m->tags, m->cfg.max_ctx, sizeof(*m->tags));
	bigmem_free(m->tags_windows, m->cfg.max_ctx, sizeof(*m->tags_windows));
	free(m->late.job);
	free(m->late.status);
	free(m->late.of);
	free(m->epochs);
	free(m->ours);
	free(m->attacks);
	free(m);
}

/* Only what each call uses. Large tables for rare features get memory when they are used. */
void media_handles_touch(struct media *m, enum media_handle h, uint32_t from, uint32_t to)
{
	const uint32_t end[MEDIA_HANDLES] = {
		[MEDIA_HANDLE_CTX] = m->cfg.max_ctx,
		[MEDIA_HANDLE_STREAM] = m->cfg.max_stream,
		[MEDIA_HANDLE_KEY] = m->cfg.key_slots / 2,
	};

	to = min_u32(to, end[h]);
	switch (h) {
	case MEDIA_HANDLE_CTX:
		bigmem_touch(m->ctx, sizeof(*m->ctx), from, to);
		bigmem_touch(m->ctx_cfg, sizeof(*m->ctx_cfg), from, to);
		bigmem_touch(m->ssrc, sizeof(*m->ssrc), from, to);
		break;
	case MEDIA_HANDLE_STREAM:
		bigmem_touch(m->stream, sizeof(*m->stream), from, to);
		bigmem_touch(m->trial, sizeof(*m->trial), from, to);
		bigmem_touch(m->counters, sizeof(*m->counters), from, to);
		rtcp_stats_touch(m->rtcp, from, to);
		break;
	case MEDIA_HANDLE_KEY:
		bigmem_touch(m->key, sizeof(*m->key), from, to);
		break;
	case MEDIA_HANDLES:
		break;
	}
}
