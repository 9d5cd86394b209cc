/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Streams with an audio session: authentic packets go to the codec thread decrypted, and its
 * packets leave under the leg's keys. */
#include "media_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "media/rtcp_stats.h"
#include "packet/audio.h"

#define K80 SUITE_AES_CM_128_80
enum { SERIAL_A = 70, SERIAL_B = 71, OURS = 0x77 };

static struct audio_channel *channel(struct rig *r)
{
	static struct audio_channel *one;

	one = aligned_alloc(64, sizeof(*one));
	assert_non_null(one);
	assert_int_equal(audio_channel_init(one), 0);
	r->m->cfg.audio = &one;
	r->m->cfg.audio_threads = 1;
	return one;
}

static void end(struct rig *r, struct audio_channel *c)
{
	audio_channel_fini(c);
	free(c);
	rig_free(r);
}

static void use_audio(struct rig *r, uint32_t stream, uint32_t serial)
{
	struct media_cmd cmd = {.type = MEDIA_STREAM_SET, .id = stream, .now_ns = 1};

	cmd.stream = r->m->stream[stream].cfg;
	cmd.stream.audio = serial;
	assert_int_equal(media_command(r->m, &cmd), 0);
}

/* A call whose both legs have a session. */
static struct rig *transcoded(struct audio_channel **c)
{
	struct rig *r = rig_new(K80, K80, 0);

	*c = channel(r);
	use_audio(r, A, SERIAL_A);
	use_audio(r, B, SERIAL_B);
	use_audio(r, B_RTCP, SERIAL_B);
	return r;
}

/* The session of B's leg gives a packet with this number. */
static void give(struct audio_channel *c, uint32_t stream, uint32_t serial, uint64_t index)
{
	struct audio_packet *p = audio_give(c, false);

	assert_non_null(p);
	p->stream = stream;
	p->serial = serial;
	p->rtcp = stream == B_RTCP;
	p->t_ns = 5;
	p->len = p->rtcp ? 28 : 172;
	if (p->rtcp)
		rig_plain_rtcp(p->bytes, OURS, (uint32_t)index);
	else
		rig_plain_rtp(p->bytes, OURS, index);
	audio_given(c);
}

/* One burst of sessions' packets. */
static uint32_t run(struct rig *r)
{
	struct batch b = {.job = r->a.job, .status = r->a.status};

	r->n = media_audio_take(r->m, &r->a, 0, r->in, SLOTS);
	b.n = media_audio_prepare(r->m, &r->a, r->in, r->n, r->a.job);
	rig_complete(r, b.n);
	return r->outs;
}

static void authentic_packets_go_to_the_session(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);
	const struct audio_packet *p;
	uint8_t plain[172];

	(void)state;
	assert_false(r->m->stream[A].fast);
	rig_send(r, 7, 100, A_TX);
	rig_send(r, 7, 101, A_TX)[60] ^= 1;
	rig_send(r, 7, 100, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_int_equal(r->in[0].verdict, PACKET_AUDIO);
	assert_int_equal(r->in[1].verdict, PACKET_DROP_BAD_TAG);
	assert_int_equal(r->in[2].verdict, PACKET_DROP_REPLAY);
	p = audio_read(c);
	assert_non_null(p);
	rig_plain_rtp(plain, 7, 100);
	assert_int_equal(p->len, sizeof(plain));
	assert_memory_equal(p->bytes, plain, sizeof(plain));
	assert_int_equal(p->stream, A);
	assert_int_equal(p->serial, SERIAL_A);
	assert_false(p->rtcp);
	audio_read_end(c);
	assert_null(audio_read(c));
	/* The terminal counts as heard, its source is confirmed. */
	assert_int_equal(r->m->counters[A].packets, 1);
	assert_true(r->m->stream[A].learn.confirmed);
	end(r, c);
}

static void rtcp_ends_in_the_session(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);
	const struct audio_packet *p;

	(void)state;
	rig_send_rtcp(r, 7, 3);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_int_equal(r->in[0].verdict, PACKET_AUDIO);
	p = audio_read(c);
	assert_non_null(p);
	assert_true(p->rtcp);
	assert_int_equal(p->len, 28);
	end(r, c);
}

/* A sender report with one block. lsr, dlsr: what the block refers to. */
struct said {
	uint32_t ntp, lsr, dlsr, jitter;
	uint8_t fraction;
};

static void write_report(uint8_t p[52], const struct said *s)
{
	memset(p, 0, 52);
	p[0] = 0x81;
	p[1] = 200;
	put_be16(p + 2, 12);
	put_be32(p + 4, OURS);
	put_be32(p + 8, s->ntp >> 16);
	put_be32(p + 12, s->ntp << 16);
	put_be32(p + 28, 7);
	p[32] = s->fraction;
	put_be32(p + 32, (uint32_t)s->fraction << 24 | 3);
	put_be32(p + 40, s->jitter);
	put_be32(p + 44, s->lsr);
	put_be32(p + 48, s->dlsr);
}

