/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of what a codec keeps from call to call: length, independence, gaps, silence, memory. */
#include "abuse.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/abuse_rig.h"

enum {
	PACKETS = 50,           /* of a tone */
	LEAK_ROUNDS = 100,      /* states opened and closed */
	LEAK_ALLOWED = 64 << 10 /* bytes that a library may keep for good */
};

static uint64_t energy(const int16_t *p, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (uint64_t)(p[i] * p[i]);
	return sum;
}

int abuse_round_trip(const struct xcipher_codec *c, const struct abuse_cfg *cfg, char *why)
{
	uint64_t heard = 0, said = 0;
	struct rig r;
	int rc = rig_open(&r, c, cfg, NULL, why), n = 0;

	for (size_t i = 0; c->encode && c->decode && rc == 0 && i < PACKETS; i++) {
		rig_tone(&r, r.pcm, r.packet, i * r.packet);
		n = rig_encode(&r, r.pcm, r.packet, r.payload, ABUSE_PAYLOAD);
		if (n <= 0) {
			rc = rig_fail(&r, "encode of a tone returns %d", n);
			break;
		}
		n = rig_decode(&r, r.payload, (size_t)n, r.back, XCIPHER_CODEC_MAX_PCM);
		if (n < 0 || (size_t)n != r.packet)
			rc = rig_fail(&r, "%zu samples return as %d", r.packet, n);
		else if (i > PACKETS / 2) {
			said += energy(r.pcm, r.packet * c->channels);
			heard += energy(r.back, r.packet * c->channels);
		}
	}
	if (rc == 0 && c->encode && c->decode && (heard < said / 16 || heard > said * 16))
		rc = rig_fail(
			&r, "a tone returns with %.3f of its energy", (double)heard / (double)said);
	rig_close(&r);
	return why[0] ? -EINVAL : rc;
}

/* One rig runs alone, the second in turns with a third that gets noise. */
int abuse_independence(const struct xcipher_codec *c, const struct abuse_cfg *cfg, char *why)
{
	struct rig alone, first = {0}, second = {0};
	char ignored[2][CODEC_WHY_MAX];
	int rc = rig_open(&alone, c, cfg, NULL, why), n = 0, m = 0;

	if (rig_open(&first, c, cfg, NULL, ignored[0]) ||
		rig_open(&second, c, cfg, NULL, ignored[1]))
		rc = rig_fail(&alone, "a second state cannot be opened");
	for (size_t i = 0; c->encode && rc == 0 && i < PACKETS / 2; i++) {
		rig_tone(&alone, alone.pcm, alone.packet, i * alone.packet);
		n = rig_encode(&alone, alone.pcm, alone.packet, alone.payload, ABUSE_PAYLOAD);
		rig_random_bytes(&second, (uint8_t *)second.pcm,
			second.packet * c->channels * sizeof(*second.pcm));
		m = rig_encode(&second, second.pcm, second.packet, alone.other, ABUSE_PAYLOAD);
		if (m > 0 && c->decode)
			rig_decode(
				&second, alone.other, (size_t)m, second.pcm, XCIPHER_CODEC_MAX_PCM);
		m = rig_encode(&first, alone.pcm, first.packet, alone.other, ABUSE_PAYLOAD);
		if (n != m || (n > 0 && memcmp(alone.payload, alone.other, (size_t)n) != 0))
			rc = rig_fail(&alone, "an encoder depends on another encoder");
		if (n <= 0 || !c->decode || rc)
			continue;
		n = rig_decode(&alone, alone.payload, (size_t)n, alone.back, XCIPHER_CODEC_MAX_PCM);
		m = rig_decode(&first, alone.other, (size_t)m, first.back, XCIPHER_CODEC_MAX_PCM);
		if (n != m ||
			(n > 0 && memcmp(alone.back, first.back, (size_t)n * c->channels * 2) != 0))
			rc = rig_fail(&alone, "a decoder depends on another decoder");
	}
	rig_close(&alone);
	rig_close(&first);
	rig_close(&second);
	return rc;
}

static int one_gap(struct rig *r, enum xcipher_codec_gap why, size_t samples, size_t cap)
{
	size_t bytes = cap * r->c->channels * sizeof(int16_t);
	int16_t *out = guard_tail(&r->out_at, bytes, sizeof(*out));
	int n = r->c->conceal(r->dec, why, samples, out, cap);

	if (!guard_intact(&r->out_at, bytes, sizeof(*out)))
		return rig_fail(r, "conceal writes before its output");
	if (cap < samples ? n != -ENOSPC : n < 0 || (size_t)n != samples)
		return rig_fail(
			r, "conceal of %zu samples with room for %zu returns %d", samples, cap, n);
	return rig_intact(r);
}

