/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Streams under attack: floods with the terminal's address, SSRC and any sequence number cost no
 * packet of the call, and few ciphers; jumps, new SSRCs and the roll-over still get through; the
 * attack begins and ends. */
#include "media/attack.h"
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define MS 1000000ull

/* A's terminal, and an attacker with its address. */
struct call {
	struct rig *r;
	uint64_t now, index;
	uint32_t ssrc, time;
	uint32_t sent, relayed;   /* true packets */
	uint32_t forged, ciphers; /* forged ones, and those that were authenticated */
	uint64_t random;
};

static struct call call_new(uint64_t index)
{
	return (struct call){.r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0),
		.now = 1000 * MS,
		.index = index,
		.ssrc = 7,
		.time = 4000000000u,
		.random = 1};
}

static uint32_t any(struct call *c)
{
	c->random = c->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(c->random >> 33);
}

static void true_packet(struct call *c)
{
	uint8_t p[172], *at = rig_slot(c->r, A, PORT_A);
	struct packet_in *in = &c->r->in[c->r->n - 1];

	rig_plain_rtp(p, c->ssrc, c->index);
	put_be32(p + 4, c->time);
	in->len = rig_protect(
		c->r, at, (struct rig_plain){p, 172, 12, A_TX, c->r->suite_a, c->index, false});
	in->t_ns = c->now;
}

/* seq: of the forged packet. */
static void forged_packet(struct call *c, uint16_t seq, uint32_t time)
{
	uint8_t p[172], *at = rig_slot(c->r, A, PORT_A);
	struct packet_in *in = &c->r->in[c->r->n - 1];

	rig_plain_rtp(p, c->ssrc, seq);
	put_be32(p + 4, time);
	memcpy(at, p, 172);
	memset(at + 172, 0, 10);
	in->len = 182;
	in->t_ns = c->now;
}

/* Runs the burst. Returns whether the true packet, the last of it, has left. */
static bool run(struct call *c, uint32_t forged)
{
	uint32_t jobs = rig_prepare(c->r), outs;

	c->ciphers += jobs;
	c->forged += forged;
	rig_complete(c->r, jobs);
	outs = c->r->outs;
	assert_true(outs <= 1);
	c->ciphers -= outs;
	return outs;
}

/* So many milliseconds of the call, a packet each 20 ms, with n forged packets for each. */
static void talk(struct call *c, uint32_t ms, uint32_t n)
{
	for (uint32_t i = 0; i < ms / 20; i++) {
		/* spread over the 20 ms, as open periods are */
		for (uint32_t k = 0; k < n; k++) {
			c->now += 20 * MS / (n + 1);
			forged_packet(c, (uint16_t)any(c), any(c) * 2);
			if (c->r->n == 16 || k + 1 == n) {
				uint32_t batch = c->r->n;

				assert_false(run(c, batch));
			}
		}
		c->now += n ? 20 * MS / (n + 1) : 20 * MS;
		c->index++;
		c->time += 160;
		true_packet(c);
		c->sent++;
		c->relayed += run(c, 0);
	}
}

static bool guarded(const struct call *c)
{
	return media_attacked(c->r->m) == 1 && c->r->m->stream[A].guarded;
}

static void a_flood_costs_no_packet_and_few_ciphers(void **state)
{
	struct call c = call_new(100);

	(void)state;
	talk(&c, 1000, 0);
	assert_false(guarded(&c));
	assert_true(c.r->m->stream[A].fast);
	talk(&c, 2000, 40); /* 2,000 forged packets per second */
	assert_true(guarded(&c));
	c.ciphers = c.forged = 0;
	talk(&c, 60000, 40);
	assert_true(guarded(&c));
	assert_int_equal(c.sent, c.relayed);
	/* 1 of 32 in open periods, and the few that hit the window by chance */
	assert_true(c.ciphers > c.forged / 64);
	assert_true(c.ciphers < c.forged / 25);
	assert_int_equal(media_attacks(c.r->m), 1);
	rig_free(c.r);
}

static void the_attack_ends(void **state)
{
	struct call c = call_new(100);

	(void)state;
	talk(&c, 1000, 0);
	talk(&c, 1000, 40);
	assert_true(guarded(&c));
	talk(&c, 8 * 1000, 0);
	assert_true(guarded(&c));
	talk(&c, 8 * 1000, 0);
	assert_false(guarded(&c));
	assert_true(c.r->m->stream[A].fast);
	assert_int_equal(media_attacked(c.r->m), 0);
	assert_int_equal(c.sent, c.relayed);
	talk(&c, 2000, 40);
	assert_true(guarded(&c));
	assert_int_equal(media_attacks(c.r->m), 2);
	assert_int_equal(c.sent, c.relayed);
	rig_free(c.r);
}

