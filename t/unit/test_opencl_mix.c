/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The OpenCL engine with lanes that differ: packets of every length together, every suite together
 * with every other, with and without encryption and authentication. Also the cost of mixing, and
 * two workers that dispatch in parallel on their own queues. */
#include <inttypes.h>
#include <pthread.h>
#include <time.h>

#include "batch/engine.h"
#include "engine_cases.h"
#include "base/clock.h"
#include "batch/sample.h"
#include "packet/arena.h"
#include "srtp/ref.h"

enum {
	LENGTHS = 350,
	PAIRS = SUITE_COUNT + 1,
	LONGEST = ARENA_MAX_PACKET - 20,
	THREADS = 2,
	ROUNDS = 200,
	THREAD_N = 40
};

static int setup(void **state)
{
	return engine_setup(state, &engine_opencl, &(struct engine_config){.device = ""});
}

static int setup_portable(void **state)
{
	return engine_setup(state, &engine_opencl,
		&(struct engine_config){.device = "", .flags = ENGINE_PORTABLE_AES});
}

static int setup_scalar(void **state)
{
	return engine_setup(state, &engine_opencl,
		&(struct engine_config){.device = "",
			.flags = ENGINE_SCALAR_LANES | ENGINE_OWN_MEMORY | ENGINE_SMALL_CHUNKS});
}

/* Slots 2 and 3: AES_CM_128_HMAC_SHA1_80, then every other suite and plain, then AES_CM without
 * authentication. */
static int keys_set(const struct engine_ops *ops, struct engine_queue *q, struct arena *a)
{
	int err = 0;

	for (uint32_t i = 0; i < PAIRS && !err; i++) {
		struct srtp_master m;

		sample_master(
			&m, (enum srtp_suite_id)((SUITE_AES_CM_128_80 + i) % SUITE_COUNT), 9 + i);
		m.no_rtp_auth = i == SUITE_COUNT;
		err = srtp_key_fill(&a->key[2 + 2 * i], &m);
		if (!err)
			err = ops->key_changed(q, 2 + 2 * i);
	}
	return err;
}

static void packet_make(struct arena *a, uint32_t i, uint32_t body_len)
{
	bool rtcp = i % 7 == 0;
	struct sample s = {.rx_key = 2 + 2 * (i % PAIRS) + rtcp,
		.tx_key = 2 + 2 * (i / PAIRS % PAIRS) + rtcp,
		.hdr_len = rtcp ? 8 : 12 + 4 * (i % 3),
		.body_len = body_len,
		.flags = (rtcp ? XC_JOB_RTCP : 0) | (i % 11 == 5 ? XC_JOB_RX_CLEAR : 0) |
			(i % 13 == 6 ? XC_JOB_TX_CLEAR : 0),
		.ssrc_change = i % 5 == 3 ? 0x9e3779b9 * i : 0,
		.in_skew = i % 16,
		.rx_index = i,
		.tx_index = i,
		.seed = i};

	sample_make(&a->job[i], a, i, &s);
}

static int batch_run_undone(
	const struct engine_ops *ops, struct engine_queue *q, struct arena *a, uint32_t n)
{
	struct batch b = {.job = a->job, .status = a->status, .n = n};

	for (uint32_t i = 0; i < n; i++)
		b.status[i] = XC_NOT_DONE;
	return ops->run(q, &b);
}

static bool as_reference(const struct arena *a, uint32_t i, uint8_t *want)
{
	const struct xc_job *j = &a->job[i];

	return a->status[i] == srtp_ref_job(j, a->key, a->in, want) && a->status[i] == XC_OK &&
		sample_equal(j, a, a->out, want);
}

/* 37 and 350 have no common factor, so neighbours in a vector differ and every length occurs. */
static void every_length_is_right_beside_others(void **state)
{
	struct engine_fixture *f = *state;

	assert_int_equal(keys_set(f->ops, f->q, &f->a), 0);
	for (uint32_t base = 0; base < 4 * LENGTHS; base += LENGTHS) {
		for (uint32_t i = 0; i < LENGTHS; i++)
			packet_make(&f->a, i, base + i * 37 % LENGTHS);
		assert_int_equal(batch_run_undone(f->ops, f->q, &f->a, LENGTHS), 0);
		for (uint32_t i = 0; i < LENGTHS; i++)
			if (!as_reference(&f->a, i, f->want))
				fail_msg(
					"job %u, header of %u, body of %u: status %u, or not as the reference",
					i, f->a.job[i].hdr_len, f->a.job[i].body_len,
					f->a.status[i]);
	}
}

/* The longest packet next to the shortest: one lane works much longer than the others. */
static void a_long_packet_among_tiny_ones_is_right(void **state)
{
	struct engine_fixture *f = *state;

	assert_int_equal(keys_set(f->ops, f->q, &f->a), 0);
	for (uint32_t at = 0; at < 33; at++) {
		for (uint32_t i = 0; i < 33; i++)
			packet_make(&f->a, i, i == at ? LONGEST : i % 2);
		assert_int_equal(batch_run_undone(f->ops, f->q, &f->a, 33), 0);
		for (uint32_t i = 0; i < 33; i++)
			assert_true(as_reference(&f->a, i, f->want));
	}
}

/* --- Cost ------------------------------------------------------------------------------------- */

/* The device computes in the calling thread, so other programs do not add to its processor time. */
static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

