/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables and commands of one worker (media/media.h). Commands run between bursts, in the worker's thread. What a command does not
 * declare new keeps its state: indexes and windows survive re-INVITE, hold and changes of address. */
#include "media/media.h"

#include <errno.h>
#include <stdlib.h>

#include "media/int.h"

const char *media_drop_name(enum media_verdict v)
{
	static const char *const names[] = {
#define X(id, name, text) [MEDIA_DROP_##id] = name,
		MEDIA_DROPS(X)
#undef X
	};

	return v < MEDIA_VERDICTS && names[v] ? names[v] : "";
}

const struct ssrc_state *media_ssrc_find(const struct ssrc_state *t, uint32_t ssrc)
{
	for (int i = 0; i < MEDIA_SSRCS; i++)
		if (t[i].used && t[i].ssrc == ssrc)
			return &t[i];
	return NULL;
}

struct media_tail media_tail(const struct media_crypto *c, bool rtcp)
{
	const struct srtp_suite *s = srtp_suite_get(c->suite);
	uint32_t tag = rtcp ? s->rtcp_tag_len : s->rtp_tag_len;
	uint32_t word = rtcp && media_is_srtp(c) ? 4 : 0, mki = c->mki_len;

	if (s->auth == XC_AUTH_GCM)
		return (struct media_tail){
			.tag = 0, .word = tag, .mki = tag + word, .len = tag + word + mki};
	return (struct media_tail){
		.word = 0, .mki = word, .tag = word + mki, .len = word + mki + tag};
}

/* --- Commands ------------------------------------------------------------------------------------------------- */

static bool crypto_is_sound(const struct media_crypto *c)
{
	/* UNAUTHENTICATED_SRTP: no engine has such keys yet, and a wrong tag length must not look like an attack. */
	if (!srtp_suite_get(c->suite) || c->no_rtp_auth || c->mki_len > SUITE_MAX_MKI_LEN)
		return false;
	/* Slots 0 and 1 are plain: a suite with them would send in the clear what must be enciphered. */
	return media_is_srtp(c) ? c->key >= 2 && c->key % 2 == 0 : c->key == 0 && c->mki_len == 0;
}

static int ctx_set(struct media *m, const struct media_cmd *cmd)
{
	struct media_ctx *c;

	if (cmd->id >= m->cfg.max_ctx || !crypto_is_sound(&cmd->ctx.rx) ||
		!crypto_is_sound(&cmd->ctx.tx))
		return -EINVAL;
	c = &m->ctx[cmd->id];
	if (!c->set || cmd->ctx.rx_new) {
		memset(c->rx_rtp, 0, sizeof(c->rx_rtp));
		memset(c->rx_rtcp, 0, sizeof(c->rx_rtcp));
	}
	if (!c->set || cmd->ctx.tx_new) {
		memset(c->tx_rtp, 0, sizeof(c->tx_rtp));
		/* The SRTCP index is not set to zero again by a new key (RFC 3711 3.4), unless it is used up. */
		if (c->tx_rtcp_next > SRTCP_INDEX_MAX)
			c->tx_rtcp_next = 0;
	}
	c->cfg = cmd->ctx;
	c->set = true;
	c->changed = m->burst;
	return 0;
}

