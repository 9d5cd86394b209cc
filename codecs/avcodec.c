/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Codecs that only libavcodec has: G.723.1 (RFC 3551 4.5.3), frames of 30 ms in 24, 20 or 4 bytes.
 * It encodes at 6.3 kbit/s. */
#include "xcipher_codec.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <string.h>

enum { FRAME = 240, MAX_BYTES = 24 };

struct state {
	AVCodecContext *context;
	AVPacket *packet;
	AVFrame *frame;
};

static void fini(void *state)
{
	struct state *s = state;

	avcodec_free_context(&s->context);
	av_packet_free(&s->packet);
	av_frame_free(&s->frame);
}

static int open_state(struct state *s, const AVCodec *codec)
{
	int rc = -ENOMEM;

	if (!codec)
		return -ENOTSUP;
	s->context = avcodec_alloc_context3(codec);
	s->packet = av_packet_alloc();
	s->frame = av_frame_alloc();
	if (s->context && s->packet && s->frame) {
		s->context->sample_rate = 8000;
		s->context->thread_count = 1;
		s->context->log_level_offset = 1000; /* silent: payloads come from strangers */
		av_channel_layout_default(&s->context->ch_layout, 1);
		s->context->sample_fmt = AV_SAMPLE_FMT_S16;
		s->context->bit_rate = 6300;
		rc = avcodec_open2(s->context, codec, NULL) < 0 ? -ENOTSUP : 0;
	}
	if (rc)
		fini(s);
	return rc;
}

static int dec_init(void *dec, const void *params)
{
	(void)params;
	return open_state(dec, avcodec_find_decoder(AV_CODEC_ID_G723_1));
}

static int enc_init(void *enc, const void *params, const struct xcipher_codec_wish *wish)
{
	(void)params, (void)wish;
	return open_state(enc, avcodec_find_encoder(AV_CODEC_ID_G723_1));
}

/* Bytes of the frame that starts with this byte; 0: there is none. */
static size_t frame_bytes(uint8_t first)
{
	static const uint8_t bytes[] = {24, 20, 4, 0};

	return bytes[first & 3];
}

static int one_frame(struct state *s, const uint8_t *in, size_t len, int16_t *pcm)
{
	int rc = av_new_packet(s->packet, (int)len);

	if (rc < 0)
		return -ENOMEM;
	memcpy(s->packet->data, in, len);
	rc = avcodec_send_packet(s->context, s->packet);
	av_packet_unref(s->packet);
	if (rc < 0 || avcodec_receive_frame(s->context, s->frame) < 0)
		return -EBADMSG;
	rc = s->frame->nb_samples;
	if (rc == FRAME)
		memcpy(pcm, s->frame->data[0], FRAME * sizeof(*pcm));
	av_frame_unref(s->frame);
	return rc == FRAME ? 0 : -EBADMSG;
}

static int decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	size_t n = 0;
	int rc = 0;

	if (len == 0)
		return -EBADMSG;
	for (size_t at = 0; at < len; at += frame_bytes(in[at]), n += FRAME)
		if (frame_bytes(in[at]) == 0 || at + frame_bytes(in[at]) > len)
			return -EBADMSG;
	if (n > cap)
		return -ENOSPC;
	n = 0;
	for (size_t at = 0; rc == 0 && at < len; at += frame_bytes(in[at]), n += FRAME)
		rc = one_frame(dec, in + at, frame_bytes(in[at]), pcm + n);
	return rc ? rc : (int)n;
}

static int encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	struct state *s = enc;
	size_t n = 0;

	if (samples == 0 || samples % FRAME != 0)
		return -EINVAL;
	if (samples / FRAME * MAX_BYTES > cap)
		return -ENOSPC;
	for (size_t at = 0; at < samples; at += FRAME) {
		s->frame->nb_samples = FRAME;
		s->frame->format = AV_SAMPLE_FMT_S16;
		av_channel_layout_default(&s->frame->ch_layout, 1);
		if (av_frame_get_buffer(s->frame, 0) < 0)
			return -ENOMEM;
		memcpy(s->frame->data[0], pcm + at, FRAME * sizeof(*pcm));
		if (avcodec_send_frame(s->context, s->frame) < 0 ||
			avcodec_receive_packet(s->context, s->packet) < 0) {
			av_frame_unref(s->frame);
			return -ENOMEM;
		}
		av_frame_unref(s->frame);
		if (s->packet->size > 0 && s->packet->size <= MAX_BYTES) {
			memcpy(out + n, s->packet->data, (size_t)s->packet->size);
			n += (size_t)s->packet->size;
		}
		av_packet_unref(s->packet);
	}
	return (int)n;
}

static const struct xcipher_codec g723 = {
	.size = sizeof(struct xcipher_codec),
	.name = "G723",
	.clock = 8000,
	.rate = 8000,
	.channels = 1,
	.static_pt = 4,
	.ptime = 30,
	.frame_samples = FRAME,
	.dec_size = sizeof(struct state),
	.enc_size = sizeof(struct state),
	.align = _Alignof(struct state),
	.dec_init = dec_init,
	.dec_fini = fini,
	.decode = decode,
	.enc_init = enc_init,
	.enc_fini = fini,
	.encode = encode,
};

static const struct xcipher_codec *const codecs[] = {&g723};

static const struct xcipher_codec_plugin plugin = {
	.abi = XCIPHER_CODEC_ABI,
	.size = sizeof(struct xcipher_codec_plugin),
	.name = "avcodec",
	.version = XCIPHER_VERSION,
	.license = "GPL-2.0-or-later",
	.codec = codecs,
	.codecs = sizeof(codecs) / sizeof(codecs[0]),
};

XCIPHER_CODEC_EXPORT const struct xcipher_codec_plugin *xcipher_codec_plugin(void)
{
	return &plugin;
}
