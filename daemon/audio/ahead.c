/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "audio/ahead.h"

#include "audio/cpu.h"
#include "audio/session_int.h"

/* Whether the packet is in order and of the known source. */
static bool is_next(const struct audio_session *s, const struct rtp_hdr *h)
{
	const struct reorder *o = &s->rx.order;

	return s->rx.heard && s->rx.ssrc == h->ssrc && o->started && o->next == h->seq && !o->held;
}

/* The decoder that gets a payload of this type. NULL: none, or it has no batches. */
static struct codec_stream *decoder(
	const struct audio_session *s, const struct audio_session *to, uint8_t type)
{
	for (uint32_t i = 0; i < s->cfg.types; i++) {
		const struct audio_type *t = &s->cfg.type[i];

		if (t->type == type)
			return t->kind == AUDIO_CODEC && t->entry != to->cfg.codec.entry &&
					s->rx.decoder[i] && codec_stream_foresees(s->rx.decoder[i])
				? s->rx.decoder[i]
				: NULL;
	}
	return NULL;
}

/* A packet may have come twice. */
static bool has(const struct audio_ahead *a, const struct codec_stream *c)
{
	bool found = false;

	for (uint32_t i = 0; i < a->n; i++)
		found |= a->stream[i] == c;
	return found;
}

void audio_ahead_add(struct audio_ahead *a, struct audio_session *s, const struct audio_session *to,
	const struct audio_packet *p)
{
	struct codec_stream *c;
	struct rtp_hdr h;
	int at;

	if (a->n == AHEAD_MOST || !s->set || !to->set || !to->tx.encoder || p->rtcp ||
		p->len > AUDIO_PACKET_MAX || s->cfg.gate & (AUDIO_GATE_MEDIA | AUDIO_GATE_DROP))
		return;
	at = rtp_parse(&h, p->bytes, p->len);
	if (at < 0 || at == p->len || p->bytes[0] & RTP_P_BIT || !is_next(s, &h))
		return;
	c = decoder(s, to, h.pt);
	if (!c || has(a, c))
		return;
	a->packet[a->n] = p;
	a->session[a->n] = s;
	a->stream[a->n] = c;
	a->job[a->n] = (struct xcipher_codec_job){.in = p->bytes + at,
		.in_len = (size_t)(p->len - at),
		.out = (uint8_t *)a->pcm[a->n],
		.out_cap = AHEAD_PCM};
	a->n++;
}

void audio_ahead_run(struct audio_ahead *a)
{
	struct audio_env *env = a->n ? a->session[0]->env : NULL;
	uint64_t from, each;

	if (a->n < AHEAD_LEAST) {
		a->n = 0;
		return;
	}
	from = audio_cpu_begin(env);
	codec_streams_foresee(a->stream, a->job, a->n, env->g722);
	each = audio_cpu_end(env, from) / a->n;
	for (uint32_t i = 0; i < a->n; i++)
		a->session[i]->stats.cpu_ns += each;
}

void audio_ahead_taken(struct audio_ahead *a, const struct audio_packet *p)
{
	if (a->taken < a->n && a->packet[a->taken] == p)
		codec_stream_forget(a->stream[a->taken++]);
}

void audio_ahead_end(struct audio_ahead *a)
{
	while (a->taken < a->n)
		codec_stream_forget(a->stream[a->taken++]);
	a->n = a->taken = 0;
}
