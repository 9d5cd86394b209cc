/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that change the tables of one worker (media/media.h). They run between bursts, in the
 * worker's thread. State that a command does not reset is kept: indexes and windows survive
 * re-INVITE, hold and changes of address. */
#include "media/media.h"

#include <errno.h>

#include "media/again.h"
#include "media/ahead.h"
#include "media/attack.h"
#include "media/bundle.h"
#include "media/fast_path.h"
#include "media/keys.h"
#include "media/ledger.h"
#include "media/short_tag.h"
#include "media/source.h"
#include "media/ssrc.h"
#include "media/state.h"
#include "media/tags.h"
#include "packet/arena.h"

static void way_set(struct media *m, struct media_way *w, const struct media_crypto *c, bool tx,
	bool rename, bool own)
{
	struct media_crypto untagged = *c;

	untagged.preauth = 0;
	media_key_settle(m, w);
	w->rename = rename && !c->pass;
	w->tail = media_tail(c, false);
	w->slot = c->key[tx ? c->use : 0].slot;
	w->set = !c->awaited;
	w->coming = false;
	w->srtp = media_is_srtp(c);
	w->choose = c->mki_len != 0;
	w->no_rtp_auth = c->no_rtp_auth;
	w->pass = c->pass;
	w->f8 = srtp_suite_get(c->suite)->cipher == XC_CIPHER_AES_F8;
	w->tagged = c->preauth;
	/* Plain packets are renamed as they come in, SRTP as it leaves. */
	w->chains = 0;
	while (w->tagged && media_block_len(w) < media_tag_block(c))
		w->chains++;
	w->fast_tagged = media_fast_way(&untagged) && !(w->rename && tx == w->srtp) && !own;
	w->fast = w->fast_tagged && !w->tagged;
	w->clear = c->clear_rtp;
	/* A received packet shows its own encryption. A suite without a cipher shows it in the E
	 * flag. */
	if (tx && (c->clear_rtcp || srtp_suite_get(c->suite)->cipher == XC_CIPHER_NULL))
		w->clear |= 2;
}

bool media_has_tags(const struct media *m)
{
	return m->taggers;
}

/* --- Commands --------------------------------------------------------------------------------- */

static bool crypto_is_sound(const struct media *m, const struct media_crypto *c)
{
	const struct srtp_suite *s = srtp_suite_get(c->suite);

	if (!s || c->mki_len > SUITE_MAX_MKI_LEN || c->keys > MEDIA_KEYS ||
		!media_tags_are_sound(m, c))
		return false;
	if (!media_is_srtp(c))
		return c->keys == 0 && c->key[0].slot == 0 && c->mki_len == 0 && !c->no_rtp_auth;
	if (c->keys == 0 || c->use >= c->keys || (c->keys > 1 && c->mki_len == 0) ||
		(c->no_rtp_auth && s->auth == XC_AUTH_GCM))
		return false;
	for (uint32_t i = 0; i < c->keys; i++) {
		uint32_t slot = c->key[i].slot;

		/* Slots 0 and 1 are plain: a suite using them would send in the clear. */
		if (slot < 2 || slot % 2 || slot >= m->cfg.key_slots)
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (memcmp(c->key[k].mki, c->key[i].mki, srtp_mki_kept(c->mki_len)) == 0)
				return false;
	}
	return true;
}

static bool starts_are_sound(const struct media_ctx_cfg *cfg)
{
	if (cfg->rx_starts > MEDIA_STARTS || cfg->tx_starts > MEDIA_STARTS ||
		cfg->tx_rtcp_index > SRTCP_INDEX_MAX)
		return false;
	for (uint32_t i = 0; i < MEDIA_STARTS; i++)
		if (cfg->rx_start[i].index > SRTP_INDEX_MAX ||
			cfg->tx_start[i].index > SRTP_INDEX_MAX)
			return false;
	return true;
}

/* A new key does not reset the SRTCP index (RFC 3711 3.4), unless it is used up: then it is counted
 * modulo 2^31. */
static void tx_rtcp_set(struct media *m, struct media_ctx *c, const struct media_ctx_cfg *cfg)
{
	const struct media_crypto *tx = &cfg->tx;

	if (c->tx_rtcp_next < cfg->tx_rtcp_index)
		c->tx_rtcp_next = cfg->tx_rtcp_index;
	if (c->tx_rtcp_next > SRTCP_INDEX_MAX && media_is_srtp(tx) &&
		!atomic_load_explicit(
			&m->key[tx->key[tx->use].slot / 2].rtcp, memory_order_relaxed))
		c->tx_rtcp_next = 0;
}

/* Changes the tables of each direction to the new keys: stores the indexes of keys that leave,
 * resets the tables, and restores the indexes of keys that return. */
