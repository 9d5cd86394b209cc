/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opus by libopus (RFC 6716, RFC 7587): one or two channels, FEC and DTX. RTP always names two
 * channels and a clock of 48 kHz. Mono PCM, for telephony, has 48, 16 or 8 kHz: at the rate of the
 * other terminal's codec libopus need not code a band that is empty, and nothing is resampled.
 * Stereo PCM has 48 kHz. Each row decodes all packets. Only mono has DTX: libopus 1.3 has none for
 * stereo music. */
#include "xcipher_codec.h"

#include <errno.h>
#include <opus/opus.h>
#include <stdio.h>
#include <string.h>

enum { RATE = 48000, FRAMES = 400 /* of 2.5 ms in a second */, DTX_BYTES = 2 };

struct params {
	uint32_t max_bitrate; /* maxaveragebitrate, 0: none */
	uint32_t max_rate;    /* maxplaybackrate, 0: 48000 */
	uint8_t fec, dtx, cbr;
};

struct encoder {
	OpusEncoder *opus;
	uint32_t rate;
	struct params params;
};

struct decoder {
	OpusDecoder *opus;
	int32_t rate;
};

/* --- fmtp (RFC 7587 6.1): what the far end prefers to receive --------------------------------- */

static int take(struct params *p, const char *key, size_t key_len, int64_t n)
{
	if (xcipher_fmtp_is(key, key_len, "useinbandfec"))
		p->fec = n == 1;
	else if (xcipher_fmtp_is(key, key_len, "usedtx"))
		p->dtx = n == 1;
	else if (xcipher_fmtp_is(key, key_len, "cbr"))
		p->cbr = n == 1;
	else if (xcipher_fmtp_is(key, key_len, "maxaveragebitrate") && n > 0)
		p->max_bitrate = n < 6000 ? 6000 : n > 510000 ? 510000 : (uint32_t)n;
	else if (xcipher_fmtp_is(key, key_len, "maxplaybackrate") && n > 0)
		p->max_rate = n < 8000 ? 8000 : n > RATE ? RATE : (uint32_t)n;
	return 0;
}

/* Strange values are ignored, so that a call is not lost for a preference. */
static int fmtp_parse(void *params, const char *text, size_t len)
{
	struct xcipher_fmtp f = {.text = text, .len = len};

	memset(params, 0, sizeof(struct params));
	while (xcipher_fmtp_next(&f))
		take(params, f.key, f.key_len,
			xcipher_fmtp_number(f.value, f.value_len, UINT32_MAX));
	return 0;
}

static int fmtp_write(const void *params, char *out, size_t cap)
{
	const struct params *p = params;
	char text[160];
	int n = snprintf(text, sizeof(text), "useinbandfec=%d", p->fec);

	if (p->dtx)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ";usedtx=1");
	if (p->cbr)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ";cbr=1");
	if (p->max_bitrate)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ";maxaveragebitrate=%u",
			p->max_bitrate);
	if (p->max_rate)
		n += snprintf(
			text + n, sizeof(text) - (size_t)n, ";maxplaybackrate=%u", p->max_rate);
	if ((size_t)n > cap)
		return -ENOSPC;
	memcpy(out, text, (size_t)n);
	return n;
}

/* --- Decoder ---------------------------------------------------------------------------------- */

static int error(int opus)
{
	return opus == OPUS_BUFFER_TOO_SMALL ? -ENOSPC
		: opus == OPUS_ALLOC_FAIL    ? -ENOMEM
					     : -EBADMSG;
}

static int dec_open(void *dec, int32_t rate, int channels)
{
	struct decoder *d = dec;
	int rc = 0;

	d->rate = rate;
	d->opus = opus_decoder_create(rate, channels, &rc);
	return rc == OPUS_OK ? 0 : -ENOMEM;
}

static int dec_init_48(void *dec, const void *params)
{
	(void)params;
	return dec_open(dec, RATE, 1);
}

static int dec_init_16(void *dec, const void *params)
{
	(void)params;
	return dec_open(dec, 16000, 1);
}

static int dec_init_8(void *dec, const void *params)
{
	(void)params;
	return dec_open(dec, 8000, 1);
}

static int dec_init_stereo(void *dec, const void *params)
{
	(void)params;
	return dec_open(dec, RATE, 2);
}

static void dec_fini(void *dec)
{
	opus_decoder_destroy(((struct decoder *)dec)->opus);
}