/* The quality of A's media at B combines both legs: loss and jitter from A to us, which we report
 * to A, and from us to B, which B reports to us. Without a report of B the first counts. */
static void quality_is_that_of_both_legs(void **state)
{
	const uint64_t s_ns = 1000000000ull;
	const struct said to_a = {.ntp = 1 << 16, .fraction = 26, .jitter = 80},
			  to_b = {.ntp = 2 << 16},
			  by_b = {.ntp = 9 << 16,
				  .fraction = 13,
				  .jitter = 160,
				  .lsr = 2 << 16,
				  .dlsr = 6554};
	struct packet_in in = {.t_ns = 100 * s_ns + 200000000};
	struct media_rtcp_report report;
	struct audio_channel *c;
	struct rig *r = transcoded(&c);
	struct media_quality q;
	struct ring tap;
	uint8_t p[52];

	(void)state;
	assert_int_equal(ring_init(&tap, 8, sizeof(struct media_rtcp_report)), 0);
	media_rtcp_tap(r->m, &tap);
	write_report(p, &to_a);
	media_rtcp_said(r->m, A, p, sizeof(p), 100 * s_ns);
	media_stream_quality(r->m, A, &q);
	assert_int_equal(q.samples, 0); /* B may still report */
	write_report(p, &to_b);
	media_rtcp_said(r->m, B_RTCP, p, sizeof(p), 100 * s_ns);
	write_report(p, &by_b);
	media_rtcp_ended(r->m, B_RTCP, &in, p, sizeof(p));
	media_stream_quality(r->m, A, &q);
	assert_int_equal(q.samples, 1);
	assert_int_equal(q.lost, 3);
	assert_int_equal(q.low[QUALITY_LOSS], 507 + 9493 * 1015 / 10000);
	assert_int_equal(q.low[QUALITY_JITTER], 30000);
	assert_in_range(q.low[QUALITY_RTT], 99000, 101000);
	assert_in_range(q.low[QUALITY_MOS], 100, 350);
	assert_int_equal(ring_pop(&tap, &report), 1);
	assert_int_equal(report.stream, B_RTCP);
	assert_int_equal(report.info.block[0].fraction, 13);
	write_report(p, &to_a); /* B reports: nothing is counted twice */
	media_rtcp_said(r->m, A, p, sizeof(p), 105 * s_ns);
	media_stream_quality(r->m, A, &q);
	assert_int_equal(q.samples, 1);
	media_rtcp_said(r->m, A, p, sizeof(p), 140 * s_ns); /* B is silent */
	media_stream_quality(r->m, A, &q);
	assert_int_equal(q.samples, 2);
	assert_int_equal(q.high[QUALITY_LOSS], 1015);
	assert_int_equal(q.high[QUALITY_JITTER], 10000);
	for (uint32_t n = 0; n < sizeof(p); n++) { /* cut short */
		media_rtcp_said(r->m, A, p, n, 105 * s_ns);
		media_rtcp_ended(r->m, A, &in, p, n);
	}
	media_rtcp_tap(r->m, NULL);
	ring_fini(&tap);
	end(r, c);
}

static void packets_of_the_session_leave_under_the_legs_keys(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);
	uint8_t plain[172], got[ARENA_MAX_PACKET];

	(void)state;
	give(c, B, SERIAL_B, 65535);
	give(c, B, SERIAL_B, 65536);
	give(c, B_RTCP, SERIAL_B, 1);
	assert_true(media_audio_waits(r->m));
	assert_int_equal(run(r), 3);
	for (uint32_t i = 0; i < 2; i++) {
		rig_plain_rtp(plain, OURS, 65535 + i);
		assert_int_equal(rig_open(r, i, got, B_RX, 65535 + i, false), sizeof(plain));
		assert_memory_equal(got, plain, sizeof(plain));
		assert_int_equal(r->out[i].dst.port, 5000);
		assert_int_equal(r->out[i].local.port, PORT_B);
	}
	assert_int_equal(rig_open(r, 2, got, B_RX, 0, true), 28);
	assert_int_equal(r->out[2].dst.port, 5001);
	assert_false(media_audio_waits(r->m));
	end(r, c);
}

