/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests with hostile input, and the table of all tests. */
#include "abuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/abuse_rig.h"

const struct abuse_test abuse_tests[] = {
#define ABUSE_ROW(name, text) {#name, text, abuse_##name},
	ABUSE_TESTS(ABUSE_ROW)
#undef ABUSE_ROW
};
const size_t abuse_tests_n = ARRAY_LEN(abuse_tests);

/* --- fmtp ------------------------------------------------------------------------------------- */

static int one_fmtp(struct rig *r, const char *text, size_t len)
{
	const struct xcipher_codec *c = r->c;
	char *from = memcpy(guard_tail(&r->in_at, len, 1), text, len);
	int rc = 0;

	memset(r->params, 0, c->params_size);
	rc = c->fmtp_parse(r->params, from, len);
	if (rc != 0 && rc != -EINVAL)
		return rig_fail(r, "fmtp_parse returns %d", rc);
	if (rc == 0 && c->fmtp_write) {
		for (size_t cap = 0; cap <= 256; cap = cap ? cap * 2 : 1) {
			char *out = guard_tail(&r->out_at, cap, 1);
			int n = c->fmtp_write(r->params, out, cap);

			if (n != -ENOSPC && (n < 0 || (size_t)n > cap))
				return rig_fail(
					r, "fmtp_write with room for %zu returns %d", cap, n);
			if (!guard_intact(&r->out_at, cap, 1))
				return rig_fail(r, "fmtp_write writes before its output");
			if (n > 0 && c->fmtp_parse(r->params, out, (size_t)n) != 0)
				return rig_fail(r, "fmtp_parse refuses what fmtp_write wrote");
		}
	}
	return rig_intact(r);
}

static int random_fmtp(struct rig *r)
{
	static const char *const words[] = {"mode", "octet-align", "useinbandfec", "usedtx",
		"maxptime", "annexb", "mode-set", "=", ";", ",", " ", "0", "1", "-1", "99999999999",
		"yes", "no", "any", "cbr", "vbr", "crc", "stereo", "ptime", "maxplaybackrate",
		"\xff", "\t"};
	char text[512];
	size_t n = 0;

	for (uint32_t i = rig_random(r, 40); i > 0; i--) {
		const char *word = words[rig_random(r, ARRAY_LEN(words))];
		size_t len = strlen(word);

		if (n + len > sizeof(text))
			break;
		memcpy(text + n, word, len);
		n += len;
	}
	for (uint32_t i = rig_random(r, 3); i > 0 && n > 0; i--)
		text[rig_random(r, (uint32_t)n)] = (char)rig_random(r, 256);
	return one_fmtp(r, text, n);
}

int abuse_fmtp(const struct xcipher_codec *c, const struct abuse_cfg *cfg, char *why)
{
	static const char *const fixed[] = {"", ";", "=", "unknown=1", "a=b;c=d", ";;;;", "  ",
		"=;=", "mode", "mode=", "x=99999999999999999999", "%s%n",
		"mode-set=0,1,2,3,4,5,6,7,8,9,10"};
	struct rig r;
	int rc = rig_open(&r, c, cfg, NULL, why);

	if (c->fmtp_parse) {
		for (size_t i = 0; rc == 0 && i < ARRAY_LEN(fixed); i++)
			rc = one_fmtp(&r, fixed[i], strlen(fixed[i]));
		for (uint32_t i = 0; rc == 0 && i < cfg->rounds * 10; i++)
			rc = random_fmtp(&r);
		memset(r.params, 0, c->params_size);
		if (rc == 0 && c->fmtp_parse(r.params, "x-nobody-knows=1", 16) != 0)
			rc = rig_fail(&r, "fmtp_parse refuses a parameter that it does not know");
	}
	rig_close(&r);
	return rc;
}

/* --- Payloads --------------------------------------------------------------------------------- */

/* A valid r.payload, of which some bytes are then changed, so that decoders get far. */
static size_t some_payload(struct rig *r, uint8_t *p, int16_t *pcm)
{
	static const size_t lengths[] = {
		1, 2, 3, 5, 6, 10, 20, 31, 32, 33, 38, 61, 62, 80, 160, 320, 1000, 1399, 1400};
	size_t len = lengths[rig_random(r, ARRAY_LEN(lengths))];
	int n = 0;

	rig_random_bytes(r, p, len);
	if (r->c->encode && rig_random(r, 2)) {
		rig_tone(r, pcm, r->packet, rig_random(r, 100000));
		n = rig_encode(r, pcm, r->packet, p, ABUSE_PAYLOAD);
		if (n > 0) {
			for (uint32_t i = rig_random(r, 6); i > 0; i--)
				p[rig_random(r, (uint32_t)n)] = (uint8_t)rig_random(r, 256);
			len = rig_random(r, 4) ? (size_t)n : 1 + rig_random(r, (uint32_t)n);
		}
	}
	return len;
}