static int decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	int n = 0;

	if (len == 0 || len > INT16_MAX)
		return -EBADMSG;
	n = opus_packet_get_nb_samples(in, (opus_int32)len, ((struct decoder *)dec)->rate);
	if (n < 0)
		return -EBADMSG;
	if ((size_t)n > cap)
		return -ENOSPC;
	n = opus_decode(((struct decoder *)dec)->opus, in, (opus_int32)len, pcm, (int)cap, 0);
	return n < 0 ? error(n) : n;
}

/* The decoder makes comfort noise by itself if the last packets were those of DTX. */
static int conceal(void *dec, enum xcipher_codec_gap why, size_t samples, int16_t *pcm, size_t cap)
{
	uint32_t frame = (uint32_t)((struct decoder *)dec)->rate / FRAMES;
	int n = 0;

	(void)why;
	if (samples > cap)
		return -ENOSPC;
	if (samples == 0 || samples % frame != 0 || samples > XCIPHER_CODEC_MAX_PCM)
		return -EINVAL;
	n = opus_decode(((struct decoder *)dec)->opus, NULL, 0, pcm, (int)samples, 0);
	return n < 0 ? error(n) : n;
}

/* Whether a packet has the one before with fewer bits. Only SILK has: its first frame begins with a
 * bit of activity for each 20 ms, and then this one, for each channel (RFC 6716 4.2.3). */
static int has_redundancy(const uint8_t *p, size_t len)
{
	const unsigned char *frame[48];
	opus_int16 size[48];
	int n = opus_packet_get_samples_per_frame(p, RATE) / (RATE / 50);

	if (p[0] & 0x80 || opus_packet_parse(p, (opus_int32)len, NULL, frame, size, NULL) <= 0 ||
		!size[0])
		return 0;
	n = n > 1 ? n : 1;
	return (frame[0][0] >> (7 - n) & 1) || (p[0] & 4 && (frame[0][0] >> (6 - 2 * n) & 1));
}

static int recover(void *dec, const uint8_t *next, size_t len, int16_t *pcm, size_t cap)
{
	int n = 0;

	if (len == 0 || len > INT16_MAX)
		return -EBADMSG;
	n = opus_packet_get_nb_samples(next, (opus_int32)len, ((struct decoder *)dec)->rate);
	if (n <= 0)
		return -EBADMSG;
	if ((size_t)n > cap)
		return -ENOSPC;
	if (!has_redundancy(next, len))
		return -ENOENT;
	n = opus_decode(((struct decoder *)dec)->opus, next, (opus_int32)len, pcm, n, 1);
	return n < 0 ? error(n) : n;
}

/* --- Encoder ---------------------------------------------------------------------------------- */

/* 0: the library's choice. For 8 and 16 kHz that would be 11 and 19 kbit/s. Without 4 kbit/s more
 * it leaves redundancy out, unless the loss is high. */
static uint32_t usual_bitrate(const struct encoder *e, int redundant)
{
	uint32_t more = redundant ? 4000 : 0;

	return e->rate == 8000 ? 16000 + more : e->rate == 16000 ? 24000 + more : 0;
}

static int adapt(void *enc, const struct xcipher_codec_wish *wish)
{
	struct encoder *e = enc;
	int fec = wish->fec || e->params.fec;
	uint32_t usual = usual_bitrate(e, fec && wish->loss_percent);
	uint32_t bitrate = wish->bitrate ? wish->bitrate : usual;

	if (e->params.max_bitrate && (bitrate == 0 || bitrate > e->params.max_bitrate))
		bitrate = e->params.max_bitrate;
	if (bitrate && (bitrate < 500 || bitrate > 512000))
		return -EINVAL;
	opus_encoder_ctl(e->opus, OPUS_SET_BITRATE(bitrate ? (opus_int32)bitrate : OPUS_AUTO));
	opus_encoder_ctl(e->opus, OPUS_SET_INBAND_FEC(fec));
	opus_encoder_ctl(e->opus, OPUS_SET_DTX(wish->dtx || e->params.dtx));
	opus_encoder_ctl(e->opus,
		OPUS_SET_PACKET_LOSS_PERC(wish->loss_percent > 100 ? 100 : wish->loss_percent));
	return 0;
}

static int enc_open(
	struct encoder *e, const void *params, const struct xcipher_codec_wish *wish, int channels)
{
	static const struct {
		uint32_t rate;
		opus_int32 band;
	} bands[] = {{8000, OPUS_BANDWIDTH_NARROWBAND}, {12000, OPUS_BANDWIDTH_MEDIUMBAND},
		{16000, OPUS_BANDWIDTH_WIDEBAND}, {24000, OPUS_BANDWIDTH_SUPERWIDEBAND}};
	int rc = 0;

