/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GSM full rate by libgsm (RFC 3551 4.5.8): 33 bytes for 20 ms. */
#include "xcipher_codec.h"

#include <errno.h>
#include <gsm/gsm.h>
#include <string.h>

enum { FRAME = 160, BYTES = 33, MAGIC = 0xd };

struct state {
	gsm gsm;
	uint8_t last[BYTES]; /* the last frame, for gaps */
	uint32_t lost;       /* frames in a row, from the second on the level falls */
};

static int dec_init(void *dec, const void *params)
{
	struct state *s = dec;

	(void)params;
	s->gsm = gsm_create();
	s->lost = 16;
	return s->gsm ? 0 : -ENOMEM;
}

static int enc_init(void *enc, const void *params, const struct xcipher_codec_wish *wish)
{
	(void)wish;
	return dec_init(enc, params);
}

static void fini(void *state)
{
	gsm_destroy(((struct state *)state)->gsm);
}

static int decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	struct state *s = dec;
	size_t frames = len / BYTES;

	if (frames == 0 || len % BYTES != 0)
		return -EBADMSG;
	for (size_t i = 0; i < frames; i++)
		if (in[i * BYTES] >> 4 != MAGIC)
			return -EBADMSG;
	if (frames * FRAME > cap)
		return -ENOSPC;
	for (size_t i = 0; i < frames; i++) {
		memcpy(s->last, in + i * BYTES, BYTES);
		if (gsm_decode(s->gsm, s->last, pcm + i * FRAME))
			return -EBADMSG;
	}
	s->lost = 0;
	return (int)(frames * FRAME);
}

/* Repeats the last frame, a quarter weaker each time; silence after 16 frames (GSM 06.11). */
static int conceal(void *dec, enum xcipher_codec_gap why, size_t samples, int16_t *pcm, size_t cap)
{
	struct state *s = dec;

	if (samples > cap)
		return -ENOSPC;
	if (samples % FRAME != 0)
		return -EINVAL;
	memset(pcm, 0, samples * sizeof(*pcm));
	for (size_t at = 0; at < samples && why == XCIPHER_CODEC_LOST; at += FRAME) {
		if (s->lost >= 16)
			continue;
		gsm_decode(s->gsm, s->last, pcm + at);
		for (size_t i = 0; i < FRAME; i++)
			for (uint32_t n = 0; n < s->lost; n++)
				pcm[at + i] = (int16_t)(pcm[at + i] * 3 / 4);
		s->lost++;
	}
	return (int)samples;
}

static int encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	size_t frames = samples / FRAME;
	int16_t frame[FRAME]; /* the library does not promise to leave its input alone */

	if (frames == 0 || samples % FRAME != 0)
		return -EINVAL;
	if (frames * BYTES > cap)
		return -ENOSPC;
	for (size_t i = 0; i < frames; i++) {
		memcpy(frame, pcm + i * FRAME, sizeof(frame));
		gsm_encode(((struct state *)enc)->gsm, frame, out + i * BYTES);
	}
	return (int)(frames * BYTES);
}

static const struct xcipher_codec codec = {
	.size = sizeof(struct xcipher_codec),
	.name = "GSM",
	.clock = 8000,
	.rate = 8000,
	.channels = 1,
	.static_pt = 3,
	.ptime = 20,
	.frame_samples = FRAME,
	.dec_size = sizeof(struct state),
	.enc_size = sizeof(struct state),
	.align = _Alignof(struct state),
	.dec_init = dec_init,
	.dec_fini = fini,
	.decode = decode,
	.conceal = conceal,
	.enc_init = enc_init,
	.enc_fini = fini,
	.encode = encode,
};

static const struct xcipher_codec *const codecs[] = {&codec};

static const struct xcipher_codec_plugin plugin = {
	.abi = XCIPHER_CODEC_ABI,
	.size = sizeof(struct xcipher_codec_plugin),
	.name = "gsm",
	.version = XCIPHER_VERSION,
	.license = "GPL-2.0-or-later",
	.codec = codecs,
	.codecs = 1,
};

XCIPHER_CODEC_EXPORT const struct xcipher_codec_plugin *xcipher_codec_plugin(void)
{
	return &plugin;
}
