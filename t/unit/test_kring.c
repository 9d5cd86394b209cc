/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker's end of the packet ring, on memory where a few lines play nf_xcipher: numbers that
 * wrap, a full ring, the doorbell's fields, results, the alarm, and the end of the ring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "steer/kernel/kring.h"

#define SLOTS 16u
#define SENDS 8u
#define FIRST 3u

struct fake {
	struct kring r;
	struct arena a;
	void *control;
	struct nfx_bell bell; /* the last one */
	uint32_t bells;
	int refuses;
	uint32_t before; /* descriptors that are handled although it refuses */
	uint16_t result[SENDS];
	uint32_t missed; /* published between the bell's begin and its end */
};

static int ring(void *arg)
{
	struct fake *f = arg;
	struct nfx_ring_control *c = f->r.control;

	if (f->refuses) {
		for (uint32_t i = 0; i < f->before; i++)
			f->r.send[i].result = f->result[i];
		return f->refuses;
	}
	f->bells++;
	f->bell = c->bell;
	assert_true(f->bell.sends <= SENDS);
	assert_true(c->published - f->bell.released <= SLOTS);
	for (uint32_t i = 0; i < f->bell.sends; i++)
		f->r.send[i].result = f->result[i];
	c->published += f->missed;
	if (f->bell.flags & NFX_BELL_ARM)
		c->armed = c->published - f->bell.taken < f->bell.wake_packets;
	return 0;
}

static void begin(struct fake *f, uint32_t number)
{
	memset(f, 0, sizeof(*f));
	assert_int_equal(arena_create(&f->a, FIRST + SLOTS, 2), 0);
	f->control = aligned_alloc(64, (nfx_ring_control_len(SLOTS, SENDS) + 63) / 64 * 64);
	assert_non_null(f->control);
	memset(f->control, 0, nfx_ring_control_len(SLOTS, SENDS));
	kring_init(&f->r, f->control, SLOTS, SENDS, &f->a, FIRST);
	f->r.ring = ring;
	f->r.arg = f;
	f->r.control->published = f->r.taken = f->r.released = f->r.told = number;
}

static void end(struct fake *f)
{
	free(f->control);
	arena_destroy(&f->a);
}

/* The kernel writes a packet with this number. */
static void publish(struct fake *f, uint16_t port)
{
	struct nfx_recv *d = (struct nfx_recv *)&f->r.recv[f->r.control->published % SLOTS];

	*d = (struct nfx_recv){.t_ns = 5000 + port,
		.len = 172,
		.ifindex = 7,
		.family = AF_INET,
		.port = htons(port),
		.from_port = htons(4000),
		.addr = {10, 0, 0, 1},
		.from = {10, 0, 0, 2}};
	f->r.control->published++;
}

static void packets_are_read_in_order_as_numbers_wrap(void **state)
{
	struct fake f;
	uint16_t port = 30000, expected = 30000;

	(void)state;
	begin(&f, UINT32_MAX - 20);
	assert_int_equal(kring_waiting(&f.r), 0);
	for (int burst = 0; burst < 12; burst++) {
		uint32_t number, n;

		for (int i = 0; i < 5; i++)
			publish(&f, port++);
		assert_int_equal(kring_waiting(&f.r), 5);
		n = kring_take(&f.r, 3, &number);
		assert_int_equal(n, 3);
		n += kring_take(&f.r, SLOTS, &(uint32_t){0});
		assert_int_equal(n, 5);
		assert_int_equal(kring_waiting(&f.r), 0);
		for (uint32_t i = 0; i < n; i++) {
			struct packet_in in;
			struct endpoint local;

			kring_packet(&f.r, number + i, &in);
			kring_local(&f.r, number + i, &local);
			assert_int_equal(local.port, expected);
			assert_int_equal(local.family, AF_INET);
			assert_memory_equal(local.addr, ((uint8_t[16]){10, 0, 0, 1}), 16);
			assert_int_equal(in.src.port, 4000);
			assert_memory_equal(in.src.addr, ((uint8_t[16]){10, 0, 0, 2}), 16);
			assert_int_equal(in.slot, FIRST + (number + i) % SLOTS);
			assert_int_equal(in.in_off, in.slot * ARENA_SLOT_LEN + ARENA_HEADROOM);
			assert_int_equal(in.len, 172);
			assert_int_equal(in.dev, 7);
			assert_int_equal(in.t_ns, 5000 + expected);
			expected++;
		}
		kring_release(&f.r, n);
	}
	assert_int_equal(expected, 30060);
	end(&f);
}

static void all_slots_may_wait(void **state)
{
	struct fake f;
	uint32_t number;

	(void)state;
	begin(&f, UINT32_MAX - 3);
	for (uint16_t i = 0; i < SLOTS; i++)
		publish(&f, i);
	assert_int_equal(kring_waiting(&f.r), SLOTS);
	assert_int_equal(kring_take(&f.r, 100, &number), SLOTS);
	assert_int_equal(number, UINT32_MAX - 3);
	end(&f);
}

