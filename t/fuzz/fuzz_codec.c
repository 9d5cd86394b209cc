/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All codecs, built in and of the plug-ins that could be built: an fmtp, then payloads, gaps and
 * samples in any order. Buffers end at guard pages, since libraries have no sanitizer.
 *
 * Input: the codec, a length and the fmtp. Then steps: what to do, a length, bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/builtin.h"
#include "codec/check.h"
#include "codec/gap.h"
#include "codec/guard.h"
#include "codec/noise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* codecs/codecs.mk passes FUZZ_PLUGINS: a row for each plug-in, X(name). */
/* clang-format off */
#define X(name) const struct xcipher_codec_plugin *xcipher_codec_plugin_##name(void);
FUZZ_PLUGINS
#undef X
/* clang-format on */

enum { STEPS = 24, BYTES = 2 * 2 * XCIPHER_CODEC_MAX_PCM };

struct input {
	const uint8_t *at, *end;
};

struct rig {
	const struct xcipher_codec *c;
	struct guard params_at, dec_at, enc_at, in_at, out_at;
	void *params, *dec, *enc;
};

static const struct xcipher_codec *codec_of(unsigned n)
{
	const struct xcipher_codec_plugin *all[] = {codec_builtin(),
#define X(name) xcipher_codec_plugin_##name(),
		FUZZ_PLUGINS
#undef X
	};
	unsigned total = 0;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		total += all[i]->codecs;
	n %= total;
	for (size_t i = 0; i < ARRAY_LEN(all); n -= all[i++]->codecs)
		if (n < all[i]->codecs)
			return all[i]->codec[n];
	return NULL;
}

static unsigned byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static struct str bytes(struct input *in, size_t n)
{
	size_t left = (size_t)(in->end - in->at);
	struct str s = {(const char *)in->at, n < left ? n : left};

	in->at += s.len;
	return s;
}

static void check(int n, size_t cap, const struct guard *g, size_t len, size_t align)
{
	if ((n >= 0 && (size_t)n > cap) || !guard_intact(g, len, align))
		abort();
}

static void to_pcm(struct rig *r, unsigned what, struct str s)
{
	size_t frame = r->c->channels * 2;
	size_t cap = what & 64 ? XCIPHER_CODEC_MAX_PCM : what & 128 ? 160 : 1;
	uint8_t *in = memcpy(guard_tail(&r->in_at, s.len, 1), s.s, s.len);
	int16_t *out = guard_tail(&r->out_at, cap * frame, 2);

	if (what % 4 == 1 && r->c->recover)
		check(r->c->recover(r->dec, in, s.len, out, cap), cap, &r->out_at, cap * frame, 2);
	else if (what % 4 == 2 && r->c->conceal)
		check(r->c->conceal(r->dec, what & 4 ? XCIPHER_CODEC_SILENT : XCIPHER_CODEC_LOST,
			      s.len * 8, out, cap),
			cap, &r->out_at, cap * frame, 2);
	else
		check(r->c->decode(r->dec, in, s.len, out, cap), cap, &r->out_at, cap * frame, 2);
}

static void encode(struct rig *r, unsigned what, struct str s)
{
	size_t frame = r->c->channels * 2, n = s.len / frame, cap = what & 64 ? 4096 : 32;
	int16_t *in = NULL;
	uint8_t *out = NULL;

	if (what & 128 &&
		r->c->ptime * r->c->rate / 1000 > n) /* a whole packet, of repeated bytes */
		n = r->c->ptime * r->c->rate / 1000;
	in = guard_tail(&r->in_at, n * frame, 2);
	for (size_t i = 0; i < n * frame; i++)
		((uint8_t *)in)[i] = s.len ? (uint8_t)s.s[i % s.len] : 0;
	out = guard_tail(&r->out_at, cap, 1);
	check(r->c->encode(r->enc, in, n, out, cap), cap, &r->out_at, cap, 1);
}

static void *zeroed(struct guard *g, size_t len, size_t align)
{
	if (guard_create(g, len))
		abort();
	return memset(guard_tail(g, len, align), 0, len);
}

static void run(struct rig *r, struct input *in)
{
	const struct xcipher_codec *c = r->c;
	struct xcipher_codec_wish wish = {.size = sizeof(wish), .dtx = byte(in) & 1, .fec = 1};
	struct str fmtp = bytes(in, byte(in));
	bool dec = false, enc = false;
	char *text = NULL;

	text = memcpy(guard_tail(&r->in_at, fmtp.len, 1), fmtp.s, fmtp.len);
	if (c->fmtp_parse && c->fmtp_parse(r->params, text, fmtp.len))
		return;
	if (c->fmtp_write) {
		void *out = guard_tail(&r->out_at, 128, 1);

		check(c->fmtp_write(r->params, out, 128), 128, &r->out_at, 128, 1);
	}
	dec = c->decode && (!c->dec_init || c->dec_init(r->dec, r->params) == 0);
	enc = c->encode && (!c->enc_init || c->enc_init(r->enc, r->params, &wish) == 0);
	for (int i = 0; i < STEPS && in->at < in->end; i++) {
		unsigned what = byte(in);
		struct str s = bytes(in, byte(in) * (what & 32 ? 6 : 1));

		if (what % 4 != 3 && dec)
			to_pcm(r, what, s);
		else if (enc)
			encode(r, what, s);
	}
	if (!guard_intact(&r->dec_at, c->dec_size, c->align) ||
		!guard_intact(&r->enc_at, c->enc_size, c->align) ||
		!guard_intact(&r->params_at, c->params_size, c->align))
		abort();
	if (dec && c->dec_fini)
		c->dec_fini(r->dec);
	if (enc && c->enc_fini)
		c->enc_fini(r->enc);
}

/* Comfort noise and gaps, which the host makes itself. */
static void helpers(struct str s)
{
	int16_t pcm[320];
	struct noise n = {0};
	struct gap g;

	if (noise_take(&n, (const uint8_t *)s.s, s.len) == 0)
		noise_make(&n, pcm, 320);
	gap_init(&g, 8000 * (1 + s.len % 6), 1 + s.len % 2);
	for (size_t i = 0; i < s.len && i < 8; i++) {
		size_t samples = (uint8_t)s.s[i] % 160;

		if (s.s[i] & 1)
			gap_fill(&g, pcm, samples);
		else
			gap_heard(&g, pcm, samples);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, data + len};
	struct rig r = {.c = codec_of(byte(&in))};

	if (guard_create(&r.in_at, BYTES) || guard_create(&r.out_at, BYTES))
		abort();
	r.params = zeroed(&r.params_at, r.c->params_size, r.c->align);
	r.dec = zeroed(&r.dec_at, r.c->dec_size, r.c->align);
	r.enc = zeroed(&r.enc_at, r.c->enc_size, r.c->align);
	run(&r, &in);
	helpers((struct str){(const char *)data, len});
	guard_destroy(&r.params_at);
	guard_destroy(&r.dec_at);
	guard_destroy(&r.enc_at);
	guard_destroy(&r.in_at);
	guard_destroy(&r.out_at);
	return 0;
}
