/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sources that a stream relays. test_learn.c tests the rules of learn.c; this file tests their
 * effect on packets. */
#include "media/ssrc.h"
#include "media_rig.h"
#include "packet/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define CM80  SUITE_AES_CM_128_80
#define MS    1000000ull
#define THIEF "203.0.113.66:666"
#define NAT   "198.51.100.7:5555"

struct tape {
	uint32_t packets;
};

static void tape(void *arg, uint32_t tap, const struct arena *a, const struct packet_in *in,
	const struct xc_job *j)
{
	(void)tap, (void)a, (void)in, (void)j;
	((struct tape *)arg)->packets++;
}

static uint64_t now = 100000 * MS;

/* Sends from this address to A's port, 20 ms after the previous packet. */
static enum packet_verdict from(struct rig *r, const char *src, uint64_t index)
{
	rig_send(r, 7, index, r->suite_a == SUITE_PLAIN ? 0 : A_TX);
	if (src)
		assert_int_equal(endpoint_parse(&r->in[0].src, str_from(src)), 0);
	r->in[0].t_ns = now += 20 * MS;
	rig_run(r);
	return (enum packet_verdict)r->in[0].verdict;
}

static uint16_t remote_port(const struct rig *r, uint32_t stream)
{
	struct endpoint e;

	media_stream_remote(r->m, stream, &e);
	return e.port;
}

static void on_probation_a_packet_does_nothing(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, CM80, 0);
	struct media_cmd a = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
	const struct media_stream_counters *c = media_stream_counters(r->m, A);
	struct tape t = {0};

	(void)state;
	r->m->cfg.tap = tape;
	r->m->cfg.tap_arg = &t;
	a.stream.tap = 1;
	assert_int_equal(media_command(r->m, &a), 0);
	for (uint64_t i = 0; i < LEARN_PACKETS - 1; i++)
		assert_int_equal(from(r, THIEF, 30000 + i), PACKET_DROP_PROBATION);
	assert_int_equal(t.packets, 0);
	assert_int_equal(atomic_load(&c->packets), 0);
	assert_int_equal(atomic_load(&c->last_packet_ns), 0);
	assert_int_equal(atomic_load(&c->errors), LEARN_PACKETS - 1);
	assert_null(media_ssrc_find(&r->m->ctx[1], TX_RTP, 7));
	assert_int_equal(remote_port(r, A), 4000);
	assert_int_equal(from(r, NULL, 100), PACKET_SENT);
	rig_got(r, 0, 7, 100, 100);
	assert_int_equal(from(r, THIEF, 30100), PACKET_DROP_SOURCE);
	rig_free(r);
}

/* On the usual path, too: without strict-source other sources are relayed, and the signalled
 * address is still followed. */
static void the_signalled_address_takes_over_in_mid_stream(void **state)
{
	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);
		struct media_cmd a = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
		struct media_handover h;

		a.stream.strict_source = strict;
		assert_int_equal(media_command(r->m, &a), 0);
		for (uint64_t i = 0; i < 50; i++)
			(void)from(r, THIEF, i);
		assert_int_equal(remote_port(r, A), 666);
		assert_true(r->m->stream[A].fast && r->m->stream[A].learn.confirmed);
		for (uint64_t i = 0; i < 10; i++) {
			assert_int_equal(from(r, NULL, 1000 + i), PACKET_SENT);
			assert_int_equal(remote_port(r, A), 4000);
			assert_int_equal(from(r, THIEF, 50 + i) == PACKET_SENT, !strict);
		}
		assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->confirmed), 1);
		h = media_stream_handover(r->m, A);
		assert_int_equal(h.count, 1);
		assert_int_equal(h.cause, LEARN_BY_EXACT);
		assert_int_equal(h.from, LEARN_ANY);
		assert_int_equal(h.to, LEARN_EXACT);
		assert_int_equal(media_handovers(r->m, LEARN_BY_EXACT), 1);
		rig_free(r);
	}
}

static void forged_srtp_takes_nothing_over(void **state)
{
	struct rig *r = rig_new(CM80, CM80, 0);

	(void)state;
	assert_int_equal(from(r, NAT, 1), PACKET_SENT);
	assert_int_equal(remote_port(r, A), 5555);
	rig_send(r, 7, 2, A_TX)[40] ^= 1; /* from the signalled address */
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_BAD_TAG);
	assert_int_equal(remote_port(r, A), 5555);
	assert_int_equal(from(r, THIEF, 3), PACKET_DROP_SOURCE);
	assert_int_equal(from(r, NULL, 4), PACKET_SENT);
	assert_int_equal(remote_port(r, A), 4000);
	assert_int_equal(from(r, NAT, 5), PACKET_DROP_SOURCE);
	rig_free(r);
}

