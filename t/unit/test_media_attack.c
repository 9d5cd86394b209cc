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

static void other_packet(struct call *c, uint64_t index)
{
	uint8_t p[172], *at = rig_slot(c->r, B, PORT_B);
	struct packet_in *in = &c->r->in[c->r->n - 1];

	rig_plain_rtp(p, 9, index);
	in->len = rig_protect(
		c->r, at, (struct rig_plain){p, 172, 12, B_TX, c->r->suite_b, index, false});
	in->t_ns = c->now;
}

/* Forged packets of this call among packets of the other, more than are prefetched at the
 * beginning: the other's jobs go first, in their order. */
static void go_last(struct call *c, uint64_t index)
{
	const uint32_t forged = SLOTS - 3;

	other_packet(c, index);
	for (uint32_t i = 1; i <= forged; i++)
		forged_packet(c, (uint16_t)(c->index + i), c->time);
	other_packet(c, index + 1);
	other_packet(c, index + 2);
	assert_int_equal(rig_prepare(c->r), SLOTS);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(c->r->m->note[i].in, i ? forged + i : 0);
		assert_false(c->r->a.job[i].flags & XC_JOB_DOUBT);
	}
	for (uint32_t i = 3; i < SLOTS; i++) {
		assert_int_equal(c->r->m->note[i].in, i - 2);
		assert_true(c->r->a.job[i].flags & XC_JOB_DOUBT);
	}
	rig_complete(c->r, SLOTS);
	assert_int_equal(c->r->outs, 3);
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
	talk(&c, ATTACK_PERIOD_NS / MS + 200, 0);
	assert_false(media_attack_suspects(c.r->m, c.now));
	assert_true(c.r->m->stream[A].fast);
	rig_free(c.r);
}

/* A terminal with wrong keys never has an authentic packet. Some time after its last packet the
 * worker uses the fast path again. A packet with a slightly earlier time does not end suspicion. */
