/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "audio/rate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void audio_rate_fini(struct audio_rate *r)
{
	if (r->state && r->how->fini)
		r->how->fini(r->state);
	free(r->state);
	*r = (struct audio_rate){0};
}

int audio_rate_set(
	struct audio_rate *r, const struct codec_registry *codecs, uint32_t from, uint32_t to)
{
	const struct xcipher_resampler *how;
	size_t align;
	int err;

	if (from == to || (r->from == from && r->to == to))
		return 0;
	audio_rate_fini(r);
	how = codec_registry_resampler(codecs, from, to);
	if (!how)
		return -ENOTSUP;
	align = how->align < sizeof(void *) ? sizeof(void *) : how->align;
	if (posix_memalign(&r->state, align, how->state_size ? how->state_size : 1)) {
		r->state = NULL;
		return -ENOMEM;
	}
	memset(r->state, 0, how->state_size);
	err = how->init ? how->init(r->state, 1, from, to) : 0;
	if (err) {
		free(r->state);
		r->state = NULL;
		return err;
	}
	r->how = how;
	r->from = from;
	r->to = to;
	return 0;
}

int audio_rate_run(struct audio_rate *r, const int16_t *in, uint32_t n, int16_t *out, uint32_t cap)
{
	int got = r->how->run(r->state, in, n, out, cap);

	return got > (int)cap ? -EIO : got;
}
