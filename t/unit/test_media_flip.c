/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flips every bit of a protected packet, one at a time: header, body, MKI, tag and SRTCP index.
 * Nothing leaves and no state changes but the counters of errors. Covers every suite, RTP and RTCP,
 * with and without MKI, on the reference, the serial and the OpenCL engine. */
#include "media/attack.h"
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "batch/engine.h"
#include "engine_mock.h"

/* PoCL frees some memory only when the process ends (for LeakSanitizer). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\n";
}

struct bench {
	const struct engine_ops *ops;
	struct engine *e;
	struct engine_queue *q;
	struct rig *r;
};

static void burst_run(struct bench *b)
{
	struct rig *r = b->r;
	uint32_t jobs = rig_prepare(r);
	struct batch batch = {.job = r->a.job, .status = r->a.status, .n = jobs};

	for (uint32_t i = 0; i < jobs; i++)
		r->a.status[i] = XC_NOT_DONE;
	assert_int_equal(b->ops->run(b->q, &batch), 0);
	r->outs = media_complete(r->m, &r->a, r->in,
		&(struct batch){.job = r->a.job, .status = r->a.status, .n = jobs}, r->out);
	media_sent(r->m, r->in, r->out, r->outs);
	r->n = 0;
}

/* The state that only authentic packets may change. */
struct state {
	void *tables;
	size_t len;
	struct key_state key[KEYS / 2];
	struct media_stream_counters c[3];
};

static void state_take(struct state *s, const struct rig *r)
{
	s->tables = rig_snapshot(r, &s->len);
	memcpy(s->key, r->m->key, sizeof(s->key));
	for (uint32_t i = 0; i < 3; i++) {
		memcpy(&s->c[i], media_stream_counters(r->m, i), sizeof(s->c[i]));
		s->c[i].errors = 0;
		memset(s->c[i].drops, 0, sizeof(s->c[i].drops));
	}
}

static void state_is(const struct state *before, const struct rig *r)
{
	struct state now;

	state_take(&now, r);
	assert_memory_equal(now.tables, before->tables, before->len);
	assert_memory_equal(now.key, before->key, sizeof(now.key));
	assert_memory_equal(now.c, before->c, sizeof(now.c));
	free(now.tables);
}

static uint8_t *short_rtp(struct rig *r, uint64_t index)
{
	uint8_t p[172], *at = rig_slot(r, A, PORT_A);

	rig_plain_rtp(p, 7, index);
	r->in[0].len =
		rig_protect(r, at, (struct rig_plain){p, 45, 12, A_TX, r->suite_a, index, false});
	return at;
}

/* For one suite: a packet is taken, the next one is tried with each bit flipped, and finally taken
 * unchanged. */
static void flip(struct bench *b, enum srtp_suite_id suite, bool rtcp, uint8_t mki_len)
{
	struct rig *r = b->r = rig_new(suite, SUITE_AES_CM_128_80, mki_len);
	uint8_t whole[256], *at;
	struct state before;
	uint32_t len, bits;

	/* As if far more packets were true: each forged packet shall be authenticated, and the
	 * stream not even suspected. */
	r->m->trial[A].attack.trues = UINT32_MAX / 2;
	assert_int_equal(b->ops->queue_create(&b->q, b->e, &r->a), 0);
	for (uint32_t slot = A_TX; slot < KEYS; slot += 2)
		assert_int_equal(b->ops->key_changed(b->q, slot), 0);
	rig_send(r, 7, 65530, A_TX);
	rig_send_rtcp(r, 7, 3);
	burst_run(b);
	assert_int_equal(r->outs, 2);

	at = rtcp ? rig_send_rtcp(r, 7, 4) : short_rtp(r, 65531);
	len = r->in[0].len;
	assert_in_range(len, 28, sizeof(whole));
	memcpy(whole, at, len);
	r->n = 0;
	bits = 8 * len;
	state_take(&before, r);
	for (uint32_t bit = 0; bit < bits;) {
		uint32_t first = bit;

		for (; bit < bits && r->n < SLOTS; bit++) {
			at = rig_slot(r, A, PORT_A);
			r->in[r->n - 1].len = len;
			memcpy(at, whole, len);
			at[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		burst_run(b);
		if (r->outs)
			fail_msg("%s, %s, MKI of %u: a bit of bytes %u to %u can be turned over",
				srtp_suite_get(suite)->name, rtcp ? "RTCP" : "RTP", mki_len,
				first / 8, (bit - 1) / 8);
		state_is(&before, r);
	}
	memcpy(rig_slot(r, A, PORT_A), whole, len);
	r->in[0].len = len;
	burst_run(b);
	assert_int_equal(r->outs, 1);
	free(before.tables);
	b->ops->queue_destroy(b->q);
	rig_free(r);
}

static void flip_all(const struct engine_ops *ops, uint32_t flags)
{
	struct engine_config cfg = {.device = "", .flags = flags};
	struct bench b = {.ops = ops};
	char err[256] = "";

	if (ops->open(&b.e, &cfg, err, sizeof(err)))
		fail_msg("%s", err);
	for (int suite = SUITE_PLAIN + 1; suite < SUITE_COUNT; suite++)
		for (int shape = 0; shape < 4; shape++)
			flip(&b, (enum srtp_suite_id)suite, shape & 1, shape & 2 ? 4 : 0);
	ops->close(b.e);
}

static void reference(void **state)
{
	(void)state;
	flip_all(&engine_mock, 0);
}

static void serial(void **state)
{
	(void)state;
	flip_all(&engine_serial, 0);
}

static void opencl(void **state)
{
	(void)state;
	flip_all(&engine_opencl, 0);
}

static void opencl_as_on_a_gpu(void **state)
{
	(void)state;
	flip_all(&engine_opencl, ENGINE_SCALAR_LANES | ENGINE_PORTABLE_AES | ENGINE_OWN_MEMORY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reference),
		cmocka_unit_test(serial),
		cmocka_unit_test(opencl),
		cmocka_unit_test(opencl_as_on_a_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
