/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creation and end of an audio session, its settings, the order of packets, deadlines, RTCP. */
#include "audio/session.h"

#include <stdlib.h>
#include <string.h>

#include "audio/hear.h"
#include "audio/session_int.h"
#include "base/secmem.h"

#define REPORT_NS 5000000000ull /* least interval of RTCP (RFC 3550 6.2) */

struct audio_session *audio_session_alloc(void)
{
	return calloc(1, sizeof(struct audio_session));
}

/* Sets the next report to 0.5 to 1.5 intervals from now. */
static void report_later(struct audio_session *s, uint64_t now_ns)
{
	s->report_ns = now_ns + REPORT_NS / 2 + REPORT_NS / 1024 * (audio_session_draw(s) % 1024);
}

void audio_session_init(
	struct audio_session *s, struct audio_env *env, uint32_t id, uint32_t seed, uint64_t now_ns)
{
	s->env = env;
	s->id = id;
	s->random = seed ? seed : 1;
	s->tx.env = env;
	s->tx.id = id;
	s->tx.stats = &s->stats;
	report_later(s, now_ns);
}

void audio_session_free(struct audio_session *s)
{
	if (!s)
		return;
	audio_tx_settle(&s->tx);
	for (uint32_t i = 0; i < AUDIO_TYPES; i++)
		codec_stream_close(s->rx.decoder[i]);
	codec_stream_close(s->tx.encoder);
	audio_rate_fini(&s->rx.rate);
	audio_source_fini(&s->player.source);
	secmem_wipe(s, sizeof(*s));
	free(s);
}

/* --- Settings --------------------------------------------------------------------------------- */

/* Takes the decoder in use for such a payload type out of the session. NULL: none. */
static struct codec_stream *keep(struct audio_session *s, const struct audio_type *t)
{
	for (uint32_t i = 0; s->set && i < s->cfg.types; i++) {
		struct codec_stream *c = s->rx.decoder[i];

		if (c && audio_type_same(&s->cfg.type[i], t)) {
			s->rx.decoder[i] = NULL;
			return c;
		}
	}
	return NULL;
}

static void set_decoders(struct audio_session *s, struct audio_order *o)
{
	struct codec_stream *next[AUDIO_TYPES] = {0};

	for (uint32_t i = 0; i < o->cfg.types; i++) {
		if (o->cfg.type[i].kind != AUDIO_CODEC)
			continue;
		next[i] = keep(s, &o->cfg.type[i]);
		if (!next[i]) {
			next[i] = o->decoder[i];
			o->decoder[i] = NULL;
		}
	}
	for (uint32_t i = 0; i < AUDIO_TYPES; i++) {
		codec_stream_close(s->rx.decoder[i]);
		s->rx.decoder[i] = next[i];
	}
}

static struct codec_stream *set_encoder(struct audio_session *s, struct audio_order *o)
{
	struct codec_stream *now = s->tx.encoder;

	if (o->encoder || o->cfg.codec.type == AUDIO_NO_TYPE) {
		codec_stream_close(now);
		now = o->encoder;
		o->encoder = NULL;
	}
	return now;
}

void audio_session_set(struct audio_session *s, struct audio_order *o, uint64_t now_ns)
{
	struct audio_cfg before = s->cfg;
	struct codec_stream *encoder;

	audio_tx_settle(&s->tx);
	if (s->set && before.ssrc != o->cfg.ssrc)
		audio_session_bye(s, now_ns);
	set_decoders(s, o);
	encoder = set_encoder(s, o);
	s->cfg = o->cfg;
	audio_tx_set(&s->tx, &s->cfg, s->set ? &before : NULL, encoder);
	if (s->set)
		audio_player_set(s, &before);
	if (memcmp(&before.cover, &s->cfg.cover, sizeof(before.cover)) != 0)
		audio_cover_begin(s);
	s->set = true;
	audio_order_free(o);
}

const struct audio_cfg *audio_session_cfg(const struct audio_session *s)
{
	return &s->cfg;
}

const struct audio_stats *audio_session_stats(const struct audio_session *s)
{
	return &s->stats;
}

bool audio_session_broke(struct audio_session *s)
{
	bool now = (s->broke || s->tx.broke) && !s->told;

	s->told |= now;
	return now;
}

void audio_session_heard(struct audio_session *s, struct audio_heard *out)
{
	*out = s->heard;
	s->heard.n = 0;
}