/* A plain or passed-through call is encrypted now: the source of authentic packets is the
 * terminal. */
static void authentic_packets_outrank_what_was_learned_without(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, CM80, 0);

	(void)state;
	for (uint64_t i = 0; i < 9; i++)
		(void)from(r, THIEF, i);
	assert_int_equal(remote_port(r, A), 666);
	r->suite_a = CM80;
	rig_key(r, A_TX, CM80);
	rig_key(r, A_RX, CM80);
	rig_ctx(r, 0, (struct rig_keys){A_TX, A_RX, CM80, true, true});
	assert_int_equal(from(r, NAT, 100), PACKET_SENT);
	assert_int_equal(remote_port(r, A), 5555);
	assert_int_equal(media_stream_handover(r->m, A).cause, LEARN_BY_AUTHENTIC);
	rig_free(r);
}

static void after_a_restart_the_terminal_is_known(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, CM80, 0);
	struct media_cmd back = {
		.type = MEDIA_STREAM_RESUME, .id = A, .stream_resume = {.confirmed = true}};

	(void)state;
	assert_int_equal(endpoint_parse(&back.stream_resume.remote, STR(NAT)), 0);
	assert_int_equal(media_command(r->m, &back), 0);
	assert_int_equal(from(r, THIEF, 1), PACKET_DROP_SOURCE);
	assert_int_equal(from(r, NAT, 1), PACKET_SENT);
	assert_int_equal(remote_port(r, A), 5555);
	rig_free(r);
}

/* A callee sends before its answer. The answer names the same address or another one. */
static void after_a_restart_early_media_go_on(void **state)
{
	static const struct {
		const char *src;
		bool confirmed;
		uint16_t remote; /* after the answer */
	} T[] = {{"192.0.2.1:4001", false, 4001}, {"192.0.2.1:4001", true, 4001},
		{THIEF, false, 4000}, {THIEF, true, 4000}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);
		struct media_cmd gone = {.type = MEDIA_STREAM_DEL, .id = A};
		struct media_cmd set = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
		struct media_cmd back = {.type = MEDIA_STREAM_RESUME,
			.id = A,
			.stream_resume = {.confirmed = T[i].confirmed}};
		struct media_cmd answer = set;

		set.stream.early = set.stream.rtp = answer.stream.rtp = true;
		set.stream.strict_source = answer.stream.strict_source = true;
		set.stream.learning = answer.stream.learning = MEDIA_LEARN_DELAYED;
		set.stream.remote = (struct endpoint){0};
		set.now_ns = answer.now_ns = 1;
		assert_int_equal(endpoint_parse(&back.stream_resume.remote, str_from(T[i].src)), 0);
		assert_int_equal(media_command(r->m, &gone), 0);
		assert_int_equal(media_command(r->m, &set), 0);
		assert_int_equal(media_command(r->m, &back), 0);
		assert_int_equal(from(r, T[i].src, 1), PACKET_SENT);
		assert_int_equal(media_command(r->m, &answer), 0);
		assert_int_equal(remote_port(r, A), T[i].remote);
		rig_free(r);
	}
}

static enum packet_verdict rtcp_from(struct rig *r, const char *src, uint32_t ssrc)
{
	uint8_t *p = rig_slot(r, B_RTCP, PORT_B_RTCP);

	rig_plain_rtcp(p, ssrc, 1);
	r->in[0].len = 28;
	assert_int_equal(endpoint_parse(&r->in[0].src, str_from(src)), 0);
	r->in[0].t_ns = now += 20 * MS;
	rig_run(r);
	return (enum packet_verdict)r->in[0].verdict;
}

/* RTP from B with SSRC 9. */
static void rtp_from(struct rig *r, const char *src, uint32_t packets)
{
	static uint64_t seq = 0;

	for (uint32_t i = 0; i < packets; i++) {
		rig_plain_rtp(rig_slot(r, B, PORT_B), 9, seq++);
		r->in[0].len = 172;
		assert_int_equal(endpoint_parse(&r->in[0].src, str_from(src)), 0);
		r->in[0].t_ns = now += 20 * MS;
		rig_run(r);
	}
}

