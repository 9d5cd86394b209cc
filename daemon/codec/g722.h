/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.722 at 64, 56 and 48 kbit/s: 16 kHz PCM, one byte for two samples. Bit-exact (ITU-T G.722).
 * States hold no pointers: they may be copied. Pure. */
#ifndef CODEC_G722_H
#define CODEC_G722_H

#include <stddef.h>
#include <stdint.h>

/* One of the two sub-bands: the adaptive predictor and the adaptive step. */
struct g722_band {
	int32_t predicted;      /* of the next sample: poles and zeros together */
	int32_t zeros;          /* the part of the zeros */
	int32_t rebuilt[2];     /* the last two samples, newest first */
	int32_t partial[2];     /* the last two without the part of the poles */
	int32_t pole[2];        /* coefficients */
	int16_t zero[8];        /* coefficients: six, two are not used */
	int16_t difference[8];  /* the last six quantized differences, newest first, and two 0 */
	int32_t log_step, step; /* of the quantizer */
};

struct g722 {
	struct g722_band low, high;
	int16_t even[11], odd[11]; /* last inputs of the filter that splits or joins the bands */
	uint32_t spare;            /* low bits of a byte that are not audio: 0, 1 or 2 */
};

/* rate: 64000, 56000 or 48000. Bytes of the lower rates leave the lowest bit or two bits to other
 * data, which the encoder writes as zero and the decoder ignores. 0 or -EINVAL. */
int g722_init(struct g722 *g, uint32_t rate);
/* Writes 2 * n samples for n bytes. */
void g722_decode(struct g722 *g, const uint8_t *in, size_t n, int16_t *pcm);
/* Writes n bytes for 2 * n samples. */
void g722_encode(struct g722 *g, const int16_t *pcm, size_t n, uint8_t *out);
/* 8 kHz: the lower band alone, without the filters between the bands. Writes n samples for n
 * bytes. */
void g722_decode_low(struct g722 *g, const uint8_t *in, size_t n, int16_t *pcm);
/* Writes n bytes for n samples at 8 kHz. The upper band is silent. */
void g722_encode_low(struct g722 *g, const int16_t *pcm, size_t n, uint8_t *out);

#endif