/* The least processor time of several dispatches of n good packets. Every ninth packet has a body
 * of long_len bytes. */
static uint64_t dispatch_ns(
	struct engine_fixture *f, uint32_t n, uint32_t body_len, uint32_t long_len)
{
	uint64_t best = UINT64_MAX;

	for (uint32_t i = 0; i < n; i++) {
		struct sample s = {.rx_key = 2, .tx_key = 2, .hdr_len = 12, .seed = i};

		s.body_len = i % 9 == 0 ? long_len : body_len;
		sample_make(&f->a.job[i], &f->a, i, &s);
	}
	for (int round = 0; round < 30; round++) {
		uint64_t start = thread_cpu_ns(), took;

		assert_int_equal(batch_run_undone(f->ops, f->q, &f->a, n), 0);
		took = thread_cpu_ns() - start;
		best = took < best ? took : best;
	}
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(f->a.status[i], XC_OK);
	return best;
}

/* Jumbo packets among tiny ones cost about the sum of both alone. In order of arrival, each
 * work-item would be as slow as its longest packet, and the whole five times as slow. */
static void a_long_packet_does_not_stall_the_rest(void **state)
{
	enum { LONG = 1400, TINY = 20, ALL = 288 };
	struct engine_fixture *f = *state;
	uint64_t tiny, jumbo, both;

	assert_int_equal(keys_set(f->ops, f->q, &f->a), 0);
	tiny = dispatch_ns(f, ALL - ALL / 9, TINY, TINY);
	jumbo = dispatch_ns(f, ALL / 9, LONG, LONG);
	both = dispatch_ns(f, ALL, TINY, LONG);
	if (both > 2 * (tiny + jumbo))
		fail_msg("%u tiny: %" PRIu64 " ns, %u long: %" PRIu64
			 " ns, among each other: %" PRIu64,
			ALL - ALL / 9, tiny, ALL / 9, jumbo, both);
}

/* --- Two workers ------------------------------------------------------------------------------ */

struct worker {
	const struct engine_ops *ops;
	struct engine_queue *q;
	struct arena a;
	uint8_t *want;
	uint32_t wrong; /* batches */
};

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	for (uint32_t r = 0; r < ROUNDS; r++) {
		bool right = true;

		memset(w->a.out, 0, (size_t)THREAD_N * ARENA_SLOT_LEN);
		right = batch_run_undone(w->ops, w->q, &w->a, THREAD_N - r % 30) == 0;
		for (uint32_t i = 0; right && i < THREAD_N - r % 30; i++)
			right = as_reference(&w->a, i, w->want);
		w->wrong += !right;
	}
	return NULL;
}

/* Set up by one thread, like the control thread; then each worker runs alone. */
static void two_workers_dispatch_at_once(void **state)
{
	struct engine_fixture *f = *state;
	struct worker w[THREADS] = {0};
	pthread_t thread[THREADS];

	for (int t = 0; t < THREADS; t++) {
		w[t].ops = f->ops;
		w[t].want = calloc(THREAD_N, ARENA_SLOT_LEN);
		assert_non_null(w[t].want);
		assert_int_equal(arena_create(&w[t].a, THREAD_N, 2 + 2 * PAIRS), 0);
		assert_int_equal(f->ops->queue_create(&w[t].q, f->e, &w[t].a), 0);
		assert_int_equal(keys_set(f->ops, w[t].q, &w[t].a), 0);
		for (uint32_t i = 0; i < THREAD_N; i++)
			packet_make(&w[t].a, i, 10 * i + (uint32_t)t);
	}
	for (int t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&thread[t], NULL, worker_main, &w[t]), 0);
	for (int t = 0; t < THREADS; t++)
		assert_int_equal(pthread_join(thread[t], NULL), 0);
	for (int t = 0; t < THREADS; t++) {
		assert_int_equal(w[t].wrong, 0);
		f->ops->queue_destroy(w[t].q);
		arena_destroy(&w[t].a);
		free(w[t].want);
	}
}

/* --- Ciphers ---------------------------------------------------------------------------------- */

/* Suites that the device could run without claiming them would take the slow path. */
static void claims_every_suite(void **state)
{
	struct engine_fixture *f = *state;

	for (int i = 0; i < SUITE_COUNT; i++) {
		struct srtp_master m;

		sample_master(&m, (enum srtp_suite_id)i, 1);
		assert_int_equal(srtp_key_fill(&f->a.key[2], &m), 0);
		for (uint32_t rtcp = 0; rtcp < 2; rtcp++) {
			const struct xc_key *k = &f->a.key[2 + rtcp], *plain = &f->a.key[rtcp];

			assert_true(f->ops->can(f->q, k, plain));
			assert_true(f->ops->can(f->q, plain, k));
		}
	}
}

int main(void)
{
	static const struct CMUnitTest cases[] = {
		cmocka_unit_test(every_length_is_right_beside_others),
		cmocka_unit_test(a_long_packet_among_tiny_ones_is_right),
		cmocka_unit_test(a_long_packet_does_not_stall_the_rest),
		cmocka_unit_test(two_workers_dispatch_at_once),
		cmocka_unit_test(claims_every_suite),
	};

	return cmocka_run_group_tests_name("default", cases, setup, engine_teardown) +
		cmocka_run_group_tests_name(
			"portable AES", cases, setup_portable, engine_teardown) +
		cmocka_run_group_tests_name("as on a GPU", cases, setup_scalar, engine_teardown);
}
