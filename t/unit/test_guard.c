/* SPDX-License-Identifier: GPL-2.0-or-later */
/* packet/guard.h against a simple model in wide signed numbers, and its open periods. */
#include "packet/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "guard_mac.h"

static uint64_t state_of_random = 1;

static uint64_t any(void)
{
	state_of_random = state_of_random * 6364136223846793005ull + 1442695040888963407ull;
	return state_of_random >> 11 ^ state_of_random << 31;
}

static uint64_t below(uint64_t n)
{
	return (any() >> 7) % n;
}

/* The shortest signed way from a to b, on a circle of this many bits. */
static int64_t way(uint64_t a, uint64_t b, unsigned bits)
{
	int64_t d = (int64_t)((b - a) & ((1ull << bits) - 1));

	return d >= 1ll << (bits - 1) ? d - (1ll << bits) : d;
}

/* Between the two bounds, the clock's rounding decides: not looked at. */
static bool model_time(const struct guard_window *w, int64_t time, int64_t passed)
{
	return !(w->flags & GUARD_TIMES) ||
		(time >= -(int64_t)GUARD_TIME_BEHIND &&
			time <= (int64_t)GUARD_TIME_AHEAD + 96 * (passed + passed / 50 + 8));
}

static enum guard_result model(
	const struct guard *g, const struct guard_packet *p, uint64_t now, bool open)
{
	const struct guard_window *w = &g->window;
	bool rtp = p->first >= 128 && p->first < 192, rtcp = p->second >= 192 && p->second < 224;
	uint32_t type = p->second % 128;
	enum guard_result r = GUARD_PASS;
	int64_t seq = way(w->seq, p->seq, 16), time = way(w->time, p->time, 32);
	int64_t passed = now > w->at_ns ? (int64_t)((now - w->at_ns) / 1000000) : 0;

	if (memcmp(p->addr, w->addr, 16) || p->port != w->port ||
		(p->v6 == 1) != ((w->flags & GUARD_IS_V6) != 0))
		r = GUARD_SOURCE;
	else if (!rtp || rtcp)
		r = w->flags & (rtp ? GUARD_RTCP : GUARD_OTHER) ? GUARD_PASS : GUARD_KIND;
	else if ((w->types[0] || w->types[1]) && !(w->types[type / 64] & 1ull << type % 64))
		r = GUARD_TYPE;
	else if (p->ssrc != w->ssrc)
		r = GUARD_SSRC;
	else if (w->flags & GUARD_TAGS && !(w->flags & GUARD_MACS))
		switch (preauth_window_check(&g->tags, p->seq, p->tag)) {
		case PREAUTH_TRUE:
			break;
		case PREAUTH_OUTSIDE: /* SRTP decides on packets that come late */
			r = seq > 0 || seq < -(int64_t)GUARD_BEHIND ? GUARD_INDEX
				: model_time(w, time, passed)       ? GUARD_PASS
								    : GUARD_TIME;
			break;
		default:
			return GUARD_TAG;
		}
	else if (seq < -(int64_t)GUARD_BEHIND || seq >= (int64_t)GUARD_AHEAD)
		r = GUARD_INDEX;
	else if (!model_time(w, time, passed))
		r = GUARD_TIME;
	if (r != GUARD_PASS && !open)
		return r;
	return w->flags & GUARD_MACS && rtp && !rtcp && p->tag != guard_mac(g, p) ? GUARD_TAG
										  : GUARD_PASS;
}

static struct guard random_guard(void)
{
	struct guard g = {.window = {.addr = {below(2), below(2)},
				  .types = {below(2) ? any() : 0, below(2) ? any() : 0},
				  .at_ns = (1ull << 40) + below(1ull << 36),
				  .ssrc = (uint32_t)below(3),
				  .time = (uint32_t)any(),
				  .seq = (uint16_t)any(),
				  .port = (uint16_t)(1 + below(2)),
				  .flags = (uint8_t)below(32),
				  .epoch_ns = any() >> 20}};

	if (below(3) == 0) {
		g.window.flags = (uint8_t)((g.window.flags & ~GUARD_TAGS) | GUARD_MACS);
		g.sip[0] = any();
		g.sip[1] = any();
		return g;
	}
	preauth_window_init(&g.tags, any() & 0xffffffffffff, 32);
	if (g.window.flags & GUARD_TAGS) {
		__u64 first;
		uint32_t tag[PREAUTH_WINDOW], n = preauth_window_room(&g.tags, &first);

		for (uint32_t i = 0; i < n; i++)
			tag[i] = (uint32_t)(first + i) % 4;
		preauth_window_add(&g.tags, tag, n);
		g.window.seq = (uint16_t)first;
	}
	return g;
}

