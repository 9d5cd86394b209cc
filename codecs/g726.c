/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.726 by spandsp, at 16, 24, 32 and 40 kbit/s. "G726-32" and the like pack the first sample into
 * the lowest bits of a byte (RFC 3551 4.5.4), "AAL2-G726-32" into the highest. */
#include "xcipher_codec.h"

#include <errno.h>
#include <spandsp.h>

struct state {
	g726_state_t *g726;
	uint32_t bits; /* of a sample */
};

static int open_state(struct state *s, uint32_t bits, int packing)
{
	s->g726 = g726_init(NULL, (int)bits * 8000, G726_ENCODING_LINEAR, packing);
	s->bits = bits;
	return s->g726 ? 0 : -ENOMEM;
}

static void fini(void *state)
{
	g726_free(((struct state *)state)->g726);
}

/* Whole groups of samples only: no bits are left for the next payload. */
static int decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	struct state *s = dec;

	if (len == 0 || len * 8 % s->bits != 0)
		return -EBADMSG;
	if (len * 8 / s->bits > cap)
		return -ENOSPC;
	return g726_decode(s->g726, pcm, in, (int)len);
}

static int encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	struct state *s = enc;

	if (samples % 8 != 0)
		return -EINVAL;
	if (samples / 8 * s->bits > cap)
		return -ENOSPC;
	return g726_encode(s->g726, out, pcm, (int)samples);
}

#define CODEC(id, text, bits, packing)                                                \
	static int dec_init_##id(void *dec, const void *params)                       \
	{                                                                             \
		(void)params;                                                         \
		return open_state(dec, bits, packing);                                \
	}                                                                             \
	static int enc_init_##id(                                                     \
		void *enc, const void *params, const struct xcipher_codec_wish *wish) \
	{                                                                             \
		(void)params, (void)wish;                                             \
		return open_state(enc, bits, packing);                                \
	}                                                                             \
	static const struct xcipher_codec id = {.size = sizeof(struct xcipher_codec), \
		.name = text,                                                         \
		.clock = 8000,                                                        \
		.rate = 8000,                                                         \
		.channels = 1,                                                        \
		.static_pt = -1,                                                      \
		.ptime = 20,                                                          \
		.frame_samples = 8,                                                   \
		.dec_size = sizeof(struct state),                                     \
		.enc_size = sizeof(struct state),                                     \
		.align = _Alignof(struct state),                                      \
		.dec_init = dec_init_##id,                                            \
		.dec_fini = fini,                                                     \
		.decode = decode,                                                     \
		.enc_init = enc_init_##id,                                            \
		.enc_fini = fini,                                                     \
		.encode = encode}

CODEC(g16, "G726-16", 2, G726_PACKING_RIGHT);
CODEC(g24, "G726-24", 3, G726_PACKING_RIGHT);
CODEC(g32, "G726-32", 4, G726_PACKING_RIGHT);
CODEC(g40, "G726-40", 5, G726_PACKING_RIGHT);
CODEC(a16, "AAL2-G726-16", 2, G726_PACKING_LEFT);
CODEC(a24, "AAL2-G726-24", 3, G726_PACKING_LEFT);
CODEC(a32, "AAL2-G726-32", 4, G726_PACKING_LEFT);
CODEC(a40, "AAL2-G726-40", 5, G726_PACKING_LEFT);

static const struct xcipher_codec *const codecs[] = {
	&g16, &g24, &g32, &g40, &a16, &a24, &a32, &a40};

static const struct xcipher_codec_plugin plugin = {
	.abi = XCIPHER_CODEC_ABI,
	.size = sizeof(struct xcipher_codec_plugin),
	.name = "g726",
	.version = XCIPHER_VERSION,
	.license = "GPL-2.0-or-later",
	.codec = codecs,
	.codecs = sizeof(codecs) / sizeof(codecs[0]),
};

XCIPHER_CODEC_EXPORT const struct xcipher_codec_plugin *xcipher_codec_plugin(void)
{
	return &plugin;
}
