/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libavcodec: its headers at build time, the library at run time. Without the headers all is
 * -ENOENT. */
#include "codec_peers.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<libavcodec/avcodec.h>)
#include <libavcodec/avcodec.h>
#include <libavutil/opt.h>

/* Functions of the library that are used, one row each. */
#define AV_FUNCTIONS(X)                 \
	X(avcodec_find_decoder_by_name) \
	X(avcodec_find_encoder_by_name) \
	X(avcodec_alloc_context3)       \
	X(avcodec_open2)                \
	X(avcodec_send_packet)          \
	X(avcodec_receive_frame)        \
	X(avcodec_send_frame)           \
	X(avcodec_receive_packet)       \
	X(avcodec_free_context)         \
	X(av_packet_alloc)              \
	X(av_packet_free)               \
	X(av_packet_unref)              \
	X(av_new_packet)
#define AVUTIL_FUNCTIONS(X)          \
	X(av_frame_alloc)            \
	X(av_frame_free)             \
	X(av_frame_get_buffer)       \
	X(av_channel_layout_default) \
	X(av_opt_set)                \
	X(av_mallocz)

struct peer_av {
#define FIELD(name) __typeof__(&name) name;
	AV_FUNCTIONS(FIELD)
	AVUTIL_FUNCTIONS(FIELD)
#undef FIELD
	AVCodecContext *c;
	AVPacket *packet;
	AVFrame *frame;
};

static int load(struct peer_av *p)
{
	char name[64];
	void *codec = NULL, *util = NULL;

	snprintf(name, sizeof(name), "libavcodec.so.%d", LIBAVCODEC_VERSION_MAJOR);
	codec = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	snprintf(name, sizeof(name), "libavutil.so.%d", LIBAVUTIL_VERSION_MAJOR);
	util = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!codec || !util)
		return -ENOENT;
