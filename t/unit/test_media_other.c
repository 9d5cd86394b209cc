/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets that are not RTP. Datagrams of a stream without RTP leave unchanged, whatever their
 * length and content, but only to a proven destination. ZRTP, DTLS and STUN pass where neither
 * side's keys are ours. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "media/again.h"
#include "media/other.h"
#include "media/rate.h"
#include "packet/side.h"
#include "proto/raw.h"

#define FIRST     "\0\0\1\6\0\0" /* UDPTL */
#define FIRST_LEN 6

static void stream(struct rig *r, uint32_t id, enum raw_kind kind, const char *remote)
{
	struct media_cmd cmd = rig_stream_cmd(
		id, id == A ? PORT_A : PORT_B, id, id == A ? B : A, MEDIA_NONE, remote);

	cmd.stream.rtp = cmd.stream.rtcp = false;
	cmd.stream.raw = (uint8_t)kind;
	assert_int_equal(media_command(r->m, &cmd), 0);
}

static struct rig *fax(enum raw_kind kind)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);

	stream(r, A, kind, "192.0.2.1:4000");
	stream(r, B, kind, "192.0.2.2:5000");
	return r;
}

/* Sends a datagram from this side's terminal. Returns whether it left unchanged. */
static bool passes(struct rig *r, uint32_t from, const void *p, uint32_t len)
{
	memcpy(rig_slot(r, from, from == A ? PORT_A : PORT_B), p, len);
	r->in[r->n - 1].len = len;
	rig_run(r);
	if (r->outs == 0)
		return false;
	assert_int_equal(r->outs, 1);
	assert_int_equal(r->out[0].len, len);
	assert_memory_equal(r->a.out + r->out[0].out_off, p, len);
	return true;
}

static void datagrams_of_every_length_and_first_byte_leave_as_they_came(void **state)
{
	(void)state;
	for (int serial = 0; serial < 2; serial++) {
		struct rig *r = fax(RAW_ANY);
		uint8_t p[1500];

		if (serial)
			rig_engine(r);
		assert_false(passes(r, A, "x", 1)); /* B has sent nothing */
		assert_int_equal(rig_dropped(r, A, PACKET_DROP_UNANSWERED), 1);
		assert_true(passes(r, B, "y", 1));
		for (uint32_t first = 0; first < 256; first++)
			for (uint32_t len = 1; len < 64; len++) {
				memset(p, (int)(first * 7 + len), len);
				p[0] = (uint8_t)first;
				assert_true(passes(r, A, p, len));
			}
		assert_true(passes(r, A, p, 1400));
		assert_false(passes(r, A, p, 0));
		assert_int_equal(rig_dropped(r, A, PACKET_DROP_MALFORMED), 1);
		assert_int_equal(
			atomic_load(&media_stream_counters(r->m, A)->packets), 1 + 256 * 63 + 1);
		assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->ssrc), 0);
		rig_free(r);
	}
}

static void who_takes_no_part_gets_first_datagrams_only_and_few(void **state)
{
	struct rig *r = fax(RAW_UDPTL);

	(void)state;
	assert_false(passes(r, A, "INVITE sip:a SIP/2.0", 20));
	for (uint32_t i = 0; i < MEDIA_BLIND_MAX; i++)
		assert_true(passes(r, A, FIRST, FIRST_LEN));
	assert_false(passes(r, A, FIRST, FIRST_LEN));
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_UNANSWERED), 2);
	/* The reply is not UDPTL, because the peer is another service. It opens no flow, however
	 * often it comes. */
	for (uint32_t i = 0; i < 10; i++)
		(void)passes(r, B, "REPLY secret", 12);
	assert_false(passes(r, A, "any", 3));
	assert_true(passes(r, B, FIRST, FIRST_LEN));
	assert_true(passes(r, A, "any", 3));
	/* Another address has not proved itself yet, though B has sent. */
	stream(r, B, RAW_UDPTL, "192.0.2.7:5000");
	assert_false(passes(r, A, "any", 3));
	stream(r, B, RAW_UDPTL, "192.0.2.2:53");
	assert_false(passes(r, A, FIRST, FIRST_LEN));
	rig_free(r);
}

/* T.38 may repeat the same bytes under any sequence number. A circle repeats them without end. */
static void a_watch_for_circles_lets_datagrams_be_repeated(void **state)
{
	static const uint8_t first[] = {0, 0x40, 0x80, 0xbf, 0xff};
	struct rig *r = fax(RAW_UDPTL);
	const struct media_cmd watch = {.type = MEDIA_STREAM_WATCH, .id = A};
	uint8_t p[20] = {0, 1, 1, 6};

	(void)state;
	assert_true(passes(r, B, FIRST, FIRST_LEN));
	for (uint32_t i = 0; i < sizeof(first); i++) {
		assert_int_equal(media_command(r->m, &watch), 0);
		p[0] = first[i];
		for (uint32_t n = 0; n <= AGAIN_REPORTS; n++)
			assert_true(passes(r, A, p, sizeof(p)));
		assert_false(passes(r, A, p, sizeof(p)));
		assert_int_equal(rig_dropped(r, A, PACKET_DROP_AGAIN), i + 1);
	}
	rig_free(r);
}

