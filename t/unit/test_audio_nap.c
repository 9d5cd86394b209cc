/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a codec thread naps: never with few packets, and for a bounded time with many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "audio/nap.h"

#define MS 1000000ull

static void few_packets_are_transcoded_at_once(void **state)
{
	struct audio_nap p = {0};

	(void)state;
	for (uint64_t t = 100 * MS; t < 400 * MS; t += 20 * MS)
		assert_int_equal(audio_nap_until(&p, 1, t), 0);
}

static void many_packets_share_a_wake_up(void **state)
{
	struct audio_nap p = {0};

	(void)state;
	assert_int_equal(audio_nap_until(&p, 1, 100 * MS), 0);
	assert_int_equal(audio_nap_until(&p, 1, 101 * MS), 101 * MS + AUDIO_NAP_NS);
	assert_int_equal(audio_nap_until(&p, 5, 103 * MS), 103 * MS + AUDIO_NAP_NS);
	assert_int_equal(audio_nap_until(&p, 0, 105 * MS), 0);
	assert_int_equal(audio_nap_until(&p, 1, 106 * MS), 106 * MS + AUDIO_NAP_NS);
	assert_int_equal(audio_nap_until(&p, 1, 126 * MS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_packets_are_transcoded_at_once),
		cmocka_unit_test(many_packets_share_a_wake_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