/* Whatever a codec thread does, no index is used twice under a key. */
static void an_index_is_sent_once(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);

	(void)state;
	give(c, B, SERIAL_B, 500);
	give(c, B, SERIAL_B, 500);
	assert_int_equal(run(r), 1);
	give(c, B, SERIAL_B, 500);
	assert_int_equal(run(r), 0);
	assert_int_equal(rig_dropped(r, B, PACKET_DROP_NONCE), 2);
	end(r, c);
}

/* A large step of the sequence number is the session's own wish. */
static void a_step_needs_no_proof(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);

	(void)state;
	give(c, B, SERIAL_B, 500);
	give(c, B, SERIAL_B, 20500);
	assert_int_equal(run(r), 2);
	end(r, c);
}

static void packets_of_ended_sessions_are_dropped(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);

	(void)state;
	give(c, B, SERIAL_B + 1, 1);
	give(c, B, SERIAL_A, 2);
	give(c, 5, SERIAL_B, 3);
	give(c, 5000, SERIAL_B, 3);
	give(c, B, SERIAL_B, 4);
	assert_int_equal(run(r), 1);
	assert_int_equal(c->stale, 4);
	use_audio(r, B, 0);
	give(c, B, SERIAL_B, 5);
	assert_int_equal(run(r), 0);
	assert_int_equal(c->stale, 5);
	end(r, c);
}

/* A session that is not in force: a stream without it relays as before. */
static void other_streams_are_relayed_as_before(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);

	(void)state;
	use_audio(r, A, 0);
	rig_send(r, 7, 100, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_got(r, 0, 7, 100, 100);
	assert_true(r->m->stream[A].fast);
	end(r, c);
}

static void a_flood_uses_up_its_own_share(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		rig_send(r, 7, i, A_TX);
		rig_run(r);
	}
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_AUDIO_FULL), 100 - AUDIO_SHARE);
	for (uint32_t i = 0; i < AUDIO_SHARE; i++) {
		assert_non_null(audio_read(c));
		audio_read_end(c);
	}
	assert_null(audio_read(c));
	rig_send(r, 7, 100, A_TX);
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_AUDIO);
	end(r, c);
}

/* At most eight packets wait at once: they keep their order, in the same eight entries. */
static void entries_are_used_again(void **state)
{
	struct rig *r = rig_new(K80, K80, 0);
	struct audio_channel *c = channel(r);
	const struct audio_packet *p, *first = NULL, *last = NULL;
	uint8_t bytes[20] = {0};
	uint64_t put = 0, got = 0;

	(void)state;
	for (uint32_t i = 0; i < 3 * AUDIO_ENTRIES; i++) {
		for (uint32_t n = 0; n < 1 + i * 7 % 8; n++) {
			struct audio_share share = {0};
			struct audio_packet head = {.len = sizeof(bytes), .t_ns = put++};

			assert_int_equal(audio_take(c, &share, &head, bytes), 0);
		}
		while ((p = audio_read(c))) {
			assert_int_equal(p->t_ns, got++);
			first = !first || p < first ? p : first;
			last = !last || p > last ? p : last;
			audio_read_end(c);
		}
	}
	assert_int_equal(got, put);
	assert_int_equal(last - first, 7);
	end(r, c);
}

static void emergency_calls_have_a_reserve(void **state)
{
	struct audio_share share[AUDIO_ENTRIES] = {0};
	struct rig *r = rig_new(K80, K80, 0);
	struct audio_channel *c = channel(r);
	struct audio_packet head = {.len = 20};
	uint8_t bytes[AUDIO_PACKET_MAX + 1] = {0};
	uint32_t n = 0, more = 0, back = 0;

	(void)state;
	for (uint32_t i = 0; i < AUDIO_ENTRIES; i++)
		n += !audio_take(c, &share[i], &head, bytes);
	assert_int_equal(n, AUDIO_ENTRIES - AUDIO_RESERVE);
	head.emergency = true;
	for (uint32_t i = 0; i < AUDIO_ENTRIES; i++)
		more += !audio_take(c, &share[i], &head, bytes);
	assert_int_equal(more, AUDIO_RESERVE);
	head.len = AUDIO_PACKET_MAX + 1;
	assert_int_equal(audio_take(c, &share[0], &head, bytes), -EMSGSIZE);
	while (back < 2 * AUDIO_ENTRIES && audio_give(c, false)) {
		audio_given(c);
		back++;
	}
	assert_int_equal(back, AUDIO_ENTRIES - AUDIO_RESERVE);
	assert_non_null(audio_give(c, true));
	assert_int_equal(c->back_full, 1);
	end(r, c);
}

