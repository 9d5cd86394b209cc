/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Speex by libspeex (RFC 5574): 8, 16 and 32 kHz, frames of 20 ms, several in a payload. */
#include "xcipher_codec.h"

#include <errno.h>
#include <speex/speex.h>
#include <string.h>

enum { MAX_PAYLOAD = 1500, TERMINATOR = 0xf };

struct params {
	uint32_t mode; /* 0: the codec's choice, else 1 + mode */
	uint32_t vbr;
};

struct state {
	void *speex;
	SpeexBits bits;
	uint32_t frame; /* samples */
};

/* mode may be a list of quoted numbers: the first counts. Other values are ignored. */
static int fmtp_parse(void *params, const char *text, size_t len)
{
	struct params *p = params;
	struct xcipher_fmtp f = {.text = text, .len = len};

	*p = (struct params){0};
	while (xcipher_fmtp_next(&f)) {
		if (xcipher_fmtp_is(f.key, f.key_len, "vbr"))
			p->vbr = xcipher_fmtp_is(f.value, f.value_len, "on") ||
				xcipher_fmtp_is(f.value, f.value_len, "vad");
		if (!xcipher_fmtp_is(f.key, f.key_len, "mode"))
			continue;
		if (f.value_len > 0 && f.value[0] == '"') {
			f.value++;
			f.value_len--;
		}
		if (f.value_len > 0 && f.value[0] >= '1' && f.value[0] <= '8')
			p->mode = 1 + (uint32_t)(f.value[0] - '0');
	}
	return 0;
}

static int fmtp_write(const void *params, char *out, size_t cap)
{
	const struct params *p = params;
	char text[] = "mode=\"0,any\"";

	if (!p->mode)
		return 0;
	text[6] = (char)('0' + p->mode - 1);
	if (cap < sizeof(text) - 1)
		return -ENOSPC;
	memcpy(out, text, sizeof(text) - 1);
	return (int)sizeof(text) - 1;
}

/* --- Decoder ---------------------------------------------------------------------------------- */

static int dec_open(struct state *s, int mode)
{
	int on = 1;

	s->speex = speex_decoder_init(speex_lib_get_mode(mode));
	if (!s->speex)
		return -ENOMEM;
	speex_decoder_ctl(s->speex, SPEEX_SET_ENH, &on);
	speex_decoder_ctl(s->speex, SPEEX_GET_FRAME_SIZE, &s->frame);
	speex_bits_init(&s->bits);
	return 0;
}

static void dec_fini(void *dec)
{
	struct state *s = dec;

	speex_bits_destroy(&s->bits);
	speex_decoder_destroy(s->speex);
}

static int decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	struct state *s = dec;
	size_t n = 0;

	if (len == 0 || len > MAX_PAYLOAD)
		return -EBADMSG;
	speex_bits_read_from(&s->bits, (const char *)in, (int)len);
	while (speex_bits_remaining(&s->bits) >= 5 &&
		speex_bits_peek_unsigned(&s->bits, 5) >> 1 != TERMINATOR) {
		if (n + s->frame > cap)
			return -ENOSPC;
		if (speex_decode_int(s->speex, &s->bits, pcm + n) != 0 ||
			speex_bits_remaining(&s->bits) < 0)
			return n ? (int)n : -EBADMSG;
		n += s->frame;
	}
	return (int)n;
}

static int conceal(void *dec, enum xcipher_codec_gap why, size_t samples, int16_t *pcm, size_t cap)
{
	struct state *s = dec;

	(void)why;
	if (samples > cap)
		return -ENOSPC;
	if (samples % s->frame != 0)
		return -EINVAL;
	for (size_t at = 0; at < samples; at += s->frame)
		speex_decode_int(s->speex, NULL, pcm + at);
	return (int)samples;
}

/* --- Encoder ---------------------------------------------------------------------------------- */

static int adapt(void *enc, const struct xcipher_codec_wish *wish)
{
	struct state *s = enc;
	int dtx = wish->dtx, rate = (int)wish->bitrate;

	if (wish->bitrate > 100000)
		return -EINVAL;
	speex_encoder_ctl(s->speex, SPEEX_SET_VAD, &dtx);
	speex_encoder_ctl(s->speex, SPEEX_SET_DTX, &dtx);
	if (rate)
		speex_encoder_ctl(s->speex, SPEEX_SET_BITRATE, &rate);
	return 0;
}

