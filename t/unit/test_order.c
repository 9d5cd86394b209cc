/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order in which lanes take jobs: each job once, equal work in neighbouring lanes, no needless
 * moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "batch/order.h"

enum { N = 500 };

static const uint8_t keys[] = {
	ORDER_KEY_PLAIN, ORDER_KEY_PLAIN, ORDER_KEY_HMAC, ORDER_KEY_F8, ORDER_KEY_HMAC};

static struct xc_job job_of(uint32_t rx, uint32_t tx, uint32_t body)
{
	return (struct xc_job){.rx_key = rx, .tx_key = tx, .hdr_len = 12, .body_len = body};
}

static uint32_t kind(const struct xc_job *j)
{
	if (keys[j->rx_key] == ORDER_KEY_F8 || keys[j->tx_key] == ORDER_KEY_F8)
		return 2;
	return keys[j->rx_key] == ORDER_KEY_HMAC || keys[j->tx_key] == ORDER_KEY_HMAC;
}

static uint32_t blocks(const struct xc_job *j)
{
	return (j->hdr_len + j->body_len + 4 + 9 + 63) / 64;
}

static void every_job_once_and_equal_work_side_by_side(void **state)
{
	struct xc_job job[N];
	uint32_t order[N];
	bool seen[N] = {false};

	(void)state;
	srand(1);
	for (uint32_t i = 0; i < N; i++)
		job[i] = job_of((uint32_t)rand() % ARRAY_LEN(keys),
			(uint32_t)rand() % ARRAY_LEN(keys), (uint32_t)rand() % 2900);
	assert_true(order_jobs(order, job, N, keys));
	for (uint32_t i = 0; i < N; i++) {
		assert_true(order[i] < N);
		assert_false(seen[order[i]]);
		seen[order[i]] = true;
	}
	for (uint32_t i = 1; i < N; i++) {
		const struct xc_job *a = &job[order[i - 1]], *b = &job[order[i]];

		assert_true(kind(a) >= kind(b));
		if (kind(a) == kind(b))
			assert_true(blocks(a) >= blocks(b));
		if (kind(a) == kind(b) && blocks(a) == blocks(b))
			assert_true(order[i - 1] < order[i]);
	}
}

static void jobs_that_are_alike_are_left_as_they_are(void **state)
{
	struct xc_job job[N];
	uint32_t order[N] = {7};

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		job[i] = job_of(2 + 2 * (i & 1), 4, 150 + i % 10);
	assert_false(order_jobs(order, job, N, keys));
	assert_int_equal(order[0], 7);
	assert_false(order_jobs(order, job, 0, keys));
	job[N - 1].rx_key = 3;
	assert_true(order_jobs(order, job, N, keys));
	assert_int_equal(order[0], N - 1);
	assert_int_equal(order[1], 0);
}

static void a_key_is_of_the_kind_that_costs(void **state)
{
	static const struct {
		uint32_t cipher, auth;
		enum order_key want;
	} T[] = {
		{XC_CIPHER_NULL, XC_AUTH_NULL, ORDER_KEY_PLAIN},
		{XC_CIPHER_NULL, XC_AUTH_HMAC_SHA1, ORDER_KEY_HMAC},
		{XC_CIPHER_AES_CM, XC_AUTH_HMAC_SHA1, ORDER_KEY_HMAC},
		{XC_CIPHER_AES_CM, XC_AUTH_NULL, ORDER_KEY_PLAIN},
		{XC_CIPHER_AES_F8, XC_AUTH_HMAC_SHA1, ORDER_KEY_F8},
		{XC_CIPHER_GCM, XC_AUTH_GCM, ORDER_KEY_PLAIN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct xc_key k = {.cipher = T[i].cipher, .auth = T[i].auth};

		assert_int_equal(order_key_of(&k), T[i].want);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_job_once_and_equal_work_side_by_side),
		cmocka_unit_test(jobs_that_are_alike_are_left_as_they_are),
		cmocka_unit_test(a_key_is_of_the_kind_that_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
