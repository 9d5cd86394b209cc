/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A resampler by speexdsp, at a quality for speech. It has no codecs. */
#include "xcipher_codec.h"

#include <errno.h>
#include <speex/speex_resampler.h>

enum { QUALITY = 5 };

struct state {
	SpeexResamplerState *speex;
	uint32_t channels, from, to;
};

static int init(void *state, uint32_t channels, uint32_t from_rate, uint32_t to_rate)
{
	struct state *s = state;
	int error = 0;

	if ((channels != 1 && channels != 2) || from_rate < 8000 || to_rate < 8000 ||
		from_rate > XCIPHER_CODEC_MAX_RATE || to_rate > XCIPHER_CODEC_MAX_RATE)
		return -EINVAL;
	*s = (struct state){.channels = channels, .from = from_rate, .to = to_rate};
	s->speex = speex_resampler_init(channels, from_rate, to_rate, QUALITY, &error);
	if (!s->speex)
		return -ENOMEM;
	speex_resampler_skip_zeros(s->speex);
	return 0;
}

static void fini(void *state)
{
	speex_resampler_destroy(((struct state *)state)->speex);
}

/* The library may write up to one sample more than the ratio says. */
static int run(void *state, const int16_t *in, size_t samples, int16_t *out, size_t cap)
{
	struct state *s = state;
	spx_uint32_t taken = (spx_uint32_t)samples, given = (spx_uint32_t)cap;

	if (samples > XCIPHER_CODEC_MAX_PCM)
		return -EINVAL;
	if (samples * s->to / s->from + 1 > cap)
		return -ENOSPC;
	if (speex_resampler_process_interleaved_int(s->speex, in, &taken, out, &given))
		return -EINVAL;
	return (int)given;
}

static const struct xcipher_resampler resampler = {
	.size = sizeof(struct xcipher_resampler),
	.state_size = sizeof(struct state),
	.align = _Alignof(struct state),
	.init = init,
	.fini = fini,
	.run = run,
};

static const struct xcipher_codec_plugin plugin = {
	.abi = XCIPHER_CODEC_ABI,
	.size = sizeof(struct xcipher_codec_plugin),
	.name = "speexdsp",
	.version = XCIPHER_VERSION,
	.license = "GPL-2.0-or-later",
	.resampler = &resampler,
};

XCIPHER_CODEC_EXPORT const struct xcipher_codec_plugin *xcipher_codec_plugin(void)
{
	return &plugin;
}
