/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A complete plug-in to start from: "x-half" sends every second sample of 8 kHz as one signed byte.
 * It sounds as that suggests, but shows each part of the interface.
 *
 *   cc -std=c17 -O2 -Wall -fPIC -shared -fvisibility=hidden -o half.so template.c
 *   xcipher-codec-test half.so
 *
 * In a clone, where xcipher_codec.h is not installed: add -I../include, and find the program in
 * build/.
 *
 * Copy it, and replace one function after another. xcipher_codec.h has the rules. */
#include "xcipher_codec.h"

#include <errno.h>
#include <string.h>

/* --- Parameters: a=fmtp:96 loud=1 ------------------------------------------------------------- */

/* The host keeps this block and may copy it. It has no pointers. */
struct params {
	uint32_t loud; /* 1: a little louder */
};

static int fmtp_parse(void *params, const char *text, size_t len)
{
	struct params *p = params;
	struct xcipher_fmtp f = {.text = text, .len = len};

	*p = (struct params){0};
	while (xcipher_fmtp_next(&f)) {
		int64_t n = xcipher_fmtp_number(f.value, f.value_len, 1);

		if (!xcipher_fmtp_is(f.key, f.key_len, "loud"))
			continue; /* unknown: ignored */
		if (n < 0)
			return -EINVAL;
		p->loud = (uint32_t)n;
	}
	return 0;
}

static int fmtp_write(const void *params, char *out, size_t cap)
{
	static const char text[] = "loud=1"; /* no terminator is written */
	const struct params *p = params;

	if (!p->loud)
		return 0;
	if (cap < sizeof(text) - 1)
		return -ENOSPC;
	memcpy(out, text, sizeof(text) - 1);
	return (int)sizeof(text) - 1;
}

/* --- Decoder ---------------------------------------------------------------------------------- */

/* Everything that a stream remembers. The host owns the memory: no globals, no pointers to it. */
struct decoder {
	uint32_t gain;
	int16_t last; /* sample, for gaps */
};

static int dec_init(void *dec, const void *params)
{
	struct decoder *d = dec;

	d->gain = 200 + 50 * ((const struct params *)params)->loud;
	return 0;
}

static int decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	struct decoder *d = dec;

	if (2 * len > cap) /* lengths are added or multiplied, never subtracted */
		return -ENOSPC;
	for (size_t i = 0; i < len; i++) {
		d->last = (int16_t)((int8_t)in[i] * (int)d->gain);
		pcm[2 * i] = d->last;
		pcm[2 * i + 1] = d->last;
	}
	return (int)(2 * len);
}

/* Lost: fade from the last sample. Silent: nothing. */
static int conceal(void *dec, enum xcipher_codec_gap why, size_t samples, int16_t *pcm, size_t cap)
{
	struct decoder *d = dec;

	if (samples > cap)
		return -ENOSPC;
	for (size_t i = 0; i < samples; i++) {
		d->last = why == XCIPHER_CODEC_LOST ? (int16_t)(d->last * 15 / 16) : 0;
		pcm[i] = d->last;
	}
	return (int)samples;
}

/* --- Encoder ---------------------------------------------------------------------------------- */

struct encoder {
	uint32_t gain;
	uint8_t dtx;
};

static int adapt(void *enc, const struct xcipher_codec_wish *wish)
{
	((struct encoder *)enc)->dtx = wish->dtx;
	return 0;
}

static int enc_init(void *enc, const void *params, const struct xcipher_codec_wish *wish)
{
	((struct encoder *)enc)->gain = 200 + 50 * ((const struct params *)params)->loud;
	return adapt(enc, wish);
}

static int encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	struct encoder *e = enc;
	int silent = 1;

	if (samples % 2 != 0)
		return -EINVAL;
	if (samples / 2 > cap)
		return -ENOSPC;
	for (size_t i = 0; i < samples / 2; i++) {
		int v = pcm[2 * i] / (int)e->gain;

		out[i] = (uint8_t)(int8_t)(v > 127 ? 127 : v < -128 ? -128 : v);
		silent = silent && out[i] == 0;
	}
	return e->dtx && silent ? 0 : (int)(samples / 2);
}

/* --- Tables ----------------------------------------------------------------------------------- */

static const struct xcipher_codec half = {
	.size = sizeof(struct xcipher_codec),
	.flags = XCIPHER_CODEC_PLAIN_STATE | XCIPHER_CODEC_HAS_DTX,
	.name = "x-half",
	.clock = 8000,
	.rate = 8000,
	.channels = 1,
	.static_pt = -1,
	.ptime = 20,
	.frame_samples = 2,
	.params_size = sizeof(struct params),
	.dec_size = sizeof(struct decoder),
	.enc_size = sizeof(struct encoder),
	.align = _Alignof(struct encoder),
	.fmtp_parse = fmtp_parse,
	.fmtp_write = fmtp_write,
	.dec_init = dec_init,
	.decode = decode,
	.conceal = conceal,
	.enc_init = enc_init,
	.encode = encode,
	.adapt = adapt,
};

static const struct xcipher_codec *const codecs[] = {&half};

static const struct xcipher_codec_plugin plugin = {
	.abi = XCIPHER_CODEC_ABI,
	.size = sizeof(struct xcipher_codec_plugin),
	.name = "template",
	.version = "1",
	.license = "GPL-2.0-or-later",
	.codec = codecs,
	.codecs = sizeof(codecs) / sizeof(codecs[0]),
};

XCIPHER_CODEC_EXPORT const struct xcipher_codec_plugin *xcipher_codec_plugin(void)
{
	return &plugin;
}
