/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Built-in codecs (RFC 3551 4.5.2, 4.5.11, 4.5.14). Payloads become PCM sample by sample, so they
 * have no frames and, except for G.722, no state. They convert to and from L16 without PCM
 * between. Between the laws of G.711 the recommendation has tables of its own, whose results differ
 * from a conversion by way of PCM: not here. */
#include "builtin.h"

#include <errno.h>

#include "base/bytes.h"
#include "codec/g711.h"
#include "codec/g722.h"
#include "codec/g722_batch.h"

/* --- G.711 ------------------------------------------------------------------------------------ */

static int ulaw_decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	(void)dec;
	if (len > cap)
		return -ENOSPC;
	g711_ulaw_decode_all(in, len, pcm);
	return (int)len;
}

static int alaw_decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	(void)dec;
	if (len > cap)
		return -ENOSPC;
	g711_alaw_decode_all(in, len, pcm);
	return (int)len;
}

static int ulaw_encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	(void)enc;
	if (samples > cap)
		return -ENOSPC;
	g711_ulaw_encode_all(pcm, samples, out);
	return (int)samples;
}

static int alaw_encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	(void)enc;
	if (samples > cap)
		return -ENOSPC;
	g711_alaw_encode_all(pcm, samples, out);
	return (int)samples;
}

static int ulaw_to_l16(void *state, const uint8_t *in, size_t len, uint8_t *out, size_t cap)
{
	(void)state;
	if (2 * len > cap)
		return -ENOSPC;
	for (size_t i = 0; i < len; i++)
		put_be16(out + 2 * i, (uint16_t)g711_ulaw_decode(in[i]));
	return (int)(2 * len);
}

static int alaw_to_l16(void *state, const uint8_t *in, size_t len, uint8_t *out, size_t cap)
{
	(void)state;
	if (2 * len > cap)
		return -ENOSPC;
	for (size_t i = 0; i < len; i++)
		put_be16(out + 2 * i, (uint16_t)g711_alaw_decode(in[i]));
	return (int)(2 * len);
}

#define DIRECT(name, function)                                                             \
	{                                                                                  \
		.size = sizeof(struct xcipher_codec_direct), .to_clock = 8000, .to = name, \
		.to_channels = 1, .convert = function                                      \
	}

static const struct xcipher_codec_direct from_ulaw[] = {DIRECT("L16", ulaw_to_l16)};
static const struct xcipher_codec_direct from_alaw[] = {DIRECT("L16", alaw_to_l16)};

/* --- L16: big-endian, channels interleaved ---------------------------------------------------- */

static int l16_decode(const uint8_t *in, size_t len, uint32_t channels, int16_t *pcm, size_t cap)
{
	if (len % (2 * channels) != 0)
		return -EBADMSG;
	if (len > 2 * channels * cap)
		return -ENOSPC;
	for (size_t i = 0; i < len / 2; i++)
		pcm[i] = (int16_t)be16(in + 2 * i);
	return (int)(len / 2 / channels);
}

static int l16_encode(const int16_t *pcm, size_t n, uint8_t *out, size_t cap)
{
	if (2 * n > cap)
		return -ENOSPC;
	for (size_t i = 0; i < n; i++)
		put_be16(out + 2 * i, (uint16_t)pcm[i]);
	return (int)(2 * n);
}

static int l16_decode_mono(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	(void)dec;
	return l16_decode(in, len, 1, pcm, cap);
}

static int l16_decode_stereo(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	(void)dec;
	return l16_decode(in, len, 2, pcm, cap);
}

static int l16_encode_mono(void *enc, const int16_t *pcm, size_t n, uint8_t *out, size_t cap)
{
	(void)enc;
	return l16_encode(pcm, n, out, cap);
}

static int l16_encode_stereo(void *enc, const int16_t *pcm, size_t n, uint8_t *out, size_t cap)
{
	(void)enc;
	return l16_encode(pcm, 2 * n, out, cap);
}

static int l16_to_ulaw(void *state, const uint8_t *in, size_t len, uint8_t *out, size_t cap)
{
	(void)state;
	if (len % 2 != 0)
		return -EBADMSG;
	if (len > 2 * cap)
		return -ENOSPC;
	for (size_t i = 0; i < len / 2; i++)
		out[i] = g711_ulaw_encode((int16_t)be16(in + 2 * i));
	return (int)(len / 2);
}

static int l16_to_alaw(void *state, const uint8_t *in, size_t len, uint8_t *out, size_t cap)
{
	(void)state;
	if (len % 2 != 0)
		return -EBADMSG;
	if (len > 2 * cap)
		return -ENOSPC;
	for (size_t i = 0; i < len / 2; i++)
		out[i] = g711_alaw_encode((int16_t)be16(in + 2 * i));
	return (int)(len / 2);
}

static const struct xcipher_codec_direct from_l16[] = {
	DIRECT("PCMU", l16_to_ulaw), DIRECT("PCMA", l16_to_alaw)};