/* Fewer forged packets than true ones: the stream is as any other. */
static void some_forged_packets_are_no_attack(void **state)
{
	struct call c = call_new(100);

	(void)state;
	for (int i = 0; i < 500; i++) {
		talk(&c, 40, 0);
		talk(&c, 20, 1);
	}
	assert_false(guarded(&c));
	assert_int_equal(c.sent, c.relayed);
	rig_free(c.r);
}

/* Jumps that a terminal may make while it is attacked. At most, it loses the packets until the
 * guard is open again. */
static void jumps_get_through_during_an_attack(void **state)
{
	(void)state;
	for (int what = 0; what < 5; what++) {
		struct call c = call_new(what == 3 ? 65000 : 100);
		uint32_t lost;

		talk(&c, 1000, 0);
		talk(&c, 3000, 40);
		assert_true(guarded(&c));
		assert_int_equal(c.sent, c.relayed);
		switch (what) {
		case 0: /* sequence numbers */
			c.index += 20000;
			break;
		case 1: /* timestamps */
			c.time += 1u << 31;
			break;
		case 2: /* SSRC */
			c.ssrc = 8;
			c.index = 30000;
			break;
		case 3: /* roll-over: in talk() below */
			break;
		case 4: /* silence, after which both go on */
			c.now += 5000 * MS;
			c.time += 40000;
			c.index += 200;
			break;
		}
		talk(&c, 20000, 40);
		lost = c.sent - c.relayed;
		assert_true(guarded(&c));
		/* GUARD_PERIODS of 33.6 ms */
		assert_true(lost <= (what < 3 ? 55 : 0));
		talk(&c, 5000, 40);
		assert_int_equal(c.sent - c.relayed, lost);
		rig_free(c.r);
	}
}

/* A terminal with any timestamps loses packets only until its third jump is seen. */
static void wild_timestamps_are_not_checked(void **state)
{
	struct call c = call_new(100);

	(void)state;
	talk(&c, 1000, 0);
	talk(&c, 2000, 40);
	for (int i = 0; i < 500; i++) {
		c.time = any(&c) * 2;
		talk(&c, 20, 40);
	}
	c.sent = c.relayed = 0;
	for (int i = 0; i < 500; i++) {
		c.time = any(&c) * 2;
		talk(&c, 20, 40);
	}
	assert_true(guarded(&c));
	assert_int_equal(c.sent, c.relayed);
	rig_free(c.r);
}

static void several_ssrcs_at_a_time_get_no_guard(void **state)
{
	struct call c = call_new(100);

	(void)state;
	talk(&c, 1000, 0);
	talk(&c, 3000, 40);
	assert_true(guarded(&c));
	for (int i = 0; i < 200; i++) {
		c.ssrc = 7 + (i & 1);
		talk(&c, 20, 40);
	}
	assert_false(guarded(&c));
	c.sent = c.relayed = 0;
	for (int i = 0; i < 100; i++) {
		c.ssrc = 7 + (i & 1);
		talk(&c, 20, 40);
	}
	assert_int_equal(c.sent, c.relayed);
	rig_free(c.r);
}

/* CLOCK_REALTIME was an hour ahead when the guard ended. */
static void a_clock_set_back_delays_no_guard(void **state)
{
	struct call c = call_new(100);

	(void)state;
	c.now += 3600000 * MS;
	talk(&c, 4000, 40);
	for (int i = 0; i < 200; i++) {
		c.ssrc = 7 + (i & 1);
		talk(&c, 20, 40);
	}
	assert_false(guarded(&c));
	c.now -= 3600000 * MS;
	c.ssrc = 7;
	talk(&c, 4000, 40);
	assert_true(guarded(&c));
	rig_free(c.r);
}

/* Forged packets of this call first, then a packet of the other: the other's job goes first. */
static void go_last(struct call *c, uint64_t index)
{
	uint8_t p[172], *at;

	for (int i = 1; i < 4; i++)
		forged_packet(c, (uint16_t)(c->index + (uint64_t)i), c->time);
	at = rig_slot(c->r, B, PORT_B);
	rig_plain_rtp(p, 9, index);
	c->r->in[3].len = rig_protect(
		c->r, at, (struct rig_plain){p, 172, 12, B_TX, c->r->suite_b, index, false});
	c->r->in[3].t_ns = c->now;
	assert_int_equal(rig_prepare(c->r), 4);
	assert_int_equal(c->r->m->note[0].in, 3);
	assert_false(c->r->a.job[0].flags & XC_JOB_DOUBT);
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(c->r->m->note[i].in, i - 1);
		assert_true(c->r->a.job[i].flags & XC_JOB_DOUBT);
	}
	rig_complete(c->r, 4);
	assert_int_equal(c->r->outs, 1);
}

static void suspects_go_last(void **state)
{
	struct call c = call_new(100);

	(void)state;
	talk(&c, 1000, 0);
	talk(&c, 2000, 40);
	assert_true(guarded(&c));
	go_last(&c, 500);
	rig_free(c.r);
}