static int recover(struct rig *r, const uint8_t *in, size_t len)
{
	size_t bytes = XCIPHER_CODEC_MAX_PCM * r->c->channels * sizeof(int16_t);
	uint8_t *from = memcpy(guard_tail(&r->in_at, len, 1), in, len);
	int16_t *out = guard_tail(&r->out_at, bytes, sizeof(*out));
	int n = r->c->recover(r->dec, from, len, out, XCIPHER_CODEC_MAX_PCM);

	if (!rig_result_valid(n, XCIPHER_CODEC_MAX_PCM) ||
		!guard_intact(&r->out_at, bytes, sizeof(*out)))
		return rig_fail(r, "recover returns %d", n);
	return rig_intact(r);
}

int abuse_conceal(const struct xcipher_codec *c, const struct abuse_cfg *cfg, char *why)
{
	struct rig r;
	int rc = rig_open(&r, c, cfg, NULL, why), n = 0;

	for (uint32_t i = 0; c->conceal && rc == 0 && i < 2 * PACKETS; i++) {
		enum xcipher_codec_gap gap = i % 2 ? XCIPHER_CODEC_SILENT : XCIPHER_CODEC_LOST;

		rc = one_gap(
			&r, gap, r.packet, XCIPHER_CODEC_MAX_PCM); /* the first before any packet */
		if (rc == 0 && i % 10 == 0)
			rc = one_gap(&r, gap, r.packet, r.packet - 1);
		if (rc || !c->encode || i % 7 > 3)
			continue;
		rig_tone(&r, r.pcm, r.packet, i * r.packet);
		n = rig_encode(&r, r.pcm, r.packet, r.payload, ABUSE_PAYLOAD);
		if (n <= 0)
			continue;
		rig_decode(&r, r.payload, (size_t)n, r.back, XCIPHER_CODEC_MAX_PCM);
		if (c->recover)
			rc = recover(&r, r.payload, (size_t)n);
	}
	for (uint32_t i = 0; c->recover && rc == 0 && i < cfg->rounds; i++) {
		size_t len = 1 + rig_random(&r, 200);

		rig_random_bytes(&r, r.payload, len);
		rc = recover(&r, r.payload, len);
	}
	rig_close(&r);
	return why[0] ? -EINVAL : rc;
}

/* Bytes for a second of tone and two of silence. */
static int second_of_silence(const struct xcipher_codec *c, const struct abuse_cfg *cfg,
	uint8_t dtx, size_t *bytes, char *why)
{
	struct xcipher_codec_wish wish = {.size = sizeof(wish), .dtx = dtx};
	struct rig r;
	int rc = rig_open(&r, c, cfg, &wish, why), n = 0;

	*bytes = 0;
	for (size_t i = 0; rc == 0 && i < 3 * PACKETS; i++) {
		memset(r.pcm, 0, r.packet * c->channels * sizeof(*r.pcm));
		if (i < PACKETS)
			rig_tone(&r, r.pcm, r.packet, i * r.packet);
		n = rig_encode(&r, r.pcm, r.packet, r.payload, ABUSE_PAYLOAD);
		if (n < 0 || (n == 0 && !dtx)) {
			rc = rig_fail(&r, "encode of silence returns %d", n);
			break;
		}
		if (i >= PACKETS)
			*bytes += (size_t)n;
		if (n > 0 && c->decode)
			n = rig_decode(&r, r.payload, (size_t)n, r.back, XCIPHER_CODEC_MAX_PCM);
		else if (n == 0 && c->conceal)
			rc = one_gap(&r, XCIPHER_CODEC_SILENT, r.packet, XCIPHER_CODEC_MAX_PCM);
		if (n < 0)
			rc = rig_fail(&r, "a packet of silence cannot be decoded: %d", n);
	}
	rig_close(&r);
	return why[0] ? -EINVAL : rc;
}

int abuse_dtx(const struct xcipher_codec *c, const struct abuse_cfg *cfg, char *why)
{
	size_t without = 0, with = 0;
	int rc = 0;

	why[0] = 0;
	if (!c->encode || !(c->flags & XCIPHER_CODEC_HAS_DTX))
		return 0;
	rc = second_of_silence(c, cfg, 0, &without, why);
	if (rc == 0)
		rc = second_of_silence(c, cfg, 1, &with, why);
	if (rc == 0 && with * 2 > without) {
		snprintf(why, CODEC_WHY_MAX, "silence takes %zu bytes with DTX, %zu without", with,
			without);
		rc = -EINVAL;
	}
	return rc;
}