/* --- RTCP ------------------------------------------------------------------------------------- */

static void report(struct audio_session *s, uint64_t now_ns, bool bye)
{
	const struct audio_rtcp_say say = {.ssrc = s->tx.ssrc,
		.cname = s->cfg.cname,
		.now_ns = audio_real(s, now_ns),
		.bye = bye};
	struct audio_packet *p;

	audio_tx_settle(&s->tx);
	if (!s->set || (!s->tx.sent.packets && !s->report.heard))
		return;
	p = s->env->place(s->env->arg, s->id, true);
	if (!p) {
		s->stats.unsent++;
		return;
	}
	p->rtcp = true;
	p->t_ns = say.now_ns;
	p->len = (uint16_t)audio_rtcp_write(&s->report, &s->tx.sent, &say, p->bytes);
	s->env->placed(s->env->arg, s->id);
}

void audio_session_bye(struct audio_session *s, uint64_t now_ns)
{
	audio_tx_settle(&s->tx);
	if (s->tx.sent.packets)
		report(s, now_ns, true);
}

/* --- Packets ---------------------------------------------------------------------------------- */

static uint32_t clock_of(const struct audio_session *s, uint8_t type)
{
	for (uint32_t i = 0; i < s->cfg.types; i++)
		if (s->cfg.type[i].type == type)
			return s->cfg.type[i].clock;
	return 8000;
}

static void drain(struct audio_session *s, struct audio_session *to, uint64_t now_ns)
{
	const struct audio_packet *p;
	uint32_t lost;

	while ((p = reorder_next(&s->rx.order, &lost, now_ns)))
		audio_hear(s, to, p, lost, now_ns);
}

static void take_rtp(struct audio_session *s, struct audio_session *to,
	const struct audio_packet *p, uint64_t now_ns)
{
	struct rtp_hdr h;

	if (rtp_parse(&h, p->bytes, p->len) < 0) {
		s->stats.broken++;
		return;
	}
	if (!s->rx.heard || s->rx.ssrc != h.ssrc) {
		s->rx.heard = true;
		s->rx.ssrc = h.ssrc;
		s->rx.order.started = false;
	}
	audio_rtcp_heard(&s->report, h.ssrc, h.seq, h.ts, clock_of(s, h.pt), p->t_ns);
	switch (reorder_take(&s->rx.order, h.seq, p, now_ns)) {
	case REORDER_AGAIN:
		audio_hear_start(s);
		audio_hear(s, to, p, 0, now_ns);
		break;
	case REORDER_NOW:
		audio_hear(s, to, p, 0, now_ns);
		break;
	case REORDER_HELD:
		s->stats.reordered++;
		break;
	case REORDER_DOUBLE:
		s->stats.doubled++;
		break;
	case REORDER_LATE:
	case REORDER_ASTRAY:
		s->stats.late++;
	}
	drain(s, to, now_ns);
}

void audio_session_take(struct audio_session *s, struct audio_session *to,
	const struct audio_packet *p, uint64_t now_ns)
{
	if (!s->set || p->len > AUDIO_PACKET_MAX)
		return;
	if (to && !to->set)
		to = NULL;
	if (!p->rtcp) {
		take_rtp(s, to, p, now_ns);
		return;
	}
	audio_rtcp_take(&s->report, p->bytes, p->len, p->t_ns);
	audio_tx_loss(&s->tx, audio_rtcp_loss(p->bytes, p->len, s->tx.ssrc));
}

uint64_t audio_session_deadline(const struct audio_session *s)
{
	uint64_t at = reorder_deadline(&s->rx.order);

	if (!s->set)
		return AUDIO_NEVER;
	if (s->rx.cn && s->rx.noise_ns < at)
		at = s->rx.noise_ns;
	if (s->player.on && s->player.due_ns < at)
		at = s->player.due_ns;
	return s->report_ns < at ? s->report_ns : at;
}

void audio_session_tick(struct audio_session *s, struct audio_session *to, uint64_t now_ns)
{
	if (!s->set)
		return;
	if (to && !to->set)
		to = NULL;
	drain(s, to, now_ns);
	audio_hear_noise(s, to, now_ns);
	audio_player_tick(s, now_ns);
	if (now_ns < s->report_ns)
		return;
	report(s, now_ns, false);
	report_later(s, now_ns);
}