	e->params = *(const struct params *)params;
	e->opus = opus_encoder_create((opus_int32)e->rate, channels, OPUS_APPLICATION_VOIP, &rc);
	if (rc != OPUS_OK)
		return -ENOMEM;
	opus_encoder_ctl(e->opus, OPUS_SET_VBR(!e->params.cbr));
	opus_encoder_ctl(e->opus, OPUS_SET_COMPLEXITY(5));
	for (size_t i = sizeof(bands) / sizeof(bands[0]); i > 0 && e->params.max_rate; i--)
		if (e->params.max_rate <= bands[i - 1].rate)
			opus_encoder_ctl(e->opus, OPUS_SET_MAX_BANDWIDTH(bands[i - 1].band));
	rc = adapt(e, wish);
	if (rc)
		opus_encoder_destroy(e->opus);
	return rc;
}

static int enc_init_48(void *enc, const void *params, const struct xcipher_codec_wish *wish)
{
	((struct encoder *)enc)->rate = RATE;
	return enc_open(enc, params, wish, 1);
}

static int enc_init_16(void *enc, const void *params, const struct xcipher_codec_wish *wish)
{
	((struct encoder *)enc)->rate = 16000;
	return enc_open(enc, params, wish, 1);
}

static int enc_init_8(void *enc, const void *params, const struct xcipher_codec_wish *wish)
{
	((struct encoder *)enc)->rate = 8000;
	return enc_open(enc, params, wish, 1);
}

static int enc_init_stereo(void *enc, const void *params, const struct xcipher_codec_wish *wish)
{
	((struct encoder *)enc)->rate = RATE;
	return enc_open(enc, params, wish, 2);
}

static void enc_fini(void *enc)
{
	opus_encoder_destroy(((struct encoder *)enc)->opus);
}

/* A packet of up to two bytes need not be sent (opus_encoder(3), DTX). */
static int encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	static const uint8_t frames[] = {1, 2, 4, 8, 16, 24, 32, 40, 48};
	uint32_t frame = ((struct encoder *)enc)->rate / FRAMES;
	opus_int32 dtx = 0;
	int n = -EINVAL;

	for (size_t i = 0; i < sizeof(frames); i++)
		if (samples == frames[i] * frame)
			n = 0;
	if (n)
		return n;
	if (cap < DTX_BYTES + 1)
		return -ENOSPC;
	n = opus_encode(((struct encoder *)enc)->opus, pcm, (int)samples, out,
		cap > 1500 ? 1500 : (opus_int32)cap);
	if (n < 0)
		return error(n);
	opus_encoder_ctl(((struct encoder *)enc)->opus, OPUS_GET_DTX(&dtx));
	return dtx && n <= DTX_BYTES ? 0 : n;
}

/* --- Tables ----------------------------------------------------------------------------------- */

#define COMMON(hz)                                                                       \
	.size = sizeof(struct xcipher_codec), .name = "opus", .clock = RATE, .rate = hz, \
	.static_pt = -1, .ptime = 20, .frame_samples = (hz) / FRAMES,                    \
	.params_size = sizeof(struct params), .dec_size = sizeof(struct decoder),        \
	.enc_size = sizeof(struct encoder), .align = _Alignof(struct encoder),           \
	.fmtp_parse = fmtp_parse, .fmtp_write = fmtp_write, .dec_fini = dec_fini,        \
	.decode = decode, .conceal = conceal, .recover = recover, .enc_fini = enc_fini,  \
	.encode = encode, .adapt = adapt

static const struct xcipher_codec mono48 = {
	COMMON(RATE), .channels = 1, .dec_init = dec_init_48, .enc_init = enc_init_48};
static const struct xcipher_codec mono16 = {
	COMMON(16000), .channels = 1, .dec_init = dec_init_16, .enc_init = enc_init_16};
static const struct xcipher_codec mono8 = {
	COMMON(8000), .channels = 1, .dec_init = dec_init_8, .enc_init = enc_init_8};
static const struct xcipher_codec stereo = {
	COMMON(RATE), .channels = 2, .dec_init = dec_init_stereo, .enc_init = enc_init_stereo};
static const struct xcipher_codec *const codecs[] = {&mono48, &stereo, &mono16, &mono8};

static const struct xcipher_codec_plugin plugin = {
	.abi = XCIPHER_CODEC_ABI,
	.size = sizeof(struct xcipher_codec_plugin),
	.name = "opus",
	.version = XCIPHER_VERSION,
	.license = "GPL-2.0-or-later",
	.codec = codecs,
	.codecs = sizeof(codecs) / sizeof(codecs[0]),
};

XCIPHER_CODEC_EXPORT const struct xcipher_codec_plugin *xcipher_codec_plugin(void)
{
	return &plugin;
}
