/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The description of a codec without its functions: the same for codecs in this process and in
 * others. */
#ifndef CODEC_ABOUT_H
#define CODEC_ABOUT_H

#include "codec/check.h"

enum codec_can {
	CODEC_DECODES = 1,
	CODEC_ENCODES = 2,
	CODEC_CONCEALS = 4,
	CODEC_RECOVERS = 8,  /* FEC */
	CODEC_REQUESTS = 16, /* of modes */
	CODEC_ADAPTS = 32,
	CODEC_DTX = 64,
};

struct codec_about {
	char name[CODEC_NAME_MAX];
	uint32_t clock, rate, channels;
	int32_t static_pt;
	uint32_t ptime, frame_samples, can; /* can: CODEC_* */
};

/* c has passed codec_check_plugin(). */
void codec_about_fill(struct codec_about *a, const struct xcipher_codec *c);
/* For descriptions that another process sent: 0, or -EINVAL. Terminates the name. */
int codec_about_check(struct codec_about *a);

#endif