static void tables_set(struct media *m, struct media_ctx *c, const struct media_ctx_cfg *cfg)
{
	const struct media_ctx_cfg old = *c->cfg;
	bool was = c->rx.set, trust = was && old.rx.pass && !cfg->rx.pass;

	media_ledger_leave(m, c, false, &cfg->rx, cfg->rx_new);
	media_ledger_leave(m, c, true, &cfg->tx, cfg->tx_new);
	if (!was || cfg->rx_new) {
		media_ssrc_reset(m, c, RX_RTP, cfg->rx_roc, cfg->rx_start, cfg->rx_starts);
		media_ssrc_reset(m, c, RX_RTCP, 0, NULL, 0);
	} else if (trust) {
		media_ssrc_trust(c);
	}
	if (!was || cfg->tx_new)
		media_ssrc_reset(m, c, TX_RTP, cfg->tx_roc, cfg->tx_start, cfg->tx_starts);
	tx_rtcp_set(m, c, cfg);
	/* Authentic indexes from before media were passed through still count as received. */
	media_ledger_join(m, c, false, was && !cfg->rx_new && !trust ? &old.rx : NULL, &cfg->rx);
	media_ledger_join(m, c, true, was && !cfg->tx_new ? &old.tx : NULL, &cfg->tx);
}

static bool has_tags(const struct media_ctx_cfg *cfg)
{
	return cfg->rx.preauth || cfg->tx.preauth;
}

static bool tags_changed(const struct media_crypto *old, const struct media_crypto *now)
{
	return old->preauth != now->preauth || old->preauth_slot != now->preauth_slot;
}

/* Tags of a key that stays are still right. */
static void tags_set(struct media *m, struct media_ctx *c, const struct media_ctx_cfg *cfg)
{
	const struct media_ctx_cfg *old = c->cfg;
	uint32_t id = (uint32_t)(c - m->ctx);

	m->taggers += has_tags(cfg);
	m->taggers -= has_tags(old);
	/* Steering would compare tags that the terminal no longer sends. */
	if (tags_changed(&old->rx, &cfg->rx))
		media_attack_new_keys(m, id);
	if ((has_tags(cfg) || has_tags(old)) &&
		(!c->rx.set || cfg->rx_new || cfg->tx_new || tags_changed(&old->rx, &cfg->rx) ||
			tags_changed(&old->tx, &cfg->tx)))
		media_tags_forget(m, id, cfg);
}

static int ctx_set(struct media *m, const struct media_cmd *cmd)
{
	const struct media_ctx_cfg *cfg = &cmd->ctx;
	struct media_ctx *c;

	if (cmd->id >= m->cfg.max_ctx || !crypto_is_sound(m, &cfg->rx) ||
		!crypto_is_sound(m, &cfg->tx) || !starts_are_sound(cfg))
		return -EINVAL;
	c = &m->ctx[cmd->id];
	if (cfg->tx.pass && media_is_srtp(&cfg->tx))
		return -EINVAL;
	/* Restarting indexes under a key that was used to send would repeat its keystream. */
	if ((!c->tx.set || cfg->tx_new) && !media_ledger_allows(m, &cfg->tx))
		return -EINVAL;
	c->cfg = &m->ctx_cfg[cmd->id];
	c->more = m->ssrc[cmd->id];
	tags_set(m, c, cfg);
	tables_set(m, c, cfg);
	if (cfg->rx_new)
		media_attack_new_keys(m, cmd->id);
	*c->cfg = *cfg;
	way_set(m, &c->rx, &cfg->rx, false, cfg->rename, false);
	way_set(m, &c->tx, &cfg->tx, true, cfg->rename, cfg->own_ssrc);
	c->scratch_name.change = 0;
	c->rtcp_tail[false] = media_rtcp_tail(m, &cfg->rx);
	c->rtcp_tail[true] = media_rtcp_tail(m, &cfg->tx);
	c->changed = m->burst;
	return 0;
}

/* A new stream's counters start at zero. */
static void counters_reset(struct media_stream_counters *c)
{
	_Atomic uint64_t *const all[] = {&c->packets, &c->bytes, &c->packets_out, &c->bytes_out,
		&c->errors, &c->last_packet_ns, &c->handover};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		atomic_store_explicit(all[i], 0, memory_order_relaxed);
	for (size_t i = 0; i < PACKET_VERDICTS; i++)
		atomic_store_explicit(&c->drops[i], 0, memory_order_relaxed);
	for (size_t i = 0; i < MEDIA_OTHERS_N; i++)
		atomic_store_explicit(&c->others[i], 0, memory_order_relaxed);
	for (size_t i = 0; i < SIDE_KINDS_N; i++)
		atomic_store_explicit(&c->side[i], 0, memory_order_relaxed);
	atomic_store_explicit(&c->ssrc, 0, memory_order_relaxed);
	atomic_store_explicit(&c->index, 0, memory_order_relaxed);
}