static void publish_remote(struct media_stream_counters *c, const struct learn *l)
{
	uint64_t packed[3] = {0};
	uint32_t seq = atomic_load_explicit(&c->remote_seq, memory_order_relaxed);

	memcpy(packed, l->remote.addr, 16);
	packed[2] = (uint64_t)l->remote.family << 16 | l->remote.port;
	atomic_store_explicit(&c->remote_seq, seq + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (int i = 0; i < 3; i++)
		atomic_store_explicit(&c->remote[i], packed[i], memory_order_relaxed);
	atomic_store_explicit(&c->remote_seq, seq + 2, memory_order_release);
	atomic_store_explicit(&c->confirmed, l->confirmed, memory_order_relaxed);
}

void media_learned(struct media *m, uint32_t stream)
{
	publish_remote(&m->counters[stream], &m->stream[stream].learn);
}

void media_stream_remote(const struct media *m, uint32_t stream, struct endpoint *out)
{
	const struct media_stream_counters *c = media_stream_counters(m, stream);
	uint64_t packed[3];
	uint32_t before, after;

	*out = (struct endpoint){0};
	if (!c)
		return;
	do {
		before = atomic_load_explicit(&c->remote_seq, memory_order_acquire);
		for (int i = 0; i < 3; i++)
			packed[i] = atomic_load_explicit(&c->remote[i], memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&c->remote_seq, memory_order_relaxed);
	} while (before != after || before & 1);
	memcpy(out->addr, packed, 16);
	out->family = (uint8_t)(packed[2] >> 16);
	out->port = (uint16_t)packed[2];
}

/* A new stream starts counting at nothing. */
static void counters_reset(struct media_stream_counters *c)
{
	_Atomic uint64_t *const all[] = {&c->packets, &c->bytes, &c->packets_out, &c->bytes_out,
		&c->errors, &c->last_packet_ns};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		atomic_store_explicit(all[i], 0, memory_order_relaxed);
	for (size_t i = 0; i < MEDIA_VERDICTS; i++)
		atomic_store_explicit(&c->drops[i], 0, memory_order_relaxed);
	atomic_store_explicit(&c->ssrc, 0, memory_order_relaxed);
}

static bool handle_or_none(uint32_t id, uint32_t max)
{
	return id < max || id == MEDIA_NONE;
}

static int stream_set(struct media *m, const struct media_cmd *cmd)
{
	const struct media_stream_cfg *cfg = &cmd->stream;
	struct media_stream *s;
	uint32_t *cell = media_port_cell(m, cfg->local);

	if (cmd->id >= m->cfg.max_stream || !cell || cfg->ctx >= m->cfg.max_ctx ||
		!handle_or_none(cfg->rtp_to, m->cfg.max_stream) ||
		!handle_or_none(cfg->rtcp_to, m->cfg.max_stream))
		return -EINVAL;
	if (*cell != MEDIA_NONE && *cell != cmd->id)
		return -EINVAL;
	s = &m->stream[cmd->id];
	if (!s->set) {
		memset(s, 0, sizeof(*s));
		counters_reset(&m->counters[cmd->id]);
	} else if (s->cfg.local.port != cfg->local.port || s->cfg.local.addr != cfg->local.addr) {
		*media_port_cell(m, s->cfg.local) = MEDIA_NONE;
	}
	s->set = true;
	s->changed = m->burst;
	s->cfg = *cfg;
	*cell = cmd->id;
	learn_signal(&s->learn, &cfg->remote, cfg->relearn, cmd->now_ns);
	media_learned(m, cmd->id);
	return 0;
}

static int ctx_del(struct media *m, uint32_t id)
{
	if (id >= m->cfg.max_ctx)
		return -EINVAL;
	memset(&m->ctx[id], 0, sizeof(m->ctx[id]));
	m->ctx[id].changed = m->burst;
	return 0;
}

static int stream_del(struct media *m, uint32_t id)
{
	if (id >= m->cfg.max_stream)
		return -EINVAL;
	if (m->stream[id].set)
		*media_port_cell(m, m->stream[id].cfg.local) = MEDIA_NONE;
	memset(&m->stream[id], 0, sizeof(m->stream[id]));
	m->stream[id].changed = m->burst;
	return 0;
}

int media_command(struct media *m, const struct media_cmd *cmd)
{
	switch (cmd->type) {
	case MEDIA_CTX_SET:
		return ctx_set(m, cmd);
	case MEDIA_CTX_DEL:
		return ctx_del(m, cmd->id);
	case MEDIA_STREAM_SET:
		return stream_set(m, cmd);
	case MEDIA_STREAM_DEL:
		return stream_del(m, cmd->id);
	case MEDIA_KEY_DEL:
		break; /* the batch runner's */
	}
	return -EINVAL;
}

/* --- What others may read --------------------------------------------------------------------------------------- */

const struct media_stream_counters *media_stream_counters(const struct media *m, uint32_t stream)
{
	return stream < m->cfg.max_stream ? &m->counters[stream] : NULL;
}

uint64_t media_drop_count(const struct media *m, enum media_verdict v)
{
	return v < MEDIA_VERDICTS ? atomic_load_explicit(&m->drops[v], memory_order_relaxed) : 0;
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

int media_create(struct media **out, const struct media_config *cfg)
{
	struct media *m = calloc(1, sizeof(*m));
	size_t cells = cfg->port_max < cfg->port_min
		? 0
		: ((size_t)(cfg->port_max - cfg->port_min) + 1) * cfg->local_addrs;

	if (!m)
		return -ENOMEM;
	m->cfg = *cfg;
	m->ctx = calloc(cfg->max_ctx, sizeof(*m->ctx));
	m->stream = calloc(cfg->max_stream, sizeof(*m->stream));
	m->counters = calloc(cfg->max_stream, sizeof(*m->counters));
	m->by_port = calloc(cells ? cells : 1, sizeof(*m->by_port));
	m->job_in = calloc(cfg->burst_max, sizeof(*m->job_in));
	m->job_stream = calloc(cfg->burst_max, sizeof(*m->job_stream));
	m->job_to = calloc(cfg->burst_max, sizeof(*m->job_to));
	if (!m->ctx || !m->stream || !m->counters || !m->by_port || !m->job_in || !m->job_stream ||
		!m->job_to) {
		media_destroy(m);
		return -ENOMEM;
	}
	for (size_t i = 0; i < cells; i++)
		m->by_port[i] = MEDIA_NONE;
	*out = m;
	return 0;
}

void media_destroy(struct media *m)
{
	if (!m)
		return;
	free(m->ctx);
	free(m->stream);
	free(m->counters);
	free(m->by_port);
	free(m->job_in);
	free(m->job_stream);
	free(m->job_to);
	free(m);
}