static void no_number_leads_outside_the_slots(void **state)
{
	struct fake f;
	struct packet_in in;

	(void)state;
	begin(&f, 0);
	f.r.control->published = SLOTS + 1;
	assert_int_equal(kring_waiting(&f.r), 0);
	publish(&f, 1);
	((struct nfx_recv *)f.r.recv)[1].len = ARENA_MAX_PACKET + 1;
	kring_packet(&f.r, 1, &in);
	assert_int_equal(in.len, 0);
	kring_packet(&f.r, UINT32_MAX, &in);
	assert_true(in.slot < FIRST + SLOTS);
	end(&f);
}

static void a_bell_tells_what_is_sent_taken_and_released(void **state)
{
	struct fake f;
	struct packet_out out = {
		.out_off = 5 * ARENA_SLOT_LEN + ARENA_HEADROOM, .len = 99, .tos = 46};
	struct endpoint src;
	const struct nfx_send *d;

	(void)state;
	begin(&f, 0);
	assert_int_equal(endpoint_parse(&src, str_from("192.0.2.1:30002")), 0);
	assert_int_equal(endpoint_parse(&out.dst, str_from("198.51.100.7:5004")), 0);
	for (uint16_t i = 0; i < 6; i++)
		publish(&f, i);
	kring_take(&f.r, 4, &(uint32_t){0});
	kring_release(&f.r, 2);
	assert_int_equal(f.bells, 0); /* not yet worth a bell of its own */
	f.result[1] = EACCES;
	kring_put(&f.r, 0, &src, &out);
	out.len = 100;
	kring_put(&f.r, 1, &src, &out);
	assert_int_equal(kring_bell(&f.r, 2), 0);
	assert_int_equal(f.bells, 1);
	assert_int_equal(f.bell.sends, 2);
	assert_int_equal(f.bell.taken, 4);
	assert_int_equal(f.bell.released, 2);
	assert_int_equal(f.bell.flags, 0); /* it never slept */
	d = &f.r.send[0];
	assert_ptr_equal(f.a.in + d->off, f.a.out + out.out_off);
	assert_int_equal(d->len, 99);
	assert_int_equal(d->tos, 46);
	assert_int_equal(d->family, AF_INET);
	assert_int_equal(ntohs(d->port), 30002);
	assert_int_equal(ntohs(d->to_port), 5004);
	assert_memory_equal(d->addr, src.addr, 16);
	assert_memory_equal(d->to, out.dst.addr, 16);
	assert_int_equal(d->result, 0);
	assert_int_equal(f.r.send[1].result, EACCES);
	end(&f);
}

/* A worker that drops all packets sends nothing. */
static void slots_return_without_sends(void **state)
{
	struct fake f;

	(void)state;
	begin(&f, 0);
	for (int i = 0; i < 100; i++) {
		publish(&f, 1);
		assert_int_equal(kring_take(&f.r, 9, &(uint32_t){0}), 1);
		kring_release(&f.r, 1);
		assert_true(f.r.control->published - f.bell.released <= SLOTS / 2);
	}
	assert_true(f.bells > 10 && f.bells <= 25);
	end(&f);
}

static void the_kernel_is_armed_by_the_burst_that_was_sent(void **state)
{
	struct fake f;

	(void)state;
	begin(&f, 0);
	assert_int_equal(kring_rest(&f.r, 4, 250000), KRING_ARMED);
	assert_int_equal(f.bells, 1);
	assert_int_equal(f.bell.wake_packets, 4);
	assert_int_equal(f.bell.window_ns, 250000);
	/* Nothing was taken: it stays armed. */
	assert_int_equal(kring_rest(&f.r, 4, 250000), KRING_ARMED);
	assert_int_equal(f.bells, 1);
	for (int i = 0; i < 4; i++)
		publish(&f, 1);
	f.r.control->armed = 0; /* it woke us */
	assert_int_equal(kring_rest(&f.r, 4, 250000), KRING_READY);
	assert_int_equal(kring_take(&f.r, 9, &(uint32_t){0}), 4);
	publish(&f, 1);
	assert_int_equal(kring_bell(&f.r, 4), 0);
	assert_int_equal(f.bell.flags, NFX_BELL_ARM);
	assert_int_equal(kring_rest(&f.r, 4, 250000), KRING_ARMED);
	assert_int_equal(f.bells, 2); /* one per burst */
	/* A packet taken meanwhile, without a wake-up: the alarm counted from the wrong one. */
	assert_int_equal(kring_take(&f.r, 9, &(uint32_t){0}), 1);
	assert_int_equal(kring_rest(&f.r, 1, 0), KRING_ARMED);
	assert_int_equal(f.bells, 3);
	assert_int_equal(f.bell.taken, 5);
	end(&f);
}

