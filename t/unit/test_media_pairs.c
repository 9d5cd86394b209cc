/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Media on other valid ICE pairs than the selected one (RFC 8445 12.1). A's leg has two ports: its
 * pair is selected at PORT_A, and OTHER serves it. A sends to B. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "media/ahead.h"
#include "media/checked.h"
#include "packet/side.h"

#define K80  SUITE_AES_CM_128_80
#define STUN "\1\1\0\0\x21\x12\xa4\x42"

enum { OTHER = 3, PORT_OTHER = 30004, SERIAL = 7 };

static const char *const moved = "198.51.100.1:4444";

static void set(struct rig *r, const struct media_cmd *cmd)
{
	assert_int_equal(media_command(r->m, cmd), 0);
}

static struct rig *start(enum srtp_suite_id suite)
{
	struct rig *r = rig_new(suite, K80, 0);
	struct media_cmd a = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
	struct media_cmd other =
		rig_stream_cmd(OTHER, PORT_OTHER, 0, MEDIA_NONE, MEDIA_NONE, moved);

	if (suite == SUITE_PLAIN)
		rig_ctx_plain(r, 0);
	a.stream.side = SIDE_BIT(SIDE_STUN);
	a.stream.side_serial = SERIAL;
	a.stream.learning = MEDIA_LEARN_OFF;
	set(r, &a);
	other.stream = a.stream;
	other.stream.local.port = PORT_OTHER;
	other.stream.remote = (struct endpoint){0};
	other.stream.rtp_to = other.stream.rtcp_to = MEDIA_NONE;
	other.stream.serves = A + 1;
	set(r, &other);
	return r;
}

/* The keying thread sends STUN from the stream's port. proved: the response to an authentic
 * check. */
static void stun_to(struct rig *r, uint32_t stream, const char *to, bool proved, uint32_t serial)
{
	struct side_packet p = {.kind = SIDE_STUN,
		.believed = proved,
		.stream = stream,
		.serial = serial,
		.len = 8,
		.bytes = STUN};
	struct packet_out out;

	assert_int_equal(endpoint_parse(&p.peer, str_from(to)), 0);
	(void)media_side_out(r->m, &r->a, 3, &p, &out);
}

/* A packet of the terminal from this address to this port. */
static uint8_t arrive(struct rig *r, uint64_t index, const char *from, uint16_t port)
{
	rig_send(r, 0x11, index, A_TX);
	r->in[r->n - 1].local.port = port;
	assert_int_equal(endpoint_parse(&r->in[r->n - 1].src, str_from(from)), 0);
	rig_run(r);
	return r->in[0].verdict;
}

static void a_checked_source_is_believed(void **state)
{
	static const uint16_t port[] = {PORT_A, PORT_OTHER};
	static const uint32_t stream[] = {A, OTHER};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(port); i++) {
		struct rig *r = start(K80);

		assert_int_equal(arrive(r, 1, moved, port[i]), PACKET_DROP_SOURCE);
		/* A check of ours proves nothing, and neither does the response to a forged one. */
		stun_to(r, stream[i], moved, false, SERIAL);
		assert_int_equal(arrive(r, 2, moved, port[i]), PACKET_DROP_SOURCE);
		stun_to(r, stream[i], moved, true, SERIAL);
		assert_int_equal(arrive(r, 3, moved, port[i]), PACKET_SENT);
		rig_got(r, 0, 0x11, 3, 3);
		/* Only there: each source is of one port. */
		assert_int_equal(arrive(r, 4, moved, port[!i]), PACKET_DROP_SOURCE);
		assert_int_equal(arrive(r, 5, "198.51.100.1:4445", port[i]), PACKET_DROP_SOURCE);
		/* Sending stays on the selected pair, and that pair is believed as before. */
		assert_int_equal(r->m->stream[A].learn.remote.port, 4000);
		assert_int_equal(arrive(r, 6, "192.0.2.1:4000", PORT_A), PACKET_SENT);
		assert_int_equal(r->m->counters[A].packets, 2);
		assert_int_equal(r->m->counters[OTHER].packets, 0);
		rig_free(r);
	}
}

