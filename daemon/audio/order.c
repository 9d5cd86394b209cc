/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "audio/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool audio_type_same(const struct audio_type *a, const struct audio_type *b)
{
	return a->kind == b->kind && a->entry == b->entry && a->clock == b->clock &&
		a->fmtp_len == b->fmtp_len && memcmp(a->fmtp, b->fmtp, a->fmtp_len) == 0;
}

/* Whether the encoder of a can be used for b. */
static bool audio_encoder_same(const struct audio_cfg *a, const struct audio_cfg *b)
{
	return (a->codec.type == AUDIO_NO_TYPE) == (b->codec.type == AUDIO_NO_TYPE) &&
		audio_type_same(&a->codec, &b->codec) && a->dtx == b->dtx &&
		a->bitrate == b->bitrate;
}

struct xcipher_codec_wish audio_encoder_wish(const struct audio_cfg *cfg)
{
	return (struct xcipher_codec_wish){.size = sizeof(struct xcipher_codec_wish),
		.bitrate = cfg->bitrate,
		.dtx = cfg->dtx,
		.loss_percent = AUDIO_LOSS};
}

static int open_codec(struct codec_stream **out, const struct codec_registry *r,
	const struct audio_type *t, uint32_t can, const struct audio_cfg *cfg)
{
	struct codec_stream_cfg c = {.can = can,
		.fmtp = t->fmtp,
		.fmtp_len = t->fmtp_len,
		.wish = audio_encoder_wish(cfg)};

	if (t->entry >= r->entries || t->fmtp_len > AUDIO_FMTP || !t->clock)
		return -EINVAL;
	return codec_stream_open(out, &r->entry[t->entry], &c);
}

static bool is_sound(const struct audio_cfg *cfg)
{
	bool sound = cfg->types <= AUDIO_TYPES && cfg->ssrc && cfg->ptime <= 120;

	for (uint32_t i = 0; sound && i < cfg->types; i++)
		sound = cfg->type[i].type < 128 && cfg->type[i].clock;
	return sound && (cfg->events.type == AUDIO_NO_TYPE || cfg->events.clock) &&
		memchr(cfg->cname, 0, sizeof(cfg->cname));
}

/* The number of payload types among the first n that have this codec. */
static uint32_t alike(const struct audio_cfg *cfg, uint32_t n, const struct audio_type *t)
{
	uint32_t found = 0;

	for (uint32_t i = 0; cfg && i < n; i++)
		found += audio_type_same(&cfg->type[i], t);
	return found;
}

/* Whether payload type i has a decoder already. Two types of one codec have a decoder each. */
static bool has(const struct audio_cfg *before, const struct audio_cfg *cfg, uint32_t i)
{
	const struct audio_type *t = &cfg->type[i];

	return before && alike(before, before->types, t) > alike(cfg, i, t);
}

int audio_order_create(struct audio_order **out, const struct codec_registry *r,
	const struct audio_cfg *cfg, const struct audio_cfg *before)
{
	struct audio_order *o;
	int err = 0;

	if (!is_sound(cfg))
		return -EINVAL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->cfg = *cfg;
	for (uint32_t i = 0; !err && i < cfg->types; i++)
		if (cfg->type[i].kind == AUDIO_CODEC && !has(before, cfg, i))
			err = open_codec(&o->decoder[i], r, &cfg->type[i], CODEC_DECODES, cfg);
	if (!err && cfg->codec.type != AUDIO_NO_TYPE &&
		!(before && audio_encoder_same(before, cfg)))
		err = open_codec(&o->encoder, r, &cfg->codec, CODEC_ENCODES, cfg);
	if (err) {
		audio_order_free(o);
		return err;
	}
	*out = o;
	return 0;
}

void audio_order_free(struct audio_order *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < AUDIO_TYPES; i++)
		codec_stream_close(o->decoder[i]);
	codec_stream_close(o->encoder);
	free(o);
}
