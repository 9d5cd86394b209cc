/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "audio/tx.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "audio/cpu.h"
#include "audio/order.h"
#include "audio/tx_batch.h"
#include "proto/rtp.h"

static const struct codec_about *about(const struct audio_tx *t)
{
	return &t->env->codecs->entry[t->cfg->codec.entry].about;
}

/* Bytes of a sample if the codec does not compress; 0: its packets are never too long. */
static uint32_t sample_bytes(const struct codec_about *a)
{
	return strcasecmp(a->name, "L16") == 0 ? 2 * a->channels : 0;
}

uint32_t audio_tx_frame(const struct codec_about *a, uint32_t ptime)
{
	uint32_t samples = a->rate * (ptime ? ptime : a->ptime) / 1000;
	uint32_t most = a->rate * 120 / 1000, bytes;

	samples = samples < most ? samples : most;
	bytes = samples * sample_bytes(a);
	/* Several packets of the same length, each short enough. */
	samples /= bytes ? (bytes + TX_PAYLOAD - 1) / TX_PAYLOAD : 1;
	samples -= samples % a->frame_samples;
	return samples ? samples : a->frame_samples;
}

void audio_tx_set(struct audio_tx *t, const struct audio_cfg *cfg, const struct audio_cfg *before,
	struct codec_stream *encoder)
{
	bool restart = !before || before->ssrc != cfg->ssrc;

	if (encoder != t->encoder) {
		t->mode = -ENOENT;
		t->loss = AUDIO_LOSS;
	}
	t->encoder = encoder;
	t->cfg = cfg;
	if (restart) {
		t->sent = (struct audio_rtcp_tx){0};
		t->ssrc = cfg->ssrc;
		t->index = cfg->index;
		t->refused = 0;
		t->begun = false;
		t->n = 0;
	}
	t->sent.clock = cfg->codec.clock;
	if (!encoder) {
		t->n = 0;
		return;
	}
	if (restart || about(t)->rate != t->rate || before->codec.type != cfg->codec.type)
		t->marker = true;
	if (about(t)->rate != t->rate)
		t->n = 0;
	t->rate = about(t)->rate;
	t->channels = about(t)->channels;
	t->frame = audio_tx_frame(about(t), cfg->ptime);
	if (t->n >= t->frame)
		t->n = 0;
}

/* Timestamp of the present time: in units of the RTP clock, plus an offset of the SSRC. */
static uint32_t clock_ts(const struct audio_tx *t)
{
	uint64_t now = t->env->now_ns, rate = t->cfg->codec.clock;

	return t->cfg->ts +
		(uint32_t)(now / 1000000000 * rate + now % 1000000000 * rate / 1000000000);
}

void audio_tx_at(struct audio_tx *t, uint64_t t_ns)
{
	t->t_ns = t_ns;
	if (!t->begun && !t->n)
		t->ts = clock_ts(t);
	t->begun = true;
}