int abuse_decode(const struct xcipher_codec *c, const struct abuse_cfg *cfg, char *why)
{
	static const size_t caps[] = {XCIPHER_CODEC_MAX_PCM, XCIPHER_CODEC_MAX_PCM, 160, 1, 0};
	struct rig r;
	int rc = rig_open(&r, c, cfg, NULL, why);

	if (!c->decode) {
		rig_close(&r);
		return rc;
	}
	for (uint32_t i = 0; rc == 0 && i < cfg->rounds; i++) {
		size_t len = some_payload(&r, r.payload, r.pcm);
		size_t cap = caps[rig_random(&r, ARRAY_LEN(caps))];

		rig_decode(&r, r.payload, len, r.pcm, cap);
		if (c->requested && !rig_result_valid(c->requested(r.dec), 255))
			rig_fail(&r, "requested returns %d", c->requested(r.dec));
		rc = rig_intact(&r);
		if (why[0])
			rc = -EINVAL;
	}
	rig_close(&r);
	return rc;
}

int abuse_encode(const struct xcipher_codec *c, const struct abuse_cfg *cfg, char *why)
{
	struct rig r;
	int rc = rig_open(&r, c, cfg, NULL, why), n = 0;
	size_t max = (size_t)c->rate * 120 / 1000;

	for (uint32_t i = 0; c->encode && rc == 0 && i < cfg->rounds; i++) {
		size_t samples = rig_random(&r, 2) ? r.packet : rig_random(&r, (uint32_t)max + 1);
		size_t cap = rig_random(&r, 2) ? ABUSE_PAYLOAD : rig_random(&r, 64);

		if (rig_random(&r, 2))
			rig_tone(&r, r.pcm, samples, i * 160);
		else
			rig_random_bytes(
				&r, (uint8_t *)r.pcm, samples * c->channels * sizeof(*r.pcm));
		n = rig_encode(&r, r.pcm, samples, NULL, cap);
		if (samples % c->frame_samples != 0 && n != -EINVAL && n != -ENOSPC)
			rig_fail(&r, "encode of %zu samples, no whole frames, returns %d", samples,
				n);
		rc = rig_intact(&r);
		if (why[0])
			rc = -EINVAL;
	}
	/* Errors must not have broken it. */
	rig_tone(&r, r.pcm, r.packet, 0);
	if (c->encode && rc == 0 && (n = rig_encode(&r, r.pcm, r.packet, NULL, ABUSE_PAYLOAD)) <= 0)
		rc = rig_fail(&r, "encode returns %d after errors", n);
	rig_close(&r);
	return rc;
}

int abuse_direct(const struct xcipher_codec *c, const struct abuse_cfg *cfg, char *why)
{
	static const size_t caps[] = {0, 1, 160, ABUSE_PAYLOAD};
	struct rig r;
	int rc = rig_open(&r, c, cfg, NULL, why);

	for (uint32_t i = 0; rc == 0 && i < c->direct_n * cfg->rounds; i++) {
		const struct xcipher_codec_direct *d = &c->direct[i % c->direct_n];
		size_t len = rig_random(&r, 1400) + 1, cap = caps[rig_random(&r, ARRAY_LEN(caps))];
		uint8_t *in = guard_tail(&r.in_at, len, 1), *out = guard_tail(&r.out_at, cap, 1);
		int n = 0;

		if (d->state_size) /* none has one so far */
			break;
		rig_random_bytes(&r, in, len);
		n = d->convert(NULL, in, len, out, cap);
		if (!rig_result_valid(n, cap) || !guard_intact(&r.out_at, cap, 1))
			rc = rig_fail(&r, "conversion to %s returns %d", d->to, n);
	}
	rig_close(&r);
	return rc;
}

/* --- All -------------------------------------------------------------------------------------- */

int abuse_plugin(const struct xcipher_codec_plugin *p, const struct abuse_cfg *cfg, char *why)
{
	char detail[CODEC_WHY_MAX];
	int rc = codec_check_plugin(p, why);

	for (uint32_t i = 0; rc == 0 && i < p->codecs; i++)
		for (size_t t = 0; rc == 0 && t < abuse_tests_n; t++) {
			rc = abuse_tests[t].run(p->codec[i], cfg, detail);
			if (rc)
				snprintf(why, CODEC_WHY_MAX, "%.31s: test %s: %.90s",
					p->codec[i]->name, abuse_tests[t].name, detail);
		}
	if (rc == 0 && p->resampler)
		rc = abuse_resampler(p->resampler, why);
	return rc;
}