/* Nothing is learned with ICE: the selected pair is confirmed by its first packet, and then its
 * packets take the fast path. */
static void the_selected_pair_takes_the_fast_path(void **state)
{
	static const char *const pair[] = {"192.0.2.1:4000", "198.51.100.1:4444"};
	struct rig *r = start(K80);
	struct media_cmd a = {.type = MEDIA_STREAM_SET, .id = A, .now_ns = 1};

	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		a.stream = r->m->stream[A].cfg;
		assert_int_equal(endpoint_parse(&a.stream.remote, str_from(pair[i / 5])), 0);
		if (i % 5 == 0)
			set(r, &a);
		assert_int_equal(arrive(r, 1 + i, pair[i / 5], PORT_A), PACKET_SENT);
		assert_int_equal(r->m->note[0].fast, i % 5 != 0);
	}
	rig_free(r);
}

static void it_has_to_authenticate(void **state)
{
	struct rig *r = start(K80);

	(void)state;
	stun_to(r, OTHER, moved, true, SERIAL);
	rig_send(r, 0x11, 1, A_TX)[40] ^= 1;
	r->in[0].local.port = PORT_OTHER;
	assert_int_equal(endpoint_parse(&r->in[0].src, str_from(moved)), 0);
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_BAD_TAG);
	/* The failed packet did not use up the index: the true packet is accepted, once on all
	 * pairs together. */
	assert_int_equal(arrive(r, 1, moved, PORT_OTHER), PACKET_SENT);
	assert_int_equal(arrive(r, 1, "192.0.2.1:4000", PORT_A), PACKET_DROP_REPLAY);
	rig_free(r);
}

static void plain_media_need_the_selected_pair(void **state)
{
	struct rig *r = start(SUITE_PLAIN);

	(void)state;
	stun_to(r, A, moved, true, SERIAL);
	stun_to(r, OTHER, moved, true, SERIAL);
	assert_int_equal(arrive(r, 1, moved, PORT_A), PACKET_DROP_SOURCE);
	assert_int_equal(arrive(r, 1, moved, PORT_OTHER), PACKET_DROP_SOURCE);
	assert_int_equal(arrive(r, 1, "192.0.2.1:4000", PORT_A), PACKET_SENT);
	rig_free(r);
}

static void few_are_remembered_and_by_one_session(void **state)
{
	struct rig *r = start(K80);
	char from[32];

	(void)state;
	for (int i = 0; i <= MEDIA_CHECKED; i++) {
		snprintf(from, sizeof(from), "198.51.100.1:%d", 4444 + i);
		stun_to(r, A, from, true, SERIAL);
		stun_to(r, A, "198.51.100.1:4445", true, SERIAL); /* the terminal stays with it */
	}
	assert_int_equal(arrive(r, 1, moved, PORT_A), PACKET_DROP_SOURCE);
	assert_int_equal(arrive(r, 2, "198.51.100.1:4445", PORT_A), PACKET_SENT);
	assert_int_equal(arrive(r, 3, from, PORT_A), PACKET_SENT);
	/* The response of an ended session counts for nobody, nor do those before. */
	stun_to(r, A, moved, true, SERIAL + 1);
	assert_int_equal(arrive(r, 4, moved, PORT_A), PACKET_DROP_SOURCE);
	struct media_cmd next = {.type = MEDIA_STREAM_SET, .id = A, .now_ns = 1};
	next.stream = r->m->stream[A].cfg;
	next.stream.side_serial = SERIAL + 1;
	set(r, &next);
	assert_int_equal(arrive(r, 5, from, PORT_A), PACKET_DROP_SOURCE);
	rig_free(r);
}

