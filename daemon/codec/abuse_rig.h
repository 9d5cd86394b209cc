/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helpers for the tests of abuse.h: guarded states and buffers of one codec, random numbers. */
#ifndef CODEC_ABUSE_RIG_H
#define CODEC_ABUSE_RIG_H

#include "codec/abuse.h"
#include "codec/guard.h"

enum { ABUSE_PAYLOAD = 8192 }; /* bytes: room for 120 ms of most codecs */

struct rig {
	const struct xcipher_codec *c;
	char *why;
	uint64_t random;
	struct guard params_at, dec_at, enc_at, in_at, out_at;
	void *params, *dec, *enc; /* params: the defaults */
	bool dec_open, enc_open;
	int16_t *pcm, *back;      /* room for XCIPHER_CODEC_MAX_PCM samples of two channels */
	uint8_t *payload, *other; /* room for ABUSE_PAYLOAD bytes */
	size_t packet;            /* samples of the default packet time */
	size_t out_bytes;         /* room of out_at */
};

/* Opens what the codec has, with default parameters. wish may be NULL. 0 or -EINVAL. */
int rig_open(struct rig *r, const struct xcipher_codec *c, const struct abuse_cfg *cfg,
	const struct xcipher_codec_wish *wish, char *why);
void rig_close(struct rig *r);
/* Writes the reason. Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int rig_fail(struct rig *r, const char *fmt, ...);
uint32_t rig_random(struct rig *r, uint32_t below);
void rig_random_bytes(struct rig *r, uint8_t *p, size_t n);
/* Whether a function may return this: an allowed error, or at most cap. */
bool rig_result_valid(int result, size_t cap);
/* Fills samples of all channels with a loud mixture of two tones. at: samples before. */
void rig_tone(const struct rig *r, int16_t *pcm, size_t samples, size_t at);
/* States and parameters were written only where they are. 0 or -EINVAL. */
int rig_intact(struct rig *r);
/* Calls the codec with guarded copies: payload and samples, both of which end at a guard page.
 * The result, or -EINVAL with a reason if a rule was broken (*broken). */
int rig_decode(struct rig *r, const uint8_t *in, size_t len, int16_t *pcm, size_t cap);
int rig_encode(struct rig *r, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap);

#endif
