/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settings of an audio session, with the codecs opened for them. The control thread creates the
 * order, so a codec that refuses its fmtp is noticed before anything changes. The codec thread
 * takes the codecs out of it. */
#ifndef AUDIO_ORDER_H
#define AUDIO_ORDER_H

#include "audio/config.h"
#include "codec/registry.h"
#include "codec/stream.h"

struct audio_order {
	struct audio_cfg cfg;
	struct codec_stream *decoder[AUDIO_TYPES]; /* NULL: keep the present one, or none needed */
	struct codec_stream *encoder;              /* NULL: as for a decoder */
};

/* Whether the decoder of a can be used for b. */
bool audio_type_same(const struct audio_type *a, const struct audio_type *b);
/* Loss to expect before the first report of the terminal, in percent. With 0 Opus would not send
 * the redundancy that was agreed on. */
#define AUDIO_LOSS 5u
/* The wish about the encoder in these settings, without a mode. */
struct xcipher_codec_wish audio_encoder_wish(const struct audio_cfg *cfg);

/* Opens the codecs of cfg, except those that "before" has, too. before: the present settings, or
 * NULL. The caller owns *out. 0; -EINVAL: the settings do not fit the registry, or a codec refuses
 * its fmtp; -ENOMEM; -ENOTSUP. */
int audio_order_create(struct audio_order **out, const struct codec_registry *r,
	const struct audio_cfg *cfg, const struct audio_cfg *before);
/* Closes the codecs that are still in it. NULL is fine. */
void audio_order_free(struct audio_order *o);

#endif
