/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exchanges of MIKEY that wait: found by number, bounded, and without keys after their
 * answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "keying/keying.h"
#include "keying/mikey_host.h"
#include "keying/mikey_int.h"

static uint64_t now_s = 1000, real_s = 1800000000; /* monotonic, and since 1970 */

static uint64_t now_ns(void)
{
	return now_s * 1000000000ull;
}

static uint64_t real_ns(void)
{
	return real_s * 1000000000ull;
}

static const struct mikey_clocks clocks = {.real = real_ns, .mono = now_ns};

/* An exchange with a response. Returns NULL if the host has no room. */
static struct mikey_talk *add(struct mikey_host *h, uint64_t id, struct str call_id, size_t len)
{
	struct mikey_talk *t;

	if (mikey_talk_create(&t, h, call_id, len))
		return NULL;
	t->len = len;
	mikey_talk_add(h, t, id);
	return t;
}

/* A caller who makes exchanges without end costs other calls none of theirs. */
static void no_call_costs_another_its_exchange(void **state)
{
	const uint64_t many = MIKEY_TALKS_MAX + 100;
	struct mikey_host h;
	char name[32];

	(void)state;
	assert_int_equal(mikey_host_init(&h, NULL, MIKEY_USE_ACCEPT, &clocks), 0);
	assert_non_null(add(&h, 1, STR("victim"), 3));
	for (uint64_t i = 2; i < many; i++)
		assert_non_null(add(&h, i, STR("attacker"), 0));
	assert_int_equal(h.talks, 1 + MIKEY_TALKS_CALL);
	assert_int_equal(mikey_talk_find(&h, 1)->len, 3);
	assert_null(mikey_talk_find(&h, 2));
	assert_non_null(mikey_talk_find(&h, many - 1));
	for (uint64_t i = 0; h.talks < MIKEY_TALKS_MAX; i++) {
		snprintf(name, sizeof(name), "call %u", (unsigned)(i / 64));
		assert_non_null(add(&h, many + i, str_from(name), 0));
	}
	assert_null(add(&h, many * 3, STR("late"), 0));
	assert_non_null(mikey_talk_find(&h, 1));
	/* Calls that end make room. */
	keying_call_ended(&h, STR("attacker"));
	assert_int_equal(h.talks, MIKEY_TALKS_MAX - MIKEY_TALKS_CALL);
	assert_non_null(add(&h, many * 3, STR("late"), 0));
	keying_call_ended(&h, STR("victim"));
	assert_null(mikey_talk_find(&h, 1));
	keying_call_ended(NULL, STR("victim"));
	mikey_host_fini(&h);
}

static void keys_do_not_stay(void **state)
{
	static const struct mikey_keys none;
	struct mikey_host h;
	struct mikey_talk *r, *i;

	(void)state;
	assert_int_equal(mikey_host_init(&h, NULL, MIKEY_USE_ACCEPT, &clocks), 0);
	assert_non_null(add(&h, 1, STR("a"), 0)); /* never answered */
	r = add(&h, 2, STR("a"), 1);
	i = add(&h, 3, STR("a"), 0);
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

/* Long calls do not prevent new calls from using MIKEY. */
static void a_place_without_keys_is_free(void **state)
{
	struct mikey_host h;
	char name[32];

	(void)state;
	assert_int_equal(mikey_host_init(&h, NULL, MIKEY_USE_ACCEPT, &clocks), 0);
	for (uint64_t i = 1; i <= MIKEY_TALKS_MAX; i++) {
		struct mikey_talk *t;

		snprintf(name, sizeof(name), "call %u", (unsigned)i);
		t = add(&h, i, str_from(name), 1);
		assert_non_null(t);
		t->responder = true;
		t->answered_ns = i > 2 ? now_ns() : 0; /* two calls ring */
	}
	assert_null(add(&h, MIKEY_TALKS_MAX + 1, STR("new"), 0));
	now_s += MIKEY_KEEP_SECONDS + 1;
	mikey_host_tick(&h);
	assert_non_null(add(&h, MIKEY_TALKS_MAX + 1, STR("new"), 0));
	assert_non_null(mikey_talk_find(&h, 1));
	assert_non_null(mikey_talk_find(&h, 2));
	assert_null(mikey_talk_find(&h, 3));
	assert_non_null(mikey_talk_find(&h, 4));
	assert_int_equal(h.talks, MIKEY_TALKS_MAX);
	mikey_host_fini(&h);
}

/* The clock is set back by a day: exchanges end all the same. Set ahead, it ends none. */
static void a_clock_that_is_set_changes_no_age(void **state)
{
	struct mikey_host h;

	(void)state;
	for (int back = 0; back < 2; back++) {
		assert_int_equal(mikey_host_init(&h, NULL, MIKEY_USE_ACCEPT, &clocks), 0);
		assert_non_null(add(&h, 1, STR("a"), 0));
		real_s = back ? real_s - 86400 : real_s + 86400;
		now_s += MIKEY_TALK_SECONDS;
		mikey_host_tick(&h);
		assert_non_null(mikey_talk_find(&h, 1));
		now_s++;
		mikey_host_tick(&h);
		assert_null(mikey_talk_find(&h, 1));
		mikey_host_fini(&h);
	}
}

/* A replay memory is empty after a start, so what is older is refused. */
static void a_start_refuses_what_is_older(void **state)
{
	struct mikey_stamp s = {.from = STR("a"), .to = STR("b"), .message = STR("m")};
	struct mikey_host h;

	(void)state;
	assert_int_equal(mikey_host_init(&h, NULL, MIKEY_USE_ACCEPT, &clocks), 0);
	s.now_ntp = mikey_ntp(real_ns());
	s.time = s.now_ntp - 1;
	assert_int_equal(mikey_replay_add(h.replay, &s), MIKEY_FAIL_TIME);
	s.time = s.now_ntp;
	assert_int_equal(mikey_replay_add(h.replay, &s), MIKEY_OK);
	mikey_host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_call_costs_another_its_exchange),
		cmocka_unit_test(keys_do_not_stay),
		cmocka_unit_test(a_place_without_keys_is_free),
		cmocka_unit_test(a_clock_that_is_set_changes_no_age),
		cmocka_unit_test(a_start_refuses_what_is_older),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