uint32_t audio_tx_units(const struct audio_tx *t, uint32_t samples)
{
	return t->rate ? (uint32_t)((uint64_t)samples * t->cfg->codec.clock / t->rate) : 0;
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* Packets that are dropped above the ceiling before the spare SSRC is used. After a restart a
 * terminal whose packets arrive in bursts loses a few: a dropped packet uses no index, so the next
 * ones are below the ceiling. */
enum { REFUSED_MAX = 25 };

/* Whether the next index may be sent now. A stream with more packets than its ceiling was made for,
 * for example because it relays payloads of another length, continues under the spare SSRC. */
static bool may_send(struct audio_tx *t)
{
	if (t->ssrc != t->cfg->ssrc || ceiling_allows(&t->cfg->ceiling, t->index, t->env->now_ns))
		return true;
	if (++t->refused <= REFUSED_MAX || !t->cfg->spare)
		return false;
	t->ssrc = t->cfg->spare;
	t->index &= 0x7fff; /* a new SSRC begins with ROC 0 (RFC 3711 3.3.1) */
	t->sent = (struct audio_rtcp_tx){.clock = t->sent.clock};
	return true;
}

/* Gets a place for a packet and writes its RTP header. NULL: no room, or above the ceiling; no
 * sequence number is used. */
static struct audio_packet *begin(struct audio_tx *t, uint8_t type, bool marker, uint32_t ts)
{
	struct audio_packet *p = may_send(t) ? t->env->place(t->env->arg, t->id, false) : NULL;

	if (!p) {
		t->stats->unsent++;
		return NULL;
	}
	p->rtcp = false;
	p->t_ns = t->t_ns;
	p->bytes[0] = RTP_VERSION << 6;
	p->bytes[1] = (uint8_t)(marker << 7 | type);
	put_be16(p->bytes + 2, (uint16_t)t->index);
	put_be32(p->bytes + 4, ts);
	put_be32(p->bytes + 8, t->ssrc);
	return p;
}

static void end(struct audio_tx *t, struct audio_packet *p, uint32_t len, uint32_t ts)
{
	p->len = (uint16_t)(RTP_FIXED_LEN + len);
	t->env->placed(t->env->arg, t->id);
	t->index++;
	t->sent.packets++;
	t->stats->sent++;
	t->sent.octets += len;
	t->sent.ts = ts;
	t->sent.ns = t->t_ns;
}

void audio_tx_payload(struct audio_tx *t, const struct audio_tx_packet *d)
{
	struct audio_packet *p;

	if (d->len > AUDIO_PACKET_MAX - RTP_FIXED_LEN)
		return;
	audio_tx_settle(t);
	t->index += d->skip;
	t->stats->skipped += d->skip;
	p = begin(t, d->type, d->marker, d->ts);
	if (!p)
		return;
	memcpy(p->bytes + RTP_FIXED_LEN, d->payload, d->len);
	end(t, p, d->len, d->ts);
}

/* If the codec cannot adapt, the same wish is not tried again. */
static void adapt(struct audio_tx *t)
{
	struct xcipher_codec_wish wish = audio_encoder_wish(t->cfg);

	audio_tx_settle(t);
	wish.has_mode = t->mode >= 0;
	wish.mode = t->mode >= 0 ? (uint8_t)t->mode : 0;
	wish.loss_percent = t->loss;
	(void)codec_stream_adapt(t->encoder, &wish);
}

void audio_tx_mode(struct audio_tx *t, int mode)
{
	if (mode == t->mode || (mode < 0 && mode != -ENOENT))
		return;
	t->mode = mode;
	adapt(t);
}

enum { LOSS_STEP = 5, LOSS_MOST = 30 };

void audio_tx_loss(struct audio_tx *t, int percent)
{
	int loss = (percent + LOSS_STEP - 1) / LOSS_STEP * LOSS_STEP;

	if (percent < 0 || !t->encoder || !(about(t)->can & CODEC_RECOVERS))
		return;
	loss = loss < LOSS_MOST ? loss : LOSS_MOST;
	loss = loss < t->loss ? t->loss - LOSS_STEP : loss;
	if (loss == t->loss)
		return;
	t->loss = (uint8_t)loss;
	adapt(t);
}

/* --- Encoding --------------------------------------------------------------------------------- */

static int encode(struct audio_tx *t, const int16_t *mono, uint8_t *out)
{
	uint64_t from = audio_cpu_begin(t->env);
	const int16_t *pcm = mono;
	int len;

	if (t->channels == 2) {
		int16_t *both = t->env->other;

		for (uint32_t i = 0; i < t->frame; i++)
			both[2 * i] = both[2 * i + 1] = mono[i];
		pcm = both;
	}
	len = codec_stream_encode(t->encoder, pcm, t->frame, out, AUDIO_PACKET_MAX - RTP_FIXED_LEN);
	t->stats->cpu_ns += audio_cpu_end(t->env, from);
	return len;
}

/* Encodes and sends one packet. After an error it sends nothing. */
static void packet(struct audio_tx *t, const int16_t *pcm)
{
	struct audio_packet *p = begin(t, t->cfg->codec.type, t->marker, t->ts);
	int len;

	if (p) {
		len = encode(t, pcm, p->bytes + RTP_FIXED_LEN);
		t->broke |= len == -EPIPE;
		t->stats->broken += len < 0;
		t->stats->encoded += len > 0;
		if (len > 0)
			end(t, p, (uint32_t)len, t->ts);
		t->marker = len <= 0; /* after silence or an error a talkspurt begins */
	}
}

/* --- Encoding with those of other sessions ---------------------------------------------------- */

static bool may_wait(const struct audio_tx *t)
{
	return t->env->batch && t->frame <= TX_BATCH_PCM && t->channels == 1 &&
		codec_stream_batches(t->encoder);
}

static void wait_for_others(struct audio_tx *t, const int16_t *pcm)
{
	struct audio_tx_batch *b = t->env->batch;
	uint32_t i;

	audio_tx_settle(t);
	i = b->n++;
	b->item[i].tx = t;
	b->item[i].t_ns = t->t_ns;
	b->item[i].ts = t->ts;
	b->item[i].marker = t->marker;
	b->stream[i] = t->encoder;
	b->job[i] = (struct xcipher_codec_job){.in = (const uint8_t *)b->pcm[i],
		.in_len = t->frame,
		.out = b->out[i],
		.out_cap = sizeof(b->out[i])};
	memcpy(b->pcm[i], pcm, t->frame * sizeof(*pcm));
	t->waits = true;
	t->marker = false;
	if (b->n == TX_BATCH)
		audio_tx_run(t->env);
}

/* As packet(), after encoding. */
static void send_waiting(struct audio_tx_batch *b, uint32_t i)
{
	struct audio_tx *t = b->item[i].tx;
	uint64_t t_ns = t->t_ns;
	struct audio_packet *p;
	int len = b->job[i].result;

	t->waits = false;
	t->t_ns = b->item[i].t_ns;
	t->stats->broken += len < 0;
	t->stats->encoded += len > 0;
	p = len > 0 ? begin(t, t->cfg->codec.type, b->item[i].marker, b->item[i].ts) : NULL;
	if (p) {
		memcpy(p->bytes + RTP_FIXED_LEN, b->out[i], (size_t)len);
		end(t, p, (uint32_t)len, b->item[i].ts);
	}
	t->marker |= len <= 0 || (!p && b->item[i].marker);
	t->t_ns = t_ns;
}

void audio_tx_run(struct audio_env *env)
{
	struct audio_tx_batch *b = env->batch;
	uint64_t from, each;

	if (!b || !b->n)
		return;
	from = audio_cpu_begin(env);
	codec_streams_encode(b->stream, b->job, b->n, env->g722);
	each = audio_cpu_end(env, from) / b->n;
	for (uint32_t i = 0; i < b->n; i++) {
		send_waiting(b, i);
		b->item[i].tx->stats->cpu_ns += each;
		if (env->counted)
			env->counted(env->arg, b->item[i].tx->id);
	}
	b->n = 0;
}

void audio_tx_settle(struct audio_tx *t)
{
	if (t->waits)
		audio_tx_run(t->env);
}

/* --- Samples ---------------------------------------------------------------------------------- */

static void whole_packets(struct audio_tx *t)
{
	uint32_t at = 0;

	for (; t->n - at >= t->frame; at += t->frame) {
		if (may_wait(t))
			wait_for_others(t, t->fifo + at);
		else
			packet(t, t->fifo + at);
		t->ts += audio_tx_units(t, t->frame);
	}
	if (at)
		memmove(t->fifo, t->fifo + at, (t->n - at) * sizeof(*t->fifo));
	t->n -= at;
}

void audio_tx_pcm(struct audio_tx *t, const int16_t *pcm, uint32_t n)
{
	if (!t->encoder)
		return;
	n = min_u32(n, TX_FIFO - t->n);
	memcpy(t->fifo + t->n, pcm, n * sizeof(*pcm));
	t->n += n;
	whole_packets(t);
}

void audio_tx_flush(struct audio_tx *t)
{
	if (!t->encoder || !t->n)
		return;
	memset(t->fifo + t->n, 0, (t->frame - t->n) * sizeof(*t->fifo));
	t->n = t->frame;
	whole_packets(t);
}

void audio_tx_gap(struct audio_tx *t, uint32_t samples)
{
	uint32_t fill;

	if (!t->encoder)
		return;
	fill = t->n ? min_u32(t->frame - t->n, samples) : 0;
	memset(t->fifo + t->n, 0, fill * sizeof(*t->fifo));
	t->n += fill;
	whole_packets(t);
	if (samples == fill)
		return;
	t->ts += audio_tx_units(t, samples - fill);
	t->marker = true;
}
