/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Other implementations of codecs, for comparison: spandsp and libavcodec, loaded at run time. All
 * functions return -ENOENT if the library is not installed. */
#ifndef CODEC_PEERS_H
#define CODEC_PEERS_H

#include <stddef.h>
#include <stdint.h>

/* A deterministic random number. */
uint32_t codec_hash(uint32_t i);
/* Signal-to-noise ratio in dB of got, at the best of shifts 0 to max_shift after want, and with
 * the best gain. */
double codec_snr(const int16_t *want, const int16_t *got, size_t n, size_t max_shift);

int peer_spandsp_g711_encode(int ulaw, const int16_t *pcm, size_t n, uint8_t *out);
int peer_spandsp_g711_decode(int ulaw, const uint8_t *in, size_t n, int16_t *pcm);
int peer_spandsp_g722_encode(uint32_t rate, const int16_t *pcm, size_t samples, uint8_t *out);
int peer_spandsp_g722_decode(uint32_t rate, const uint8_t *in, size_t bytes, int16_t *pcm);
/* 8 kHz: the lower band alone. */
int peer_spandsp_g722_encode_low(uint32_t rate, const int16_t *pcm, size_t samples, uint8_t *out);
int peer_spandsp_g722_decode_low(uint32_t rate, const uint8_t *in, size_t bytes, int16_t *pcm);
int peer_av_g722_encode(const int16_t *pcm, size_t samples, uint8_t *out);
int peer_av_g722_decode(uint32_t rate, const uint8_t *in, size_t bytes, int16_t *pcm);

/* A decoder of libavcodec, by its name. */
struct peer_av;
struct peer_av_cfg {
	const char *name;
	int rate, channels;
	int bits; /* bits per coded sample, 0: unknown */
	const char *option, *value;
	const uint8_t *extra; /* what a container would hold */
	size_t extra_len;
};
int peer_av_open(struct peer_av **out, const struct peer_av_cfg *cfg);
/* Decodes a packet. Returns samples, which are interleaved; or -errno. */
int peer_av_decode(struct peer_av *p, const uint8_t *in, size_t len, int16_t *pcm, size_t cap);
void peer_av_close(struct peer_av *p);

#endif