static void suspicion_of_silent_streams_ends(void **state)
{
	struct call c = call_new(100);

	(void)state;
	talk(&c, 1000, 0);
	c.r->m->stream[A].learn.confirmed = false; /* no guard */
	for (uint32_t i = 0; i < 2 * ATTACK_FORGED; i++) {
		forged_packet(&c, (uint16_t)i, 0);
		(void)run(&c, 1);
	}
	assert_true(c.r->m->stream[A].suspected);
	assert_true(media_attack_suspects(c.r->m, c.now - MS));
	assert_true(media_attack_suspects(c.r->m, c.now + ATTACK_PERIOD_NS));
	assert_false(media_attack_suspects(c.r->m, c.now + ATTACK_PERIOD_NS + ATTACK_SECOND_NS));
	assert_false(c.r->m->stream[A].suspected);
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

/* One stream more than there are places, each with a port and a call of its own. */
enum { CROWD = ATTACK_STREAMS + 1, LAST = ATTACK_STREAMS };

static struct media *crowd_new(void)
{
	struct media_config cfg = {.max_ctx = 1,
		.max_stream = CROWD,
		.port_min = 30000,
		.port_max = 31000,
		.local_addrs = 1,
		.burst_max = SLOTS,
		.bursts = 1,
		.key_slots = KEYS};
	struct media_cmd cmd = {.type = MEDIA_CTX_SET, .ctx = {.rx_new = true, .tx_new = true}};
	struct rig none = {0};
	struct media *m;

	assert_int_equal(media_create(&m, &cfg), 0);
	cmd.ctx.rx = rig_crypto(&none, A_TX, SUITE_AES_CM_128_80);
	cmd.ctx.tx = rig_crypto(&none, A_RX, SUITE_AES_CM_128_80);
	assert_int_equal(media_command(m, &cmd), 0);
	for (uint32_t i = 0; i < CROWD; i++) {
		cmd = rig_stream_cmd(i, (uint16_t)(30000 + i), 0, i, MEDIA_NONE, "192.0.2.1:4000");
		assert_int_equal(media_command(m, &cmd), 0);
		m->stream[i].learn.confirmed = true;
	}
	return m;
}

/* A forged packet, random to its guard: steering drops it unseen, or media do. */
static void flood_one(struct media *m, uint32_t stream, uint64_t now, bool steered)
{
	const struct attack *t = &m->attacks->of[m->trial[stream].attack.place];
	bool refused = m->stream[stream].guarded && !guard_open(&t->window, now);

	if (!refused)
		media_attack_forged(m, stream, &(struct packet_in){.t_ns = now});
	else if (!steered)
		atomic_fetch_add(&m->counters[stream].drops[PACKET_DROP_GUARD], 1);
}

static void seconds_of_flood(
	struct media *m, uint64_t *now, uint32_t seconds, uint32_t last, bool steered)
{
	static struct media_guard g;
	uint64_t ms = *now / MS;

	for (uint64_t end = ms + seconds * 1000ull; ms < end; ms++) {
		for (uint32_t i = 0; i < CROWD; i++) {
			uint64_t rate = i == LAST ? last : 50;
			uint64_t at = ms * rate + i;

			/* a true packet each 50 ms */
			if ((ms + i) % 50 == 0)
				atomic_fetch_add(&m->counters[i].packets, 1);
			if (at / 1000 != (at + rate) / 1000)
				flood_one(m, i, ms * MS + i, steered);
			while (media_guard_next(m, &g))
				;
		}
	}
	*now = ms * MS;
}

/* All places are taken, by floods as strong as this one. The stream counts once a second. */
static void a_stream_without_a_place_is_counted(void **state)
{
	struct media *m = crowd_new();
	uint64_t now = 1000000 * MS;

	(void)state;
	seconds_of_flood(m, &now, 4, 0, false);
	assert_int_equal(media_attacked(m), ATTACK_STREAMS);
	assert_int_equal(media_attacks_left_out(m), 0);
	seconds_of_flood(m, &now, 10, 50, false);
	assert_false(m->stream[LAST].guarded);
	assert_true(m->stream[LAST].suspected);
	assert_in_range(media_attacks_left_out(m), 8, 10);
	assert_int_equal(media_attacks(m), ATTACK_STREAMS);
	assert_int_equal(
		media_command(m, &(struct media_cmd){.type = MEDIA_STREAM_DEL, .id = 77}), 0);
	m->stream[77].learn.confirmed = false;
	seconds_of_flood(m, &now, 3, 50, false);
	assert_true(m->stream[LAST].guarded);
	assert_int_equal(media_attacks(m), CROWD);
	media_destroy(m);
}

/* Floods against calls of one's own keep a place from nobody who is attacked harder, with steering
 * (which drops most packets unseen) or without. */
static void the_hardest_attacked_have_places(void **state)
{
	(void)state;
	for (int steered = 0; steered < 2; steered++) {
		struct media *m = crowd_new();
		uint64_t now = 1000000 * MS, begun;

		seconds_of_flood(m, &now, 4, 0, steered);
		assert_int_equal(media_attacked(m), ATTACK_STREAMS);
		seconds_of_flood(m, &now, 4, 900, steered);
		assert_true(m->stream[LAST].guarded);
		assert_int_equal(media_attacked(m), ATTACK_STREAMS);
		begun = media_attacks(m);
		for (int i = 0; i < 20; i++) {
			seconds_of_flood(m, &now, 1, 900, steered);
			assert_true(m->stream[LAST].guarded);
		}
		/* The others do not take turns for ever. */
		print_message("guards begun later: %u\n", (unsigned)(media_attacks(m) - begun));
		assert_true(media_attacks(m) - begun <= 20);
		assert_true(media_attacks_left_out(m) > 0);
		media_destroy(m);
	}
}

/* The calls with guards fell silent, and so did their floods: judged although nothing arrives. */
static void silent_streams_yield_their_places(void **state)
{
	struct media *m = crowd_new();
	uint64_t now = 1000000 * MS;
	static struct media_guard g;

	(void)state;
	seconds_of_flood(m, &now, 4, 0, true);
	assert_int_equal(media_attacked(m), ATTACK_STREAMS);
	for (uint32_t i = 0; i < 500; i++) {
		now += 20 * MS;
		flood_one(m, LAST, now, true);
		while (media_guard_next(m, &g))
			;
	}
	assert_true(m->stream[LAST].guarded);
	media_destroy(m);
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
		cmocka_unit_test(suspicion_of_silent_streams_ends),
		cmocka_unit_test(forged_rtcp_costs_no_cipher),
		cmocka_unit_test(steering_is_told),
		cmocka_unit_test(a_stream_without_a_place_is_counted),
		cmocka_unit_test(the_hardest_attacked_have_places),
		cmocka_unit_test(silent_streams_yield_their_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