/* --- G.722 ------------------------------------------------------------------------------------ */

static int g722_dec_init(void *dec, const void *params)
{
	(void)params;
	return g722_init(dec, 64000);
}

/* The encoder may leave the low bits to other data. Every decoder understands that. */
static int g722_enc_init(void *enc, const void *params, const struct xcipher_codec_wish *wish)
{
	(void)params;
	return g722_init(enc, wish && wish->bitrate ? wish->bitrate : 64000);
}

static int g722_do_decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	if (2 * len > cap)
		return -ENOSPC;
	g722_decode(dec, in, len, pcm);
	return (int)(2 * len);
}

static int g722_do_encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	if (samples % 2 != 0)
		return -EINVAL;
	if (samples > 2 * cap)
		return -ENOSPC;
	g722_encode(enc, pcm, samples / 2, out);
	return (int)(samples / 2);
}

/* --- G.722 as PCM of 8 kHz: for terminals whose other codec has no more ----------------------- */

static int g722_low_decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	if (len > cap)
		return -ENOSPC;
	g722_decode_low(dec, in, len, pcm);
	return (int)len;
}

static int g722_low_encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	if (samples > cap)
		return -ENOSPC;
	g722_encode_low(enc, pcm, samples, out);
	return (int)samples;
}

/* --- Tables ----------------------------------------------------------------------------------- */

#define COMMON                                                                                 \
	.size = sizeof(struct xcipher_codec), .flags = XCIPHER_CODEC_PLAIN_STATE, .ptime = 20, \
	.align = 1

static const struct xcipher_codec pcmu = {COMMON, .name = "PCMU", .clock = 8000, .rate = 8000,
	.channels = 1, .static_pt = 0, .frame_samples = 1, .decode = ulaw_decode,
	.encode = ulaw_encode, .direct = from_ulaw, .direct_n = ARRAY_LEN(from_ulaw)};
static const struct xcipher_codec pcma = {COMMON, .name = "PCMA", .clock = 8000, .rate = 8000,
	.channels = 1, .static_pt = 8, .frame_samples = 1, .decode = alaw_decode,
	.encode = alaw_encode, .direct = from_alaw, .direct_n = ARRAY_LEN(from_alaw)};
/* Its RTP clock is half its rate, by an error in the first profile (RFC 3551 4.5.2). */
#define G722(hz, frame, decoder, encoder, ...)                                            \
	{                                                                                 \
		.size = sizeof(struct xcipher_codec), .flags = XCIPHER_CODEC_PLAIN_STATE, \
		.name = "G722", .clock = 8000, .rate = hz, .channels = 1, .static_pt = 9, \
		.ptime = 20, .frame_samples = frame, .dec_size = sizeof(struct g722),     \
		.enc_size = sizeof(struct g722), .align = _Alignof(struct g722),          \
		.dec_init = g722_dec_init, .decode = decoder, .enc_init = g722_enc_init,  \
		.encode = encoder, __VA_ARGS__                                            \
	}

static const struct xcipher_codec g722 = G722(16000, 2, g722_do_decode, g722_do_encode, );
static const struct xcipher_codec g722_low = G722(8000, 1, g722_low_decode, g722_low_encode,
	.decode_batch = g722_batch_decode, .encode_batch = g722_batch_encode);

#define L16_MONO(hz, pt)                                                                          \
	{                                                                                         \
		COMMON, .name = "L16", .clock = hz, .rate = hz, .channels = 1, .static_pt = pt,   \
			.frame_samples = 1, .decode = l16_decode_mono, .encode = l16_encode_mono, \
			.direct = from_l16, .direct_n = (hz) == 8000 ? ARRAY_LEN(from_l16) : 0    \
	}
#define L16_STEREO(hz, pt)                                                                      \
	{                                                                                       \
		COMMON, .name = "L16", .clock = hz, .rate = hz, .channels = 2, .static_pt = pt, \
			.frame_samples = 1, .decode = l16_decode_stereo,                        \
			.encode = l16_encode_stereo                                             \
	}

static const struct xcipher_codec l16[] = {L16_MONO(8000, -1), L16_MONO(16000, -1),
	L16_MONO(32000, -1), L16_MONO(44100, 11), L16_MONO(48000, -1), L16_STEREO(44100, 10),
	L16_STEREO(48000, -1)};

static const struct xcipher_codec *const all[] = {&pcmu, &pcma, &g722, &g722_low, &l16[0], &l16[1],
	&l16[2], &l16[3], &l16[4], &l16[5], &l16[6]};

static const struct xcipher_codec_plugin plugin = {
	.abi = XCIPHER_CODEC_ABI,
	.size = sizeof(struct xcipher_codec_plugin),
	.name = "builtin",
	.version = XCIPHER_VERSION,
	.license = "GPL-2.0-or-later",
	.codec = all,
	.codecs = ARRAY_LEN(all),
};

const struct xcipher_codec_plugin *codec_builtin(void)
{
	return &plugin;
}