static void one_bell_sends_and_waits(void **state)
{
	struct fake f;
	bool polled = false;

	(void)state;
	begin(&f, 0);
	assert_int_equal(kring_rest(&f.r, 1, 0), KRING_ARMED);
	publish(&f, 1);
	assert_int_equal(kring_take(&f.r, 9, &(uint32_t){0}), 1);
	f.r.control->woken = NFX_WOKEN_POLL;
	assert_int_equal(kring_wait(&f.r, 1, 4, 250000, &polled), 0);
	assert_true(polled);
	assert_int_equal(f.bells, 2);
	assert_int_equal(f.bell.flags, NFX_BELL_ARM | NFX_BELL_WAIT);
	assert_int_equal(f.bell.sends, 1);
	assert_int_equal(f.bell.taken, 1);
	assert_int_equal(f.bell.wake_packets, 4);
	assert_int_equal(f.bell.window_ns, 250000);
	/* Of the packets before, none arms: the wait does. */
	assert_int_equal(kring_bell(&f.r, 1), 0);
	assert_int_equal(f.bell.flags, 0);
	f.r.control->woken = 0;
	assert_int_equal(kring_wait(&f.r, 0, 1, 0, &polled), 0);
	assert_false(polled);
	f.refuses = -ENOENT;
	f.r.control->woken = NFX_WOKEN_POLL; /* of an earlier bell */
	assert_int_equal(kring_wait(&f.r, 0, 1, 0, &polled), -ENOENT);
	assert_false(polled);
	assert_true(f.r.ended);
	end(&f);
}

static void packets_that_come_while_it_rings_are_not_slept_over(void **state)
{
	struct fake f;

	(void)state;
	begin(&f, 0);
	f.missed = 1;
	assert_int_equal(kring_rest(&f.r, 1, 0), KRING_READY);
	end(&f);
}

static void a_ring_ends_after_its_last_packet(void **state)
{
	struct fake f;

	(void)state;
	begin(&f, 0);
	publish(&f, 1);
	f.refuses = -ENOPROTOOPT;
	assert_int_equal(kring_bell(&f.r, 1), -ENOPROTOOPT);
	assert_true(f.r.ended);
	assert_int_equal(f.r.error, -ENOPROTOOPT);
	assert_int_equal(kring_rest(&f.r, 1, 0), KRING_READY);
	assert_int_equal(kring_take(&f.r, 9, &(uint32_t){0}), 1);
	assert_int_equal(kring_rest(&f.r, 1, 0), KRING_ENDED);
	kring_release(&f.r, 1);
	assert_int_equal(f.bells, 0);
	end(&f);

	begin(&f, 0);
	f.r.control->state = NFX_RING_GONE;
	assert_int_equal(kring_rest(&f.r, 1, 0), KRING_ENDED);
	assert_int_equal(kring_bell(&f.r, 0), -ENOENT);
	assert_int_equal(f.bells, 0);
	end(&f);
}

/* The module ended the ring while it sent: what it has sent must not be sent again. */
static void a_bell_that_fails_halfway_tells_what_was_sent(void **state)
{
	const struct endpoint src = {.family = AF_INET, .port = 30000};
	const struct packet_out out = {.len = 100, .dst = {.family = AF_INET, .port = 5000}};
	struct fake f;

	(void)state;
	begin(&f, 0);
	f.refuses = -ENOENT;
	f.before = 2;
	f.result[1] = ENETUNREACH;
	for (uint32_t i = 0; i < 4; i++)
		kring_put(&f.r, i, &src, &out);
	assert_int_equal(kring_bell(&f.r, 4), -ENOENT);
	assert_int_equal(f.r.send[0].result, 0);
	assert_int_equal(f.r.send[1].result, ENETUNREACH);
	assert_int_equal(f.r.send[2].result, KRING_UNSENT);
	assert_int_equal(f.r.send[3].result, KRING_UNSENT);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_are_read_in_order_as_numbers_wrap),
		cmocka_unit_test(all_slots_may_wait),
		cmocka_unit_test(no_number_leads_outside_the_slots),
		cmocka_unit_test(a_bell_tells_what_is_sent_taken_and_released),
		cmocka_unit_test(a_bell_that_fails_halfway_tells_what_was_sent),
		cmocka_unit_test(slots_return_without_sends),
		cmocka_unit_test(the_kernel_is_armed_by_the_burst_that_was_sent),
		cmocka_unit_test(one_bell_sends_and_waits),
		cmocka_unit_test(packets_that_come_while_it_rings_are_not_slept_over),
		cmocka_unit_test(a_ring_ends_after_its_last_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
