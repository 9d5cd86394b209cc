/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hand-over of packets between workers that receive for each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "packet/arena.h"
#include "steer/xdp/xdp_hand.h"

#define WORKERS 3u
#define SLOTS   64u
#define PACKETS 100000u

struct bench {
	struct hand *h;
	struct arena a[WORKERS];
};

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_int_equal(hand_create(&b->h, WORKERS), 0);
	for (uint32_t w = 0; w < WORKERS; w++) {
		assert_int_equal(arena_create(&b->a[w], SLOTS, 2), 0);
		if (w > 0)
			assert_int_equal(hand_producer(b->h, w, &b->a[w]), 0);
	}
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	hand_destroy(b->h);
	for (uint32_t w = 0; w < WORKERS; w++)
		arena_destroy(&b->a[w]);
	free(b);
	return 0;
}

static bool readable(const struct bench *b, uint32_t w, int ms)
{
	struct pollfd p = {.fd = hand_fd(b->h, w), .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static struct packet_in packet(struct bench *b, uint32_t from, uint32_t slot, uint32_t number)
{
	struct packet_in d = {.slot = slot, .in_off = slot * ARENA_SLOT_LEN + 300, .len = 4};

	memcpy(b->a[from].in + d.in_off, &number, 4);
	return d;
}

static void a_packet_and_its_slot_come_and_go(void **state)
{
	struct bench *b = *state;
	struct packet_in d = packet(b, 1, 7, 4711), got;
	const uint8_t *payload;
	uint32_t from, slot;

	assert_false(readable(b, 0, 0));
	assert_false(hand_pop(b->h, 0, &got, &payload, &from));
	assert_true(hand_push(b->h, 1, 0, &d));
	assert_true(readable(b, 0, 0));
	assert_false(readable(b, 2, 0));
	assert_false(hand_returned(b->h, 1, &slot));
	assert_true(hand_pop(b->h, 0, &got, &payload, &from));
	assert_int_equal(from, 1);
	assert_ptr_equal(payload, b->a[1].in + d.in_off);
	assert_int_equal(got.slot, 7);
	assert_false(hand_pop(b->h, 0, &got, &payload, &from));
	assert_false(readable(b, 0, 0));
	hand_return(b->h, 0, from, 7);
	assert_true(hand_returned(b->h, 1, &slot));
	assert_int_equal(slot, 7);
	assert_false(hand_returned(b->h, 1, &slot));
}

static void no_more_is_lent_than_fits(void **state)
{
	struct bench *b = *state;
	struct packet_in d = {.slot = 1};
	const uint8_t *payload;
	uint32_t n = 0, back = 0, from, slot;

	/* Also between two lanes: the way back needs room for all packets. */
	while (n < 100000 && hand_push(b->h, 1, n % 2 ? 2 : 0, &d))
		n++;
	assert_in_range(n, 64, 2048);
	for (uint32_t me = 0; me < WORKERS; me += 2)
		while (hand_pop(b->h, me, &d, &payload, &from))
			hand_return(b->h, me, from, d.slot);
	while (hand_returned(b->h, 1, &slot))
		back++;
	assert_int_equal(back, n);
	assert_true(hand_push(b->h, 1, 0, &d));
}

static void clearing_forgets_no_packet(void **state)
{
	struct bench *b = *state;
	struct packet_in d = packet(b, 2, 3, 1);

	assert_true(hand_push(b->h, 2, 0, &d));
	hand_clear(b->h, 0);
	assert_true(readable(b, 0, 0));
}

struct producer {
	struct bench *b;
	uint32_t me;
};

static void *produce(void *arg)
{
	struct producer *p = arg;
	uint32_t free[SLOTS], frees = 0, slot;

	/* Few slots, so that both sides often wait. */
	for (uint32_t i = 0; i < 3; i++)
		free[frees++] = i;
	for (uint32_t i = 0; i < PACKETS;) {
		while (hand_returned(p->b->h, p->me, &slot))
			free[frees++] = slot;
		if (frees) {
			struct packet_in d = packet(p->b, p->me, free[--frees], i++);

			assert_true(hand_push(p->b->h, p->me, 0, &d));
		} else {
			sched_yield();
		}
	}
	return NULL;
}

/* Sleeps and checks like a worker: again at once only after a full burst. */
static void no_wake_up_is_lost_between_threads(void **state)
{
	struct bench *b = *state;
	struct producer p[2] = {{b, 1}, {b, 2}};
	uint32_t next[WORKERS] = {0}, all = 0, got = 0;
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, produce, &p[i]), 0);
	while (all < 2 * PACKETS) {
		const uint8_t *payload;
		uint32_t from, number;
		struct packet_in d;

		if (got < 8)
			assert_true(readable(b, 0, 60000));
		got = 0;
		while (got < 8 && hand_pop(b->h, 0, &d, &payload, &from)) {
			memcpy(&number, payload, 4);
			assert_int_equal(number, next[from]++);
			hand_return(b->h, 0, from, d.slot);
			got++;
		}
		all += got;
		if (got == 0)
			hand_clear(b->h, 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_packet_and_its_slot_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(no_more_is_lent_than_fits, setup, teardown),
		cmocka_unit_test_setup_teardown(clearing_forgets_no_packet, setup, teardown),
		cmocka_unit_test_setup_teardown(
			no_wake_up_is_lost_between_threads, setup, teardown),
	};

	return cmocka_run_group_tests_name("xdp_hand", tests, NULL, NULL);
}