static int enc_open(
	struct state *s, const struct params *p, const struct xcipher_codec_wish *wish, int mode)
{
	int quality = 8, complexity = 3, vbr = (int)p->vbr, rc = 0;

	s->speex = speex_encoder_init(speex_lib_get_mode(mode));
	if (!s->speex)
		return -ENOMEM;
	speex_encoder_ctl(s->speex, SPEEX_SET_QUALITY, &quality);
	speex_encoder_ctl(s->speex, SPEEX_SET_COMPLEXITY, &complexity);
	if (vbr)
		speex_encoder_ctl(s->speex, SPEEX_SET_VBR, &vbr);
	if (p->mode && mode == SPEEX_MODEID_NB) {
		int narrow = (int)p->mode - 1;

		speex_encoder_ctl(s->speex, SPEEX_SET_MODE, &narrow);
	}
	speex_encoder_ctl(s->speex, SPEEX_GET_FRAME_SIZE, &s->frame);
	rc = adapt(s, wish);
	if (rc) {
		speex_encoder_destroy(s->speex);
		return rc;
	}
	speex_bits_init(&s->bits);
	return 0;
}

static void enc_fini(void *enc)
{
	struct state *s = enc;

	speex_bits_destroy(&s->bits);
	speex_encoder_destroy(s->speex);
}

static int encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	struct state *s = enc;
	int16_t frame[640]; /* the encoder changes its input */
	int send = 0, n = 0;

	if (samples == 0 || samples % s->frame != 0 || s->frame > 640)
		return -EINVAL;
	speex_bits_reset(&s->bits);
	for (size_t at = 0; at < samples; at += s->frame) {
		memcpy(frame, pcm + at, s->frame * sizeof(*frame));
		send |= speex_encode_int(s->speex, frame, &s->bits);
	}
	if (!send)
		return 0;
	n = speex_bits_nbytes(&s->bits);
	if (n < 0 || (size_t)n > cap || n > MAX_PAYLOAD)
		return -ENOSPC;
	return speex_bits_write(&s->bits, (char *)out, n);
}

/* --- Tables ----------------------------------------------------------------------------------- */

#define BAND(band, id)                                                                \
	static int dec_init_##band(void *dec, const void *params)                     \
	{                                                                             \
		(void)params;                                                         \
		return dec_open(dec, id);                                             \
	}                                                                             \
	static int enc_init_##band(                                                   \
		void *enc, const void *params, const struct xcipher_codec_wish *wish) \
	{                                                                             \
		return enc_open(enc, params, wish, id);                               \
	}                                                                             \
	static const struct xcipher_codec band
#define ROW(band, hz)                                                                          \
	{                                                                                      \
		.size = sizeof(struct xcipher_codec), .flags = XCIPHER_CODEC_HAS_DTX,          \
		.name = "speex", .clock = hz, .rate = hz, .channels = 1, .static_pt = -1,      \
		.ptime = 20, .frame_samples = (hz) / 50, .params_size = sizeof(struct params), \
		.dec_size = sizeof(struct state), .enc_size = sizeof(struct state),            \
		.align = _Alignof(struct state), .fmtp_parse = fmtp_parse,                     \
		.fmtp_write = fmtp_write, .dec_init = dec_init_##band, .dec_fini = dec_fini,   \
		.decode = decode, .conceal = conceal, .enc_init = enc_init_##band,             \
		.enc_fini = enc_fini, .encode = encode, .adapt = adapt                         \
	}

BAND(narrow, SPEEX_MODEID_NB) = ROW(narrow, 8000);
BAND(wide, SPEEX_MODEID_WB) = ROW(wide, 16000);
BAND(ultra, SPEEX_MODEID_UWB) = ROW(ultra, 32000);

static const struct xcipher_codec *const codecs[] = {&narrow, &wide, &ultra};

static const struct xcipher_codec_plugin plugin = {
	.abi = XCIPHER_CODEC_ABI,
	.size = sizeof(struct xcipher_codec_plugin),
	.name = "speex",
	.version = XCIPHER_VERSION,
	.license = "GPL-2.0-or-later",
	.codec = codecs,
	.codecs = sizeof(codecs) / sizeof(codecs[0]),
};

XCIPHER_CODEC_EXPORT const struct xcipher_codec_plugin *xcipher_codec_plugin(void)
{
	return &plugin;
}