static void rtcp_comes_from_beside_rtp(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);

	(void)state;
	assert_int_equal(rtcp_from(r, "198.51.100.7:5556", 9), PACKET_DROP_PROBATION);
	rtp_from(r, NAT, LEARN_PACKETS);
	assert_int_equal(remote_port(r, B), 5555);
	assert_int_equal(rtcp_from(r, "198.51.100.7:5556", 8), PACKET_DROP_PROBATION);
	assert_int_equal(rtcp_from(r, "203.0.113.66:5556", 9), PACKET_DROP_PROBATION);
	assert_int_equal(rtcp_from(r, "198.51.100.7:5556", 9), PACKET_SENT);
	assert_int_equal(remote_port(r, B_RTCP), 5556);
	rig_free(r);
}

/* RTP shows where the terminal is. Unauthentic RTCP from another address is not learned. */
static void rtcp_is_not_learned_from_elsewhere_than_rtp(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);
	uint16_t signalled = remote_port(r, B_RTCP);

	(void)state;
	rtp_from(r, NAT, LEARN_PACKETS);
	for (int i = 0; i < 9; i++)
		assert_int_not_equal(rtcp_from(r, "203.0.113.66:5556", 9), PACKET_SENT);
	assert_int_equal(remote_port(r, B_RTCP), signalled);
	/* Control: the same reports, with another SSRC, from the terminal's address are learned. */
	for (int i = 0; i < LEARN_REPORTS - 1; i++)
		assert_int_equal(rtcp_from(r, "198.51.100.7:6000", 8), PACKET_DROP_PROBATION);
	assert_int_equal(rtcp_from(r, "198.51.100.7:6000", 8), PACKET_SENT);
	assert_int_equal(remote_port(r, B_RTCP), 6000);
	rig_free(r);
}

/* A sender of RTCP loses the stream when the terminal's RTP comes from elsewhere. */
static void rtcp_is_forgotten_when_rtp_comes_from_elsewhere(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_PLAIN, 0);
	uint16_t signalled = remote_port(r, B_RTCP);

	(void)state;
	for (int i = 0; i < LEARN_REPORTS; i++)
		(void)rtcp_from(r, "203.0.113.66:5556", 8);
	assert_int_equal(remote_port(r, B_RTCP), 5556);
	rtp_from(r, NAT, LEARN_PACKETS);
	assert_int_equal(remote_port(r, B_RTCP), signalled);
	assert_int_not_equal(rtcp_from(r, "203.0.113.66:5556", 8), PACKET_SENT);
	assert_int_equal(rtcp_from(r, "198.51.100.7:6000", 9), PACKET_SENT);
	/* RTP comes once from the signalled address. One packet, which may be forged, does not move
	 * RTCP. */
	rtp_from(r, "192.0.2.2:5000", 1);
	assert_int_equal(remote_port(r, B_RTCP), 6000);
	rtp_from(r, "192.0.2.2:5000", LEARN_PACKETS);
	assert_int_equal(remote_port(r, B_RTCP), signalled);
	rig_free(r);
}

static void sources_that_cannot_be_sent_to_are_not_learned(void **state)
{
	static const char *const src[] = {"0.0.0.0:9", "239.1.2.3:9", "[ff02::1]:9"};
	struct rig *r = rig_new(CM80, CM80, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(src); i++) {
		assert_int_equal(from(r, src[i], 1 + i), PACKET_SENT); /* authentic */
		assert_int_equal(remote_port(r, A), 4000);
	}
	assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->confirmed), 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_probation_a_packet_does_nothing),
		cmocka_unit_test(the_signalled_address_takes_over_in_mid_stream),
		cmocka_unit_test(forged_srtp_takes_nothing_over),
		cmocka_unit_test(authentic_packets_outrank_what_was_learned_without),
		cmocka_unit_test(after_a_restart_the_terminal_is_known),
		cmocka_unit_test(after_a_restart_early_media_go_on),
		cmocka_unit_test(rtcp_comes_from_beside_rtp),
		cmocka_unit_test(rtcp_is_not_learned_from_elsewhere_than_rtp),
		cmocka_unit_test(rtcp_is_forgotten_when_rtp_comes_from_elsewhere),
		cmocka_unit_test(sources_that_cannot_be_sent_to_are_not_learned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