static bool handle_or_none(uint32_t id, uint32_t max)
{
	return id < max || id == MEDIA_NONE;
}

static bool doubles(const struct media_stream_cfg *cfg)
{
	return cfg->listener || cfg->gate & (MEDIA_GATE_QUIET | MEDIA_GATE_TO(MEDIA_GATE_QUIET));
}

/* Nothing may be sent: ICE has not selected a pair, or consent is lost (RFC 7675). Without ICE the
 * terminal is on hold, and its address stays. */
static bool has_no_pair(const struct media_stream_cfg *cfg)
{
	return cfg->learning == MEDIA_LEARN_OFF && cfg->side & SIDE_BIT(SIDE_STUN) &&
		!cfg->remote.family;
}

static void forget_addresses(struct media *m, struct media_stream *s)
{
	s->learn = (struct learn){.since_ns = s->learn.since_ns};
	memset(&m->trial[s - m->stream].learn, 0, sizeof(m->trial[0].learn));
}

static int stream_set(struct media *m, const struct media_cmd *cmd)
{
	const struct media_stream_cfg *cfg = &cmd->stream;
	struct media_stream *s;
	uint32_t *cell = media_port_cell(m, cfg->local);

	if (cmd->id >= m->cfg.max_stream || !cell || cfg->ctx >= m->cfg.max_ctx ||
		!handle_or_none(cfg->rtp_to, m->cfg.max_stream) ||
		!handle_or_none(cfg->rtcp_to, m->cfg.max_stream) || cfg->via > m->cfg.max_stream ||
		cfg->bundle > m->cfg.max_stream || cfg->serves > m->cfg.max_stream)
		return -EINVAL;
	if (*cell != MEDIA_NONE && *cell != cmd->id)
		return -EINVAL;
	s = &m->stream[cmd->id];
	if (!s->set) {
		memset(s, 0, sizeof(*s));
		memset(&m->trial[cmd->id], 0, sizeof(m->trial[0]));
		counters_reset(&m->counters[cmd->id]);
		rtcp_stats_reset(m->rtcp, cmd->id);
	} else if (s->cfg.local.port != cfg->local.port || s->cfg.local.addr != cfg->local.addr) {
		*media_port_cell(m, s->cfg.local) = MEDIA_NONE;
	}
	m->doublers += doubles(cfg);
	m->doublers -= s->set && doubles(&s->cfg);
	m->bundlers += cfg->bundle != 0;
	m->bundlers -= s->set && s->cfg.bundle;
	if (media_bundle_lists(cfg) && !s->listed)
		media_bundle_begin(m, cmd->id);
	else if (!media_bundle_lists(cfg))
		media_bundle_end(m, cmd->id);
	s->listed = media_bundle_lists(cfg);
	s->set = true;
	s->changed = m->burst;
	s->cfg = *cfg;
	media_fast_set(s);
	*cell = cmd->id;
	if (has_no_pair(cfg))
		forget_addresses(m, s);
	learn_signal(&s->learn, &m->trial[cmd->id].learn, &cfg->remote, cfg->relearn, cmd->now_ns);
	media_learned(m, cmd->id);
	return 0;
}

static int ctx_resume(struct media *m, const struct media_cmd *cmd)
{
	const struct media_ctx_resume *r = &cmd->ctx_resume;

	if (cmd->id >= m->cfg.max_ctx || !m->ctx[cmd->id].rx.set || r->n > MEDIA_RESUMES)
		return -EINVAL;
	for (uint32_t i = 0; i < r->n; i++)
		if (r->mark[i].table >= SSRC_TABLES ||
			r->mark[i].index >
				(r->mark[i].table == RX_RTCP ? SRTCP_INDEX_MAX : SRTP_INDEX_MAX))
			return -EINVAL;
	for (uint32_t i = 0; i < r->n; i++)
		media_ssrc_resume(m, &m->ctx[cmd->id], &r->mark[i]);
	return 0;
}

/* Restores a source learned before a restart. Before the answer it may be unconfirmed. Only
 * authentication proves a source. */
