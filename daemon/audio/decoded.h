/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What xcipher-av writes to its standard output (daemon/av/main.c), in host order: a head, then
 * blocks. The host believes no value (audio/decoder.c). */
#ifndef AUDIO_DECODED_H
#define AUDIO_DECODED_H

#include <stdint.h>

enum {
	DECODED_MIN_RATE = 8000, /* Hz, of a clip */
	DECODED_MAX_RATE = 48000,
	DECODED_BLOCK = 8192, /* most samples of a block */
};

struct decoded_head {
	uint32_t rate; /* Hz, DECODED_MIN_RATE to DECODED_MAX_RATE */
};

/* n > 0: so many mono samples (int16_t) follow. 0: the end. n < 0: the end, by an error: -EBADMSG,
 * -ENOTSUP, -EFBIG or -ENOMEM. It may come in place of the first samples; the head is always
 * there. */
struct decoded_block {
	int32_t n;
};

#endif
