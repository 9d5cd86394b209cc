/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "about.h"

#include <errno.h>
#include <stdio.h>

void codec_about_fill(struct codec_about *a, const struct xcipher_codec *c)
{
	*a = (struct codec_about){.clock = c->clock,
		.rate = c->rate,
		.channels = c->channels,
		.static_pt = c->static_pt,
		.ptime = c->ptime,
		.frame_samples = c->frame_samples,
		.can = (c->decode ? CODEC_DECODES : 0) | (c->encode ? CODEC_ENCODES : 0) |
			(c->conceal ? CODEC_CONCEALS : 0) | (c->recover ? CODEC_RECOVERS : 0) |
			(c->requested ? CODEC_REQUESTS : 0) | (c->adapt ? CODEC_ADAPTS : 0) |
			(c->flags & XCIPHER_CODEC_HAS_DTX ? CODEC_DTX : 0)};
	snprintf(a->name, sizeof(a->name), "%s", c->name);
}

int codec_about_check(struct codec_about *a)
{
	a->name[sizeof(a->name) - 1] = 0;
	if (!codec_name_valid(a->name) || (a->channels != 1 && a->channels != 2) ||
		a->rate < 8000 || a->rate > XCIPHER_CODEC_MAX_RATE || a->clock == 0 ||
		a->clock > 192000 || a->static_pt < -1 || a->static_pt > 34 || a->ptime == 0 ||
		a->ptime > 120 || a->frame_samples == 0 ||
		a->frame_samples > XCIPHER_CODEC_MAX_PCM ||
		!(a->can & (CODEC_DECODES | CODEC_ENCODES)))
		return -EINVAL;
	return 0;
}
