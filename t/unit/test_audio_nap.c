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
		assert_int_equal(audio_nap_until(&p, 1, false, t), 0);
}

static void many_packets_share_a_wake_up(void **state)
{
	struct audio_nap p = {0};

	(void)state;
	assert_int_equal(audio_nap_until(&p, 1, false, 100 * MS), 0);
	assert_int_equal(audio_nap_until(&p, 1, false, 101 * MS), 101 * MS + AUDIO_NAP_NS);
	assert_int_equal(audio_nap_until(&p, 5, false, 103 * MS), 103 * MS + AUDIO_NAP_NS);
	assert_int_equal(audio_nap_until(&p, 0, false, 105 * MS), 0);
	assert_int_equal(audio_nap_until(&p, 1, false, 106 * MS), 106 * MS + AUDIO_NAP_NS);
	assert_int_equal(audio_nap_until(&p, 1, false, 126 * MS), 0);
}

/* With naps between them, limited rounds would fall behind the packets for ever. */
static void no_nap_while_packets_wait(void **state)
{
	struct audio_nap p = {0};

	(void)state;
	for (uint64_t t = 100 * MS; t < 110 * MS; t += MS)
		assert_int_equal(audio_nap_until(&p, 64, true, t), 0);
	assert_int_equal(audio_nap_until(&p, 30, false, 110 * MS), 110 * MS + AUDIO_NAP_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_packets_are_transcoded_at_once),
		cmocka_unit_test(many_packets_share_a_wake_up),
		cmocka_unit_test(no_nap_while_packets_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