/* A leg without keys, or without a destination, sends nothing. */
static void nothing_leaves_a_leg_that_is_not_ready(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);
	struct media_cmd cut = {.type = MEDIA_STREAM_CUT, .id = B};

	(void)state;
	assert_int_equal(media_command(r->m, &cut), 0);
	give(c, B, SERIAL_B, 1);
	assert_int_equal(run(r), 0);
	assert_int_equal(rig_dropped(r, B, PACKET_DROP_NO_DESTINATION), 1);
	end(r, c);
}

/* After a restart SSRCs of terminals change; an audio session's is its own. */
static void the_session_keeps_its_ssrc(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);
	struct media_cmd cmd = {.type = MEDIA_CTX_SET, .id = 1, .now_ns = 1};
	uint8_t got[ARENA_MAX_PACKET];

	(void)state;
	cmd.ctx = r->m->ctx_cfg[1];
	cmd.ctx.rename = 0x1234567;
	assert_int_equal(media_command(r->m, &cmd), 0);
	give(c, B, SERIAL_B, 9);
	assert_int_equal(run(r), 1);
	assert_int_equal(rig_open(r, 0, got, B_RX, 9, false), 172);
	assert_int_equal(be32(got + 8), OURS);
	end(r, c);
}

/* A restored session continues with its roll-over counter. No packet is sent above the ceiling, and
 * no other packet under the session's SSRC. */
static void a_session_stays_below_its_ceiling(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);
	struct media_cmd set = {.type = MEDIA_CTX_SET, .id = 1, .now_ns = 1};
	const struct media_cmd resume = {.type = MEDIA_CTX_RESUME,
		.id = 1,
		.ctx_resume = {
			.n = 1, .mark = {{.ssrc = OURS, .table = MEDIA_TX_RTP, .index = 70000}}}};
	uint8_t got[ARENA_MAX_PACKET];

	(void)state;
	set.ctx = r->m->ctx_cfg[1];
	set.ctx.own_ssrc = OURS;
	set.ctx.ceiling = (struct ceiling){
		.from_ns = UINT64_MAX, .unit_ns = 1, .first = 70002 - CEILING_BURST};
	assert_int_equal(media_command(r->m, &set), 0);
	assert_int_equal(media_command(r->m, &resume), 0);
	give(c, B, SERIAL_B, 70000);
	give(c, B, SERIAL_B, 70001);
	give(c, B, SERIAL_B, 70002);
	give(c, B, SERIAL_B, 70003);
	assert_int_equal(run(r), 2);
	assert_int_equal(rig_open(r, 0, got, B_RX, 70001, false), 172);
	assert_int_equal(rig_open(r, 1, got, B_RX, 70002, false), 172);
	assert_int_equal(rig_dropped(r, B, PACKET_DROP_NONCE), 2);
	/* Without the session, A's terminal may not send under that SSRC. */
	use_audio(r, A, 0);
	use_audio(r, B, 0);
	rig_send(r, OURS, 9, A_TX);
	rig_send(r, 8, 9, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_NONCE), 1);
	end(r, c);
}

/* A listener hears the terminal as it sent. */
static void listeners_hear_what_the_terminal_sent(void **state)
{
	struct audio_channel *c;
	struct rig *r = transcoded(&c);
	struct media_cmd l = rig_stream_cmd(4, 30006, 1, MEDIA_NONE, MEDIA_NONE, "192.0.2.9:6000");
	struct media_cmd a = {.type = MEDIA_STREAM_SET, .id = A, .now_ns = 1};

	(void)state;
	l.stream.rtp = l.stream.listener = true;
	assert_int_equal(media_command(r->m, &l), 0);
	a.stream = r->m->stream[A].cfg;
	a.stream.copy[false] = 5;
	assert_int_equal(media_command(r->m, &a), 0);
	rig_send(r, 7, 100, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(r->out[0].dst.port, 6000);
	assert_non_null(audio_read(c));
	end(r, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(authentic_packets_go_to_the_session),
		cmocka_unit_test(rtcp_ends_in_the_session),
		cmocka_unit_test(quality_is_that_of_both_legs),
		cmocka_unit_test(packets_of_the_session_leave_under_the_legs_keys),
		cmocka_unit_test(an_index_is_sent_once),
		cmocka_unit_test(a_step_needs_no_proof),
		cmocka_unit_test(packets_of_ended_sessions_are_dropped),
		cmocka_unit_test(other_streams_are_relayed_as_before),
		cmocka_unit_test(a_flood_uses_up_its_own_share),
		cmocka_unit_test(entries_are_used_again),
		cmocka_unit_test(emergency_calls_have_a_reserve),
		cmocka_unit_test(nothing_leaves_a_leg_that_is_not_ready),
		cmocka_unit_test(the_session_keeps_its_ssrc),
		cmocka_unit_test(a_session_stays_below_its_ceiling),
		cmocka_unit_test(listeners_hear_what_the_terminal_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