int abuse_batch(const struct xcipher_codec *c, const struct abuse_cfg *cfg, char *why)
{
	struct rig single, batch = {0};
	char ignored[CODEC_WHY_MAX];
	int rc = rig_open(&single, c, cfg, NULL, why), n = 0;

	if (rig_open(&batch, c, cfg, NULL, ignored))
		rc = rig_fail(&single, "a second state cannot be opened");
	for (size_t i = 0; rc == 0 && c->encode && i < PACKETS; i++) {
		struct xcipher_codec_job job = {.state = batch.enc,
			.in = (uint8_t *)single.pcm,
			.in_len = batch.packet,
			.out = single.other,
			.out_cap = ABUSE_PAYLOAD,
			.result = -1};

		rig_tone(&single, single.pcm, single.packet, i * single.packet);
		n = rig_encode(&single, single.pcm, single.packet, single.payload, ABUSE_PAYLOAD);
		if (c->encode_batch) {
			c->encode_batch(&job, 1);
			if (job.result != n ||
				(n > 0 && memcmp(single.payload, single.other, (size_t)n) != 0))
				rc = rig_fail(&single, "encode_batch differs from encode");
		}
		if (!c->decode_batch || n <= 0)
			continue;
		job = (struct xcipher_codec_job){.state = batch.dec,
			.in = single.payload,
			.in_len = (size_t)n,
			.out = (uint8_t *)single.pcm,
			.out_cap = XCIPHER_CODEC_MAX_PCM};
		c->decode_batch(&job, 1);
		n = rig_decode(
			&single, single.payload, (size_t)n, single.back, XCIPHER_CODEC_MAX_PCM);
		if (job.result != n ||
			(n > 0 &&
				memcmp(single.pcm, single.back, (size_t)n * c->channels * 2) != 0))
			rc = rig_fail(&single, "decode_batch differs from decode");
	}
	rig_close(&single);
	rig_close(&batch);
	return rc;
}

int abuse_leak(const struct xcipher_codec *c, const struct abuse_cfg *cfg, char *why)
{
	struct mallinfo2 before = {0}, after = {0};
	struct rig r;
	int rc = 0;

	for (int i = 0; rc == 0 && i < LEAK_ROUNDS; i++) {
		if (i == 10) /* by now the library made its one-time allocations */
			before = mallinfo2();
		rc = rig_open(&r, c, cfg, NULL, why);
		if (rc == 0 && c->encode) {
			rig_tone(&r, r.pcm, r.packet, 0);
			if (rig_encode(&r, r.pcm, r.packet, r.payload, ABUSE_PAYLOAD) > 0 &&
				c->decode)
				rig_decode(&r, r.payload, 10, r.back, XCIPHER_CODEC_MAX_PCM);
		}
		rig_close(&r);
	}
	after = mallinfo2();
	if (rc == 0 &&
		after.uordblks + after.hblkhd > before.uordblks + before.hblkhd + LEAK_ALLOWED) {
		snprintf(why, CODEC_WHY_MAX, "%d states leave %zu bytes allocated",
			LEAK_ROUNDS - 10,
			after.uordblks + after.hblkhd - before.uordblks - before.hblkhd);
		rc = -EINVAL;
	}
	return rc;
}

/* --- The resampler ---------------------------------------------------------------------------- */

static int one_pair(const struct xcipher_resampler *x, uint32_t from, uint32_t to, char *why)
{
	size_t in = from / 50, want = to / 50, total = 0;
	int16_t pcm[XCIPHER_CODEC_MAX_RATE / 50];
	struct guard state, out;
	int rc = -EINVAL, n = 0;
	void *s = NULL;

	if (guard_create(&state, x->state_size))
		return -ENOMEM;
	if (guard_create(&out, 2 * (want + 64))) {
		guard_destroy(&state);
		return -ENOMEM;
	}
	s = memset(guard_tail(&state, x->state_size, x->align), 0, x->state_size);
	if (x->init(s, 1, from, to)) {
		snprintf(why, CODEC_WHY_MAX, "resampler: %u to %u Hz fails", from, to);
		goto done;
	}
	for (int i = 0; i < PACKETS; i++) {
		memset(pcm, i, 2 * in);
		n = x->run(s, pcm, in, guard_tail(&out, 2 * (want + 64), 2), want + 64);
		if (n < 0 || !guard_intact(&out, 2 * (want + 64), 2))
			break;
		total += (size_t)n;
	}
	if (n >= 0 && total + want >= want * PACKETS && total <= want * (PACKETS + 1))
		rc = x->run(s, pcm, in, guard_tail(&out, 2, 2), 1) == -ENOSPC ? 0 : -EINVAL;
	if (rc)
		snprintf(why, CODEC_WHY_MAX, "resampler: %u to %u Hz: %zu samples, then %d", from,
			to, total, n);
	if (x->fini)
		x->fini(s);
done:
	guard_destroy(&state);
	guard_destroy(&out);
	return rc;
}

int abuse_resampler(const struct xcipher_resampler *r, char *why)
{
	static const uint32_t rates[] = {8000, 16000, 32000, 44100, 48000};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(rates); i++)
		for (size_t j = 0; rc == 0 && j < ARRAY_LEN(rates); j++)
			rc = one_pair(r, rates[i], rates[j], why);
	return rc;
}