#define LOAD_CODEC(name)                                  \
	p->name = (__typeof__(&name))dlsym(codec, #name); \
	if (!p->name)                                     \
		return -ENOENT;
#define LOAD_UTIL(name)                                  \
	p->name = (__typeof__(&name))dlsym(util, #name); \
	if (!p->name)                                    \
		return -ENOENT;
	AV_FUNCTIONS(LOAD_CODEC)
	AVUTIL_FUNCTIONS(LOAD_UTIL)
	return 0;
}

static int open_codec(struct peer_av *p, const AVCodec *codec, const struct peer_av_cfg *cfg)
{
	if (!codec)
		return -ENOENT;
	p->c = p->avcodec_alloc_context3(codec);
	p->packet = p->av_packet_alloc();
	p->frame = p->av_frame_alloc();
	if (!p->c || !p->packet || !p->frame)
		return -ENOMEM;
	p->c->sample_rate = cfg->rate;
	p->c->bits_per_coded_sample = cfg->bits;
	p->c->thread_count = 1;
	p->av_channel_layout_default(&p->c->ch_layout, cfg->channels);
	if (cfg->option && p->av_opt_set(p->c, cfg->option, cfg->value, AV_OPT_SEARCH_CHILDREN) < 0)
		return -EINVAL;
	if (cfg->extra_len) {
		p->c->extradata = p->av_mallocz(cfg->extra_len + AV_INPUT_BUFFER_PADDING_SIZE);
		memcpy(p->c->extradata, cfg->extra, cfg->extra_len);
		p->c->extradata_size = (int)cfg->extra_len;
	}
	return 0;
}

int peer_av_open(struct peer_av **out, const struct peer_av_cfg *cfg)
{
	struct peer_av *p = calloc(1, sizeof(*p));
	int rc = p ? load(p) : -ENOMEM;

	if (rc == 0)
		rc = open_codec(p, p->avcodec_find_decoder_by_name(cfg->name), cfg);
	if (rc == 0 && p->avcodec_open2(p->c, NULL, NULL) < 0)
		rc = -EINVAL;
	if (rc) {
		peer_av_close(p);
		return rc;
	}
	*out = p;
	return 0;
}

static int16_t to_s16(double v)
{
	return (int16_t)lrint(fmax(-32768, fmin(32767, v * 32768)));
}

static int16_t sample(const AVFrame *f, int i, int channel)
{
	int n = f->ch_layout.nb_channels;

	switch (f->format) {
	case AV_SAMPLE_FMT_S16:
		return ((const int16_t *)f->data[0])[i * n + channel];
	case AV_SAMPLE_FMT_S16P:
		return ((const int16_t *)f->data[channel])[i];
	case AV_SAMPLE_FMT_FLT:
		return to_s16(((const float *)f->data[0])[i * n + channel]);
	case AV_SAMPLE_FMT_FLTP:
		return to_s16(((const float *)f->data[channel])[i]);
	default:
		return 0;
	}
}

int peer_av_decode(struct peer_av *p, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	int n = 0, channels = 1;

	if (p->av_new_packet(p->packet, (int)len) < 0)
		return -ENOMEM;
	memcpy(p->packet->data, in, len);
	if (p->avcodec_send_packet(p->c, p->packet) < 0)
		n = -EBADMSG;
	p->av_packet_unref(p->packet);
	while (n >= 0 && p->avcodec_receive_frame(p->c, p->frame) == 0) {
		channels = p->frame->ch_layout.nb_channels;
		if ((size_t)(n + p->frame->nb_samples) > cap)
			return -ENOSPC;
		for (int i = 0; i < p->frame->nb_samples; i++, n++)
			for (int c = 0; c < channels; c++)
				pcm[n * channels + c] = sample(p->frame, i, c);
	}
	return n;
}

void peer_av_close(struct peer_av *p)
{
	if (!p)
		return;
	if (p->c)
		p->avcodec_free_context(&p->c);
	if (p->packet)
		p->av_packet_free(&p->packet);
	if (p->frame)
		p->av_frame_free(&p->frame);
	free(p);
}

static int encode_all(struct peer_av *p, const int16_t *pcm, size_t samples, uint8_t *out)
{
	size_t done = 0;

	for (size_t at = 0; at + 320 <= samples; at += 320) {
		p->frame->nb_samples = 320;
		p->frame->format = AV_SAMPLE_FMT_S16;
		p->frame->pts = (int64_t)at;
		p->av_channel_layout_default(&p->frame->ch_layout, 1);
		if (!p->frame->data[0] && p->av_frame_get_buffer(p->frame, 0) < 0)
			return -ENOMEM;
		memcpy(p->frame->data[0], pcm + at, 640);
		if (p->avcodec_send_frame(p->c, p->frame) < 0)
			return -EIO;
		while (p->avcodec_receive_packet(p->c, p->packet) == 0) {
			memcpy(out + done, p->packet->data, (size_t)p->packet->size);
			done += (size_t)p->packet->size;
			p->av_packet_unref(p->packet);
		}
	}
	return done == samples / 2 ? 0 : -EIO;
}

int peer_av_g722_encode(const int16_t *pcm, size_t samples, uint8_t *out)
{
	struct peer_av_cfg cfg = {.rate = 16000, .channels = 1};
	struct peer_av *p = calloc(1, sizeof(*p));
	int rc = p ? load(p) : -ENOMEM;

	if (rc == 0)
		rc = open_codec(p, p->avcodec_find_encoder_by_name("g722"), &cfg);
	if (rc == 0) {
		p->c->sample_fmt = AV_SAMPLE_FMT_S16;
		p->c->frame_size = 320;
		rc = p->avcodec_open2(p->c, NULL, NULL) < 0 ? -EINVAL : 0;
	}
	if (rc == 0)
		rc = encode_all(p, pcm, samples, out);
	peer_av_close(p);
	return rc;
}
#else
int peer_av_open(struct peer_av **out, const struct peer_av_cfg *cfg)
{
	(void)out, (void)cfg;
	return -ENOENT;
}

int peer_av_decode(struct peer_av *p, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	(void)p, (void)in, (void)len, (void)pcm, (void)cap;
	return -ENOENT;
}

void peer_av_close(struct peer_av *p)
{
	(void)p;
}

int peer_av_g722_encode(const int16_t *pcm, size_t samples, uint8_t *out)
{
	(void)pcm, (void)samples, (void)out;
	return -ENOENT;
}
#endif

int peer_av_g722_decode(uint32_t rate, const uint8_t *in, size_t bytes, int16_t *pcm)
{
	const char *bits = rate == 64000 ? "8" : rate == 56000 ? "7" : "6";
	struct peer_av_cfg cfg = {.name = "g722",
		.rate = 16000,
		.channels = 1,
		.option = "bits_per_codeword",
		.value = bits};
	struct peer_av *p = NULL;
	int rc = peer_av_open(&p, &cfg);

	for (size_t at = 0; rc >= 0 && at < bytes; at += 160)
		rc = peer_av_decode(p, in + at, bytes - at < 160 ? bytes - at : 160, pcm + 2 * at,
			2 * (bytes - at));
	peer_av_close(p);
	return rc < 0 ? rc : 0;
}