static void without_a_selected_pair_nothing_is_relayed(void **state)
{
	struct rig *r = start(K80);
	struct media_cmd a = {.type = MEDIA_STREAM_SET, .id = A, .now_ns = 1};

	(void)state;
	stun_to(r, A, moved, true, SERIAL);
	stun_to(r, OTHER, moved, true, SERIAL);
	a.stream = r->m->stream[A].cfg;
	a.stream.remote = (struct endpoint){0};
	a.stream.rtp_to = a.stream.rtcp_to = MEDIA_NONE; /* consent was lost */
	set(r, &a);
	assert_int_equal(arrive(r, 1, moved, PORT_A), PACKET_DROP_INACTIVE);
	assert_int_equal(arrive(r, 2, moved, PORT_OTHER), PACKET_DROP_INACTIVE);
	rig_free(r);
}

/* RFC 7675: consent is lost, so there is no pair. Media of the other side may not go there. */
static void without_consent_nothing_is_sent(void **state)
{
	struct rig *r = start(K80);
	struct media_cmd a = {.type = MEDIA_STREAM_SET, .id = A, .now_ns = 1};
	uint8_t p[172];

	(void)state;
	assert_int_equal(arrive(r, 1, "192.0.2.1:4000", PORT_A), PACKET_SENT);
	for (int lost = 0; lost < 2; lost++) {
		a.stream = r->m->stream[A].cfg;
		a.stream.remote = lost ? (struct endpoint){0} : a.stream.remote;
		set(r, &a);
		rig_plain_rtp(p, 0x22, 1 + (uint64_t)lost);
		uint8_t *at = rig_slot(r, B, PORT_B);
		r->in[0].len = rig_protect(r, at,
			(struct rig_plain){p, 172, 12, B_TX, K80, 1 + (uint64_t)lost, false});
		rig_run(r);
		assert_int_equal(r->in[0].verdict, lost ? PACKET_DROP_NO_DESTINATION : PACKET_SENT);
	}
	assert_false(r->m->stream[A].learn.confirmed);
	assert_int_equal(r->m->stream[A].learn.source.family, 0);
	rig_free(r);
}

static void keys(struct rig *r, bool awaited)
{
	struct media_cmd c = {.type = MEDIA_CTX_SET, .id = 0, .now_ns = 1};

	c.ctx = r->m->ctx_cfg[0];
	c.ctx.rx = c.ctx.tx = (struct media_crypto){.awaited = true};
	if (!awaited) {
		c.ctx.rx = rig_crypto(r, A_TX, K80);
		c.ctx.tx = rig_crypto(r, A_RX, K80);
		c.ctx.rx_new = c.ctx.tx_new = true;
	}
	set(r, &c);
}

static void media_ahead_of_keys_wait_there_too(void **state)
{
	struct rig *r = start(K80);

	(void)state;
	keys(r, true);
	assert_int_equal(arrive(r, 1, moved, PORT_OTHER), PACKET_DROP_SOURCE);
	stun_to(r, OTHER, moved, true, SERIAL);
	assert_int_equal(arrive(r, 2, moved, PORT_OTHER), PACKET_SIDE);
	keys(r, false);
	r->n = media_ahead_take(r->m, &r->a, r->first, r->in, SLOTS, 2000);
	assert_int_equal(r->n, 1);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_got(r, 0, 0x11, 2, 2);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_checked_source_is_believed),
		cmocka_unit_test(the_selected_pair_takes_the_fast_path),
		cmocka_unit_test(it_has_to_authenticate),
		cmocka_unit_test(plain_media_need_the_selected_pair),
		cmocka_unit_test(few_are_remembered_and_by_one_session),
		cmocka_unit_test(without_a_selected_pair_nothing_is_relayed),
		cmocka_unit_test(without_consent_nothing_is_sent),
		cmocka_unit_test(media_ahead_of_keys_wait_there_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