/* Near to what the guard expects, so that all branches are taken. */
static struct guard_packet random_packet(const struct guard *g)
{
	const struct guard_window *w = &g->window;
	struct guard_packet p = {.addr = {below(30) ? w->addr[0] : any(), w->addr[1]},
		.port = (uint16_t)(below(30) ? w->port : below(3)),
		.v6 = below(30) ? w->flags & GUARD_IS_V6 : (uint8_t)below(2),
		.first = (uint8_t)(below(20) ? 0x80 : any()),
		.second = (uint8_t)any(),
		.seq = (uint16_t)(w->seq + below(1000) - 500),
		.time = (uint32_t)(w->time + below(6000000) - 3000000),
		.ssrc = (uint32_t)(below(10) ? w->ssrc : below(3)),
		.tag = (uint32_t)below(4)};

	if (w->flags & GUARD_MACS && below(2))
		p.tag = guard_mac(g, &p);
	return p;
}

static void agrees_with_the_model(void **state)
{
	uint32_t seen[GUARD_RESULTS] = {0};

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		struct guard g = random_guard();

		for (uint32_t k = 0; k < 3000; k++) {
			struct guard_packet p = random_packet(&g);
			uint64_t now = g.window.at_ns + below(1ull << 34) - (1 << 20);
			enum guard_result r = guard_check(&g, &p, now);
			enum guard_result want = model(&g, &p, now, guard_open(&g.window, now));
			int64_t lead = way(g.window.time, p.time, 32) - (int64_t)GUARD_TIME_AHEAD;
			int64_t ms = ((int64_t)now - (int64_t)g.window.at_ns) / 1000000;

			if (r != want && lead >= 96 * ms && lead <= 96 * (ms + ms / 50 + 8))
				continue; /* the clock's rounding */
			assert_int_equal(r, want);
			seen[r]++;
		}
	}
	for (int r = 0; r < GUARD_RESULTS; r++)
		assert_true(seen[r] > 100);
}

/* A packet may meet a guard that its owner has wiped. */
static void a_wiped_guard_passes_all(void **state)
{
	static const struct guard none;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		struct guard g = random_guard();
		struct guard_packet p = random_packet(&g);

		p.port = (uint16_t)(1 + below(65535));
		assert_int_equal(guard_check(&none, &p, any() >> 10), GUARD_PASS);
	}
}

/* An open period is longer than the time between two packets, and comes again soon. */
static void opens_for_a_part_of_the_time(void **state)
{
	const uint64_t period = 1ull << GUARD_PERIOD_SHIFT, step = period / 64;

	(void)state;
	for (uint32_t phase = 0; phase < 256; phase += 51) {
		for (int quiet = 0; quiet < 2; quiet++) {
			uint32_t open = 0, run = 0, longest = 0, gap = 0, widest = 0;

			for (uint32_t i = 0; i < 64 * GUARD_PERIODS * 8; i++) {
				uint64_t now = (phase * 123456789ull) + (1ull << 50) + i * step;
				struct guard_window w = {.epoch_ns = phase * 123456789ull,
					.at_ns = now - (quiet ? 2 : 0) * GUARD_QUIET_NS};

				if (guard_open(&w, now)) {
					open++;
					gap = 0;
					longest = ++run > longest ? run : longest;
				} else {
					run = 0;
					widest = ++gap > widest ? gap : widest;
				}
			}
			assert_int_equal(
				open, 64 * 8 * (quiet ? GUARD_PERIODS / GUARD_PERIODS_QUIET : 1));
			assert_int_equal(longest, 64);
			assert_int_equal(
				widest, 64 * (quiet ? GUARD_PERIODS_QUIET - 1 : GUARD_PERIODS - 1));
		}
	}
	assert_true(period > 30000000ull);
}

/* A call of hours, with silences in which only the timestamp moves, and telephone events in which
 * it stands still: no packet is refused. */
static void a_true_stream_passes(void **state)
{
	static const uint32_t clock[] = {8, 16, 48, 90, 96};

	(void)state;
	for (size_t c = 0; c < 5; c++) {
		struct guard g = {.window = {.at_ns = 1ull << 40, .flags = GUARD_TIMES, .ssrc = 7}};
		uint64_t now = g.window.at_ns, at = 0;
		uint32_t untold = 0;
		struct guard_packet p = {.first = 0x80, .ssrc = 7};

		for (uint32_t i = 0; i < 200000; i++) {
			uint64_t pause = below(500) ? 20 : 20 + below(110000);

			now += pause * 1000000;
			at += pause;
			p.seq = (uint16_t)(p.seq + 1 + (below(50) ? 0 : below(20)));
			p.time = (uint32_t)(at * clock[c]);
			if (below(3) == 0)
				p.time -= (uint32_t)below(9000) * clock[c];
			assert_int_equal(guard_window_check(&g.window, &p, now), GUARD_PASS);
			if (++untold == 8 || pause > 20) {
				untold = 0;
				g.window.seq = p.seq;
				g.window.time = p.time;
				g.window.at_ns = now;
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_model),
		cmocka_unit_test(a_wiped_guard_passes_all),
		cmocka_unit_test(opens_for_a_part_of_the_time),
		cmocka_unit_test(a_true_stream_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
