/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of what the recording thread does for one call: audio by a bucket, packets by a share of a
 * worker's ring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/clock.h"
#include "record/record_share.h"
#include "worker/tap.h"

#define MS 1000000ull

static void a_bucket_lets_pass_its_rate(void **state)
{
	for (uint32_t rate = 1; rate <= RECORD_SHARE_MOST; rate *= 2) {
		struct record_bucket b = {0};
		uint64_t used = 0;

		for (uint64_t now = 0; now < 10000 * MS; now += MS / 2)
			while (record_bucket_may(&b, rate, now)) {
				record_bucket_use(&b, 20 * MS);
				used += 20 * MS;
			}
		/* The bucket's content, and one packet above it. */
		assert_in_range(
			used, rate * 10 * NS_PER_SEC - 20 * MS, rate * 11 * NS_PER_SEC + 20 * MS);
	}
	(void)state;
}

static void a_lower_rate_forgets_what_was_above_it(void **state)
{
	struct record_bucket b = {0};

	(void)state;
	assert_true(record_bucket_may(&b, 64, 0));
	record_bucket_use(&b, 64 * NS_PER_SEC);
	assert_false(record_bucket_may(&b, 64, 0));
	assert_false(record_bucket_may(&b, 2, 0));
	assert_true(record_bucket_may(&b, 2, 510 * MS));
	assert_true(record_bucket_may(&b, 2, 505 * MS)); /* another worker's packet, a bit older */
	record_bucket_use(&b, 9 * NS_PER_SEC);
	assert_true(record_bucket_may(&b, 2, 3600 * NS_PER_SEC));
}

static void the_share_falls_fast_and_rises_slowly(void **state)
{
	uint32_t rate = RECORD_SHARE_MOST;

	(void)state;
	assert_int_equal(record_share_next(rate, false), RECORD_SHARE_MOST);
	for (uint32_t i = 0; i < 10; i++)
		rate = record_share_next(rate, true);
	assert_int_equal(rate, RECORD_SHARE_LEAST);
	assert_int_equal(record_share_next(rate, false), RECORD_SHARE_LEAST + 1);
	for (uint32_t i = 0; i < 100; i++)
		rate = record_share_next(rate, false);
	assert_int_equal(rate, RECORD_SHARE_MOST);
}

/* --- The ring --------------------------------------------------------------------------------- */

static void arrives(struct tap *t, const struct arena *a, uint32_t tap, uint16_t port)
{
	struct packet_in in = {.len = 100, .local = {.port = port}};
	struct xc_job job = {.hdr_len = 12, .body_len = 88};

	tap_packet(t, tap, a, &in, &job);
}

/* One call with 10,000 packets, and a packet of each of 20 others after every 100: none of theirs
 * is lost while the recording thread sleeps. */
static void a_call_with_many_packets_takes_no_room_from_others(void **state)
{
	struct tap *t = calloc(1, sizeof(*t));
	struct tap_entry *e = calloc(1, sizeof(*e));
	uint32_t got[22] = {0}, missed[22] = {0};
	struct arena a = {0};

	(void)state;
	assert_true(t && e);
	assert_int_equal(arena_create(&a, 1, 2), 0);
	assert_int_equal(tap_init(t), 0);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 2000; i++) {
			arrives(t, &a, 1, 1);
			for (uint32_t k = 0; i % 100 == 0 && k < 20; k++)
				arrives(t, &a, 2 + k, 1);
		}
		assert_in_range(tap_waiting(t), 20 * 20 + 200, TAP_ENTRIES);
		while (tap_next(t, e)) {
			assert_in_range(e->tap, 1, 21);
			got[e->tap]++;
			missed[e->tap] += e->missed;
		}
		assert_int_equal(tap_waiting(t), 0);
	}
	arrives(t, &a, 1, 1);
	assert_true(tap_next(t, e));
	missed[1] += e->missed;
	got[1]++;
	for (uint32_t k = 0; k < 20; k++) {
		assert_int_equal(got[2 + k], 3 * 20);
		assert_int_equal(missed[2 + k], 0);
	}
	/* All losses are its own, and its entries report them. */
	assert_int_equal(got[1] + missed[1], 3 * 2000 + 1);
	assert_int_equal(atomic_load(&t->lost), missed[1]);
	assert_int_equal(e->lost, missed[1]);
	tap_fini(t);
	arena_destroy(&a);
	free(e);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_lets_pass_its_rate),
		cmocka_unit_test(a_lower_rate_forgets_what_was_above_it),
		cmocka_unit_test(the_share_falls_fast_and_rises_slowly),
		cmocka_unit_test(a_call_with_many_packets_takes_no_room_from_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
