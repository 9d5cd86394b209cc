/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exchanges of MIKEY that wait: found by number, bounded, and without keys after their
 * answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "keying/mikey_host.h"
#include "keying/mikey_int.h"

static uint64_t now_s = 1000;

static uint64_t now_ns(void)
{
	return now_s * 1000000000ull;
}

static void the_oldest_is_forgotten(void **state)
{
	struct mikey_host h;

	(void)state;
	assert_int_equal(mikey_host_init(&h, NULL, MIKEY_USE_ACCEPT, now_ns), 0);
	for (uint64_t i = 1; i <= MIKEY_TALKS_MAX + 2; i++)
		assert_non_null(mikey_talk_add(&h, i, 3));
	assert_int_equal(h.talks, MIKEY_TALKS_MAX);
	assert_null(mikey_talk_find(&h, 2));
	assert_int_equal(mikey_talk_find(&h, 3)->id, 3);
	assert_int_equal(mikey_talk_find(&h, MIKEY_TALKS_MAX + 2)->len, 3);
	mikey_host_fini(&h);
}

static void keys_do_not_stay(void **state)
{
	static const struct mikey_keys none;
	struct mikey_host h;
	struct mikey_talk *r, *i;

	(void)state;
	assert_int_equal(mikey_host_init(&h, NULL, MIKEY_USE_ACCEPT, now_ns), 0);
	assert_non_null(mikey_talk_add(&h, 1, 0)); /* never answered */
	r = mikey_talk_add(&h, 2, 1);
	i = mikey_talk_add(&h, 3, 0);
	r->responder = true;
	memset(&r->keys, 5, sizeof(r->keys));
	r->answered_ns = i->answered_ns = now_ns();
	now_s += MIKEY_KEEP_SECONDS;
	mikey_host_tick(&h);
	assert_false(r->spent);
	assert_ptr_equal(mikey_talk_find(&h, 3), i);
	now_s++;
	mikey_host_tick(&h);
	assert_ptr_equal(mikey_talk_find(&h, 2), r);
	assert_true(r->spent);
	assert_memory_equal(&r->keys, &none, sizeof(none));
	assert_null(mikey_talk_find(&h, 3));
	now_s += MIKEY_TALK_SECONDS;
	mikey_host_tick(&h);
	assert_null(mikey_talk_find(&h, 1));
	assert_ptr_equal(mikey_talk_find(&h, 2), r);
	mikey_host_fini(&h);
}

/* A replay memory is empty after a start, so what is older is refused. */
static void a_start_refuses_what_is_older(void **state)
{
	struct mikey_stamp s = {.from = STR("a"), .to = STR("b"), .message = STR("m")};
	struct mikey_host h;

	(void)state;
	assert_int_equal(mikey_host_init(&h, NULL, MIKEY_USE_ACCEPT, now_ns), 0);
	s.now_ntp = mikey_ntp(now_ns());
	s.time = s.now_ntp - 1;
	assert_int_equal(mikey_replay_add(h.replay, &s), MIKEY_FAIL_TIME);
	s.time = s.now_ntp;
	assert_int_equal(mikey_replay_add(h.replay, &s), MIKEY_OK);
	mikey_host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_is_forgotten),
		cmocka_unit_test(keys_do_not_stay),
		cmocka_unit_test(a_start_refuses_what_is_older),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