static void other_sources_need_a_probation(void **state)
{
	struct rig *r = fax(RAW_UDPTL);

	(void)state;
	stream(r, A, RAW_UDPTL, "192.0.2.77:4000"); /* behind a NAT */
	for (int i = 0; i < LEARN_REPORTS - 1; i++)
		assert_false(passes(r, A, FIRST, FIRST_LEN));
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_PROBATION), LEARN_REPORTS - 1);
	assert_true(passes(r, A, FIRST, FIRST_LEN));
	assert_true(r->m->stream[A].learn.confirmed);
	r->m->stream[A].learn.source.port++; /* now the address belongs to another party */
	assert_false(passes(r, A, FIRST, FIRST_LEN));
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_SOURCE), 1);
	rig_free(r);
}

static void nothing_passes_between_rtp_and_datagrams(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);

	(void)state;
	stream(r, A, RAW_ANY, "192.0.2.1:4000");
	assert_false(passes(r, A, FIRST, FIRST_LEN));
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_INACTIVE), 1);
	rig_free(r);
}

static void a_command_makes_datagrams_stale(void **state)
{
	struct rig *r = fax(RAW_UDPTL);
	struct media_cmd del = {.type = MEDIA_STREAM_DEL, .id = B};
	uint32_t jobs;

	(void)state;
	memcpy(rig_slot(r, A, PORT_A), FIRST, FIRST_LEN);
	r->in[0].len = FIRST_LEN;
	jobs = rig_prepare(r);
	assert_int_equal(jobs, 1);
	assert_int_equal(media_command(r->m, &del), 0);
	rig_complete(r, jobs);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_STALE);
	rig_free(r);
}

/* --- Between terminals ------------------------------------------------------------------------ */

static const uint8_t zrtp[28] = {0x10, 0, 0, 1, 'Z', 'R', 'T', 'P', 0, 0, 0, 7, 0x50, 0x5a, 0, 3,
	'C', 'o', 'n', 'f', '2', 'A', 'C', 'K'};
static const uint8_t dtls[13] = {22, 0xfe, 0xfd};
static const uint8_t stun[20] = {0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42};

static uint64_t others(const struct rig *r, enum media_other o)
{
	return atomic_load(&media_stream_counters(r->m, A)->others[o]);
}

static void zrtp_dtls_and_stun_pass_where_no_keys_are_ours(void **state)
{
	static const enum srtp_suite_id T[][2] = {{SUITE_PLAIN, SUITE_PLAIN},
		{SUITE_PLAIN, SUITE_AES_CM_128_80}, {SUITE_AES_CM_128_80, SUITE_PLAIN},
		{SUITE_AES_CM_128_80, SUITE_AES_CM_128_80}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig *r = rig_new(T[i][0], T[i][1], 0);
		bool want = i == 0;

		if (want) { /* B must have sent something */
			assert_false(passes(r, A, zrtp, sizeof(zrtp)));
			assert_int_equal(rig_dropped(r, A, PACKET_DROP_UNANSWERED), 1);
			assert_true(passes(r, B, zrtp, sizeof(zrtp)));
		}
		assert_int_equal(passes(r, A, zrtp, sizeof(zrtp)), want);
		assert_int_equal(passes(r, A, dtls, sizeof(dtls)), want);
		assert_int_equal(passes(r, A, stun, sizeof(stun)), want);
		assert_false(passes(r, A, zrtp, 27));
		assert_int_equal(others(r, MEDIA_OTHER_ZRTP), want ? 2 : 0);
		assert_int_equal(others(r, MEDIA_OTHER_ZRTP_DONE), want ? 2 : 0);
		assert_int_equal(others(r, MEDIA_OTHER_DTLS), want);
		assert_int_equal(others(r, MEDIA_OTHER_STUN), want);
		/* Not media: no packet counts, and no source is learned. */
		assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->packets), 0);
		assert_false(r->m->stream[A].learn.confirmed);
		assert_int_equal(r->m->stream[A].learn.source.family, 0);
		rig_free(r);
	}
}

