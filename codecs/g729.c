/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.729 by bcg729 (RFC 3551 4.5.6): frames of 10 bytes for 10 ms, and with annex B a last frame of
 * 2 bytes that describes noise. */
#include "xcipher_codec.h"

#include <bcg729/decoder.h>
#include <bcg729/encoder.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { FRAME = 80, BYTES = 10, NOISE = 2 };

struct params {
	uint32_t annexb; /* the far end receives annex B; so it is without a parameter */
};

struct decoder {
	bcg729DecoderChannelContextStruct *g729;
};

struct encoder {
	bcg729EncoderChannelContextStruct *g729;
	uint32_t annexb, dtx;
};

static int fmtp_parse(void *params, const char *text, size_t len)
{
	struct params *p = params;
	struct xcipher_fmtp f = {.text = text, .len = len};

	p->annexb = 1;
	while (xcipher_fmtp_next(&f))
		if (xcipher_fmtp_is(f.key, f.key_len, "annexb"))
			p->annexb = !xcipher_fmtp_is(f.value, f.value_len, "no");
	return 0;
}

static int fmtp_write(const void *params, char *out, size_t cap)
{
	static const char no[] = "annexb=no";

	if (((const struct params *)params)->annexb)
		return 0;
	if (cap < sizeof(no) - 1)
		return -ENOSPC;
	memcpy(out, no, sizeof(no) - 1);
	return (int)sizeof(no) - 1;
}

static int dec_init(void *dec, const void *params)
{
	struct decoder *d = dec;

	(void)params;
	d->g729 = initBcg729DecoderChannel();
	return d->g729 ? 0 : -ENOMEM;
}

static void dec_fini(void *dec)
{
	closeBcg729DecoderChannel(((struct decoder *)dec)->g729);
}

static int decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	struct decoder *d = dec;
	size_t frames = (len + BYTES - NOISE) / BYTES;

	if (len == 0 || (len % BYTES != 0 && len % BYTES != NOISE))
		return -EBADMSG;
	if (frames * FRAME > cap)
		return -ENOSPC;
	for (size_t i = 0; i < frames; i++) {
		bool noise = i * BYTES + BYTES > len;

		bcg729Decoder(d->g729, in + i * BYTES, noise ? NOISE : BYTES, 0, noise, 0,
			pcm + i * FRAME);
	}
	return (int)(frames * FRAME);
}

/* The decoder knows whether noise came last, and then continues it. */
static int conceal(void *dec, enum xcipher_codec_gap why, size_t samples, int16_t *pcm, size_t cap)
{
	static const uint8_t none[BYTES];
	struct decoder *d = dec;

	(void)why;
	if (samples > cap)
		return -ENOSPC;
	if (samples % FRAME != 0)
		return -EINVAL;
	for (size_t at = 0; at < samples; at += FRAME)
		bcg729Decoder(d->g729, none, 0, 1, 0, 0, pcm + at);
	return (int)samples;
}

static void enc_fini(void *enc)
{
	closeBcg729EncoderChannel(((struct encoder *)enc)->g729);
}

static int enc_open(struct encoder *e, bool dtx)
{
	e->g729 = initBcg729EncoderChannel(dtx);
	e->dtx = dtx;
	return e->g729 ? 0 : -ENOMEM;
}

static int enc_init(void *enc, const void *params, const struct xcipher_codec_wish *wish)
{
	struct encoder *e = enc;

	e->annexb = ((const struct params *)params)->annexb;
	return enc_open(e, e->annexb && wish->dtx);
}

/* The library decides about DTX when it starts: a change starts it again. */
static int adapt(void *enc, const struct xcipher_codec_wish *wish)
{
	struct encoder *e = enc, next = *e;
	bool dtx = e->annexb && wish->dtx;
	int rc = 0;

	if (dtx == e->dtx)
		return 0;
	rc = enc_open(&next, dtx);
	if (rc)
		return rc;
	enc_fini(e);
	*e = next;
	return 0;
}

/* A frame of noise can only be the last of a payload: later speech replaces it. */
static int encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	uint8_t code[BYTES], len = 0;
	size_t n = 0;

	if (samples == 0 || samples % FRAME != 0)
		return -EINVAL;
	if (samples / FRAME * BYTES > cap)
		return -ENOSPC;
	for (size_t at = 0; at < samples; at += FRAME) {
		bcg729Encoder(((struct encoder *)enc)->g729, pcm + at, code, &len);
		if (len > 0)
			n = n / BYTES * BYTES;
		memcpy(out + n, code, len);
		n += len;
	}
	return (int)n;
}

static const struct xcipher_codec codec = {
	.size = sizeof(struct xcipher_codec),
	.flags = XCIPHER_CODEC_HAS_DTX,
	.name = "G729",
	.clock = 8000,
	.rate = 8000,
	.channels = 1,
	.static_pt = 18,
	.ptime = 20,
	.frame_samples = FRAME,
	.params_size = sizeof(struct params),
	.dec_size = sizeof(struct decoder),
	.enc_size = sizeof(struct encoder),
	.align = _Alignof(struct encoder),
	.fmtp_parse = fmtp_parse,
	.fmtp_write = fmtp_write,
	.dec_init = dec_init,
	.dec_fini = dec_fini,
	.decode = decode,
	.conceal = conceal,
	.enc_init = enc_init,
	.enc_fini = enc_fini,
	.encode = encode,
	.adapt = adapt,
};

static const struct xcipher_codec *const codecs[] = {&codec};

static const struct xcipher_codec_plugin plugin = {
	.abi = XCIPHER_CODEC_ABI,
	.size = sizeof(struct xcipher_codec_plugin),
	.name = "g729",
	.version = XCIPHER_VERSION,
	.license = "GPL-2.0-or-later",
	.codec = codecs,
	.codecs = sizeof(codecs) / sizeof(codecs[0]),
};

XCIPHER_CODEC_EXPORT const struct xcipher_codec_plugin *xcipher_codec_plugin(void)
{
	return &plugin;
}
