/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "abuse_rig.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

int rig_fail(struct rig *r, const char *fmt, ...)
{
	va_list ap;

	if (!r->why[0]) { /* the first reason counts */
		va_start(ap, fmt);
		vsnprintf(r->why, CODEC_WHY_MAX, fmt, ap);
		va_end(ap);
	}
	return -EINVAL;
}

/* xorshift64*: a plug-in that fails can be tested again with the same seed. */
uint32_t rig_random(struct rig *r, uint32_t below)
{
	r->random ^= r->random >> 12;
	r->random ^= r->random << 25;
	r->random ^= r->random >> 27;
	return (uint32_t)((r->random * 0x2545f4914f6cdd1dULL >> 32) * below >> 32);
}

void rig_random_bytes(struct rig *r, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)rig_random(r, 256);
}

bool rig_result_valid(int result, size_t cap)
{
	static const int errors[] = {-EBADMSG, -ENOSPC, -EINVAL, -ENOMEM, -ENOENT, -ENOTSUP};

	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		if (result == errors[i])
			return true;
	return result >= 0 && (size_t)result <= cap;
}

static void *zeroed(struct guard *g, size_t len, size_t align)
{
	return memset(guard_tail(g, len, align), 0, len);
}

static int rig_init(struct rig *r, const struct xcipher_codec_wish *wish)
{
	const struct xcipher_codec *c = r->c;
	int rc = 0;

	r->params = zeroed(&r->params_at, c->params_size, c->align);
	r->dec = zeroed(&r->dec_at, c->dec_size, c->align);
	r->enc = zeroed(&r->enc_at, c->enc_size, c->align);
	if (c->fmtp_parse && (rc = c->fmtp_parse(r->params, "", 0)) != 0)
		return rig_fail(r, "fmtp_parse refuses an empty text: %d", rc);
	if (c->decode) {
		if (c->dec_init && (rc = c->dec_init(r->dec, r->params)) != 0)
			return rig_fail(r, "dec_init returns %d", rc);
		r->dec_open = true;
	}
	if (c->encode) {
		if (c->enc_init && (rc = c->enc_init(r->enc, r->params, wish)) != 0)
			return rig_fail(r, "enc_init returns %d", rc);
		r->enc_open = true;
	}
	return rig_intact(r);
}

int rig_open(struct rig *r, const struct xcipher_codec *c, const struct abuse_cfg *cfg,
	const struct xcipher_codec_wish *wish, char *why)
{
	static const struct xcipher_codec_wish none = {.size = sizeof(none)};
	size_t pcm = (size_t)XCIPHER_CODEC_MAX_PCM * 2 * sizeof(int16_t);

	*r = (struct rig){.c = c, .why = why, .random = 0x9e3779b97f4a7c15ULL ^ cfg->seed};
	why[0] = 0;
	r->packet = (size_t)c->ptime * c->rate / 1000;
	r->out_bytes = pcm > ABUSE_PAYLOAD ? pcm : ABUSE_PAYLOAD;
	r->pcm = calloc(2, pcm);
	r->payload = calloc(2, ABUSE_PAYLOAD);
	if (!r->pcm || !r->payload)
		return rig_fail(r, "no memory for the test");
	r->back = r->pcm + (size_t)XCIPHER_CODEC_MAX_PCM * 2;
	r->other = r->payload + ABUSE_PAYLOAD;
	if (guard_create(&r->params_at, c->params_size) || guard_create(&r->dec_at, c->dec_size) ||
		guard_create(&r->enc_at, c->enc_size) || guard_create(&r->in_at, r->out_bytes) ||
		guard_create(&r->out_at, r->out_bytes))
		return rig_fail(r, "no memory for the test");
	return rig_init(r, wish ? wish : &none);
}

void rig_close(struct rig *r)
{
	if (r->dec_open && r->c->dec_fini)
		r->c->dec_fini(r->dec);
	if (r->enc_open && r->c->enc_fini)
		r->c->enc_fini(r->enc);
	free(r->pcm);
	free(r->payload);
	guard_destroy(&r->params_at);
	guard_destroy(&r->dec_at);
	guard_destroy(&r->enc_at);
	guard_destroy(&r->in_at);
	guard_destroy(&r->out_at);
}

void rig_tone(const struct rig *r, int16_t *pcm, size_t samples, size_t at)
{
	for (size_t i = 0; i < samples; i++) {
		double t = 2 * M_PI * (double)(i + at) / r->c->rate;
		int16_t v = (int16_t)lrint(7000 * sin(440 * t) + 5000 * sin(1000 * t));

		for (uint32_t ch = 0; ch < r->c->channels; ch++)
			pcm[i * r->c->channels + ch] = v;
	}
}

int rig_intact(struct rig *r)
{
	const struct xcipher_codec *c = r->c;

	if (!guard_intact(&r->params_at, c->params_size, c->align))
		return rig_fail(r, "it writes outside of its parameters");
	if (!guard_intact(&r->dec_at, c->dec_size, c->align) ||
		!guard_intact(&r->enc_at, c->enc_size, c->align))
		return rig_fail(r, "it writes outside of its state");
	return 0;
}

int rig_decode(struct rig *r, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	size_t bytes = cap * r->c->channels * sizeof(*pcm);
	uint8_t *from = memcpy(guard_tail(&r->in_at, len, 1), in, len);
	int16_t *to = guard_tail(&r->out_at, bytes, sizeof(*pcm));
	int n = r->c->decode(r->dec, from, len, to, cap);

	if (!rig_result_valid(n, cap))
		rig_fail(
			r, "decode of %zu bytes with room for %zu samples returns %d", len, cap, n);
	if (memcmp(from, in, len) != 0)
		rig_fail(r, "decode changes its input");
	if (!guard_intact(&r->out_at, bytes, sizeof(*pcm)))
		rig_fail(r, "decode writes before its output");
	if (n > 0 && pcm)
		memcpy(pcm, to, (size_t)n * r->c->channels * sizeof(*pcm));
	return n;
}

int rig_encode(struct rig *r, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	size_t bytes = samples * r->c->channels * sizeof(*pcm);
	int16_t *from = memcpy(guard_tail(&r->in_at, bytes, sizeof(*pcm)), pcm, bytes);
	uint8_t *to = guard_tail(&r->out_at, cap, 1);
	int n = r->c->encode(r->enc, from, samples, to, cap);

	if (!rig_result_valid(n, cap))
		rig_fail(r, "encode of %zu samples with room for %zu bytes returns %d", samples,
			cap, n);
	if (memcmp(from, pcm, bytes) != 0)
		rig_fail(r, "encode changes its input");
	if (!guard_intact(&r->out_at, cap, 1))
		rig_fail(r, "encode writes before its output");
	if (n > 0 && out)
		memcpy(out, to, (size_t)n);
	return n;
}