/* A stream with several SSRCs gets no guard, but is suspected until the attack ends. */
static void streams_without_a_guard_go_last_too(void **state)
{
	struct call c = call_new(100);

	(void)state;
	talk(&c, 1000, 0);
	talk(&c, 1000, 40);
	for (int i = 0; i < 250; i++) {
		c.ssrc = 7 + (i & 1);
		talk(&c, 20, 40);
	}
	assert_int_equal(media_attacked(c.r->m), 0);
	assert_true(c.r->m->stream[A].suspected);
	go_last(&c, 500);
	talk(&c, ATTACK_PERIOD_NS / MS + 20, 0);
	assert_false(media_attack_suspects(c.r->m));
	assert_true(c.r->m->stream[A].fast);
	rig_free(c.r);
}

/* The engine writes nothing for a forged packet: it was not encrypted. */
static void forged_rtcp_costs_no_cipher(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	uint8_t was[64];
	uint32_t off;

	(void)state;
	rig_engine(r);
	rig_send_rtcp(r, 7, 1);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_send_rtcp(r, 7, 2)[20] ^= 1;
	assert_int_equal(rig_prepare(r), 1);
	off = r->a.job[0].out_off;
	memset(r->a.out + off, 0xaa, sizeof(was));
	memset(was, 0xaa, sizeof(was));
	rig_complete(r, 1);
	assert_int_equal(r->outs, 0);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_BAD_TAG);
	assert_memory_equal(r->a.out + off, was, sizeof(was));
	rig_free(r);
}

/* Reports to steering: the guard, its moves at most once per 8 packets, and its end. */
static void steering_is_told(void **state)
{
	struct call c = call_new(100);
	struct media_guard g = {0};
	uint32_t told = 0;

	(void)state;
	talk(&c, 1000, 0);
	assert_false(media_guard_next(c.r->m, &g));
	talk(&c, 1000, 40);
	assert_true(media_guard_next(c.r->m, &g));
	assert_true(g.on);
	assert_int_equal(g.local.port, PORT_A);
	assert_int_equal(g.guard.window.ssrc, 7);
	assert_int_equal(g.guard.window.port, 4000);
	assert_true((uint16_t)(c.index - g.guard.window.seq) <= ATTACK_TELL);
	assert_false(media_guard_next(c.r->m, &g));
	for (int i = 0; i < 800; i++) {
		talk(&c, 20, 10);
		if (media_guard_next(c.r->m, &g)) {
			told++;
			assert_int_equal(g.guard.window.seq, (uint16_t)c.index);
			assert_int_equal(g.guard.window.time, c.time);
		}
	}
	assert_int_equal(told, 800 / ATTACK_TELL);
	talk(&c, 16000, 0);
	assert_true(media_guard_next(c.r->m, &g));
	assert_false(g.on);
	assert_false(media_guard_next(c.r->m, &g));
	talk(&c, 2000, 40);
	while (media_guard_next(c.r->m, &g))
		;
	assert_int_equal(
		media_command(c.r->m, &(struct media_cmd){.type = MEDIA_STREAM_DEL, .id = A}), 0);
	assert_true(media_guard_next(c.r->m, &g));
	assert_false(g.on);
	assert_int_equal(media_attacked(c.r->m), 0);
	rig_free(c.r);
}

/* All places are taken. The stream counts once a second, and gets a guard when there is a place. */
static void a_stream_without_a_place_is_counted(void **state)
{
	struct call c = call_new(100);
	struct attacks *all;

	(void)state;
	all = c.r->m->attacks;
	for (uint32_t i = 0; i < ATTACK_STREAMS; i++)
		all->of[i].stream = B;
	talk(&c, 1000, 0);
	talk(&c, 10000, 40);
	assert_false(c.r->m->stream[A].guarded);
	assert_in_range(media_attacks_left_out(c.r->m), 8, 10);
	assert_int_equal(media_attacks(c.r->m), 0);
	assert_int_equal(c.sent, c.relayed);
	all->of[77].stream = MEDIA_NONE;
	talk(&c, 3000, 40);
	assert_true(guarded(&c));
	assert_int_equal(c.sent, c.relayed);
	rig_free(c.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_costs_no_packet_and_few_ciphers),
		cmocka_unit_test(the_attack_ends),
		cmocka_unit_test(some_forged_packets_are_no_attack),
		cmocka_unit_test(jumps_get_through_during_an_attack),
		cmocka_unit_test(wild_timestamps_are_not_checked),
		cmocka_unit_test(several_ssrcs_at_a_time_get_no_guard),
		cmocka_unit_test(a_clock_set_back_delays_no_guard),
		cmocka_unit_test(suspects_go_last),
		cmocka_unit_test(streams_without_a_guard_go_last_too),
		cmocka_unit_test(forged_rtcp_costs_no_cipher),
		cmocka_unit_test(steering_is_told),
		cmocka_unit_test(a_stream_without_a_place_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