static int stream_resume(struct media *m, const struct media_cmd *cmd)
{
	struct media_stream *s;

	if (cmd->id >= m->cfg.max_stream || !m->stream[cmd->id].set)
		return -EINVAL;
	s = &m->stream[cmd->id];
	s->learn.remote = cmd->stream_resume.remote;
	if (cmd->stream_resume.confirmed || s->cfg.early) {
		s->learn.source = cmd->stream_resume.remote;
		s->learn.heard_ns = s->learn.since_ns;
		s->learn.confirmed = cmd->stream_resume.confirmed;
		s->learn.proved = media_proves(&m->ctx[s->cfg.ctx].rx, !s->cfg.rtp);
	}
	s->learn.dev = 0;
	media_learned(m, cmd->id);
	return 0;
}

static int ctx_del(struct media *m, uint32_t id)
{
	bool tagged;

	if (id >= m->cfg.max_ctx)
		return -EINVAL;
	if (m->ctx[id].rx.set) {
		static const struct media_crypto none;

		media_ledger_leave(m, &m->ctx[id], false, &none, true);
		media_ledger_leave(m, &m->ctx[id], true, &none, true);
	}
	media_key_settle(m, &m->ctx[id].rx);
	media_key_settle(m, &m->ctx[id].tx);
	tagged = has_tags(&m->ctx_cfg[id]);
	m->taggers -= tagged;
	memset(&m->ctx[id], 0, sizeof(m->ctx[id]));
	memset(&m->ctx_cfg[id], 0, sizeof(m->ctx_cfg[id]));
	if (tagged)
		media_tags_forget(m, id, &m->ctx_cfg[id]);
	m->ctx[id].changed = m->burst;
	return 0;
}

static int stream_del(struct media *m, uint32_t id)
{
	if (id >= m->cfg.max_stream)
		return -EINVAL;
	media_attack_end(m, id);
	m->doublers -= m->stream[id].set && doubles(&m->stream[id].cfg);
	m->bundlers -= m->stream[id].set && m->stream[id].cfg.bundle;
	media_bundle_end(m, id);
	if (m->stream[id].set)
		*media_port_cell(m, m->stream[id].cfg.local) = MEDIA_NONE;
	memset(&m->stream[id], 0, sizeof(m->stream[id]));
	m->stream[id].changed = m->burst;
	/* The next call gets the handle before its command arrives here, and its query reads
	 * these. */
	counters_reset(&m->counters[id]);
	rtcp_stats_reset(m->rtcp, id);
	media_learned(m, id);
	return 0;
}

bool media_pierce(const struct media *m, uint32_t stream, struct packet_out *out)
{
	const struct media_stream *s;
	const struct endpoint *to;

	if (stream >= m->cfg.max_stream || !m->stream[stream].set)
		return false;
	s = &m->stream[stream];
	to = &s->cfg.remote; /* never the learned address, which may be anybody's */
	if (!to->family || !to->port || endpoint_is_unspecified(to) || endpoint_is_multicast(to))
		return false;
	*out = (struct packet_out){.dst = *to,
		.local = s->cfg.local,
		.out_off = ARENA_HEADROOM, /* no burst uses the first slot between bursts */
		.tos = s->cfg.tos,
		.in = MEDIA_NONE};
	return true;
}

static int stream_cut(struct media *m, uint32_t id)
{
	struct media_stream *s;

	if (id >= m->cfg.max_stream || !m->stream[id].set)
		return -EINVAL;
	s = &m->stream[id];
	s->changed = m->burst;
	s->cfg.remote = (struct endpoint){0};
	forget_addresses(m, s);
	media_learned(m, id);
	return 0;
}

static int stream_watch(struct media *m, uint32_t id)
{
	if (id >= m->cfg.max_stream || !m->stream[id].set)
		return -EINVAL;
	media_watch(m, id);
	return 0;
}

int media_command(struct media *m, const struct media_cmd *cmd)
{
	m->changed = m->burst;
	m->ahead->look = true;
	switch (cmd->type) {
	case MEDIA_CTX_SET:
		return ctx_set(m, cmd);
	case MEDIA_CTX_DEL:
		return ctx_del(m, cmd->id);
	case MEDIA_STREAM_SET:
		return stream_set(m, cmd);
	case MEDIA_STREAM_DEL:
		return stream_del(m, cmd->id);
	case MEDIA_KEY_SET:
		return media_key_set(m, cmd);
	case MEDIA_KEY_DEL:
		return media_key_del(m, cmd->id);
	case MEDIA_CTX_RESUME:
		return ctx_resume(m, cmd);
	case MEDIA_KEY_RESUME:
		return media_key_resume(m, cmd->id, &cmd->key_resume);
	case MEDIA_STREAM_RESUME:
		return stream_resume(m, cmd);
	case MEDIA_STREAM_CUT:
		return stream_cut(m, cmd->id);
	case MEDIA_STREAM_WATCH:
		return stream_watch(m, cmd->id);
	case MEDIA_STREAM_PIERCE:
		break; /* changes nothing here */
	}
	return -EINVAL;
}