/* A leg whose ZRTP ends at this relay: the other terminal's would break the exchange. */
static void zrtp_does_not_reach_a_leg_that_speaks_it_with_us(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);

	(void)state;
	assert_false(passes(r, A, dtls, sizeof(dtls)));
	assert_true(passes(r, B, dtls, sizeof(dtls)));
	assert_true(passes(r, A, zrtp, sizeof(zrtp)));
	r->m->stream[B].cfg.side = SIDE_BIT(SIDE_ZRTP);
	assert_false(passes(r, A, zrtp, sizeof(zrtp)));
	assert_true(passes(r, A, dtls, sizeof(dtls)));
	rig_free(r);
}

static void they_pass_from_nobody_else_and_teach_nothing(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);

	(void)state;
	for (int i = 0; i < 20; i++) {
		memcpy(rig_slot(r, A, PORT_A), zrtp, sizeof(zrtp));
		r->in[0].len = sizeof(zrtp);
		r->in[0].src.addr[3] = 99;
		rig_run(r);
		assert_int_equal(r->outs, 0);
	}
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_PROBATION), 20);
	assert_int_equal(r->m->stream[A].learn.source.family, 0);
	rig_free(r);
}

/* --- The rate --------------------------------------------------------------------------------- */

enum { RATE = 1000 };

/* A packet of A's terminal at this time. index: of RTP, or 0: of DTLS or STUN. */
static void comes(struct rig *r, const uint8_t *p, uint32_t len, uint64_t index, uint64_t now_ns)
{
	if (index) {
		rig_plain_rtp(rig_slot(r, A, PORT_A), 7, index);
		r->in[0].len = 172;
	} else {
		memcpy(rig_slot(r, A, PORT_A), p, len);
		r->in[0].len = len;
	}
	r->in[0].t_ns = now_ns;
	rig_run(r);
}

/* One other datagram first, so that the numbers of packets are odd. */
static void datagrams_of_dtls_are_limited(void **state)
{
	struct rig *r = fax(RAW_DTLS);
	uint64_t now = 1000 * NS_PER_SEC;

	(void)state;
	r->m->cfg.rate = RATE;
	comes(r, dtls, sizeof(dtls), 0, now);
	assert_true(r->m->stream[A].learn.confirmed);
	comes(r, (const uint8_t *)FIRST, FIRST_LEN, 0, now);
	for (uint32_t i = 0; i < RATE / 2; i++)
		comes(r, dtls, sizeof(dtls), 0, now += NS_PER_SEC / (RATE / 2));
	assert_false(r->m->stream[A].limited);
	for (uint32_t i = 0; i < 4 * RATE; i++)
		comes(r, dtls, sizeof(dtls), 0, now += NS_PER_SEC / (4 * RATE));
	assert_true(r->m->stream[A].limited);
	assert_in_range(rig_dropped(r, A, PACKET_DROP_RATE), 2 * RATE, 3 * RATE);
	rig_free(r);
}

/* RTP and STUN in any mixture: above the limit the excess is dropped, below it the stream is not
 * even watched. */
static void mixtures_are_limited(void **state)
{
	static const uint32_t every[] = {2, 3, 255, 256, 257};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(every); k++) {
		struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);
		uint64_t now = 1000 * NS_PER_SEC, index = 100;

		r->m->cfg.rate = RATE;
		for (uint32_t i = 0; i < 20; i++)
			comes(r, NULL, 0, index++, now += NS_PER_SEC);
		for (uint32_t i = 0; i < 8 * RATE_LOOK; i++) {
			comes(r, stun, sizeof(stun), i % every[k] ? 0 : index++,
				now += NS_PER_SEC / (RATE / 2));
			assert_false(r->m->stream[A].limited);
		}
		for (uint32_t i = 0; i < 4 * RATE; i++)
			comes(r, stun, sizeof(stun), i % every[k] ? 0 : index++,
				now += NS_PER_SEC / (4 * RATE));
		assert_true(r->m->stream[A].limited);
		assert_true(rig_dropped(r, A, PACKET_DROP_RATE) >= 2 * RATE);
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagrams_of_every_length_and_first_byte_leave_as_they_came),
		cmocka_unit_test(who_takes_no_part_gets_first_datagrams_only_and_few),
		cmocka_unit_test(a_watch_for_circles_lets_datagrams_be_repeated),
		cmocka_unit_test(other_sources_need_a_probation),
		cmocka_unit_test(nothing_passes_between_rtp_and_datagrams),
		cmocka_unit_test(a_command_makes_datagrams_stale),
		cmocka_unit_test(zrtp_dtls_and_stun_pass_where_no_keys_are_ours),
		cmocka_unit_test(zrtp_does_not_reach_a_leg_that_speaks_it_with_us),
		cmocka_unit_test(they_pass_from_nobody_else_and_teach_nothing),
		cmocka_unit_test(datagrams_of_dtls_are_limited),
		cmocka_unit_test(mixtures_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
