/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pierce-NAT: for which streams and when empty packets are requested, and where media sends them.
 * NAT-wait forbids them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/tick.h"
#include "call_talk.h"

#define A "198.51.100.1"
#define B "198.51.100.2"

static void offer(struct talk *t, uint64_t flags)
{
	struct ng_request r = talk_request("a", "", talk_body(t, A, 4000, "RTP/AVP", ""));

	r.flags = flags;
	talk_send(t, &r, false);
	assert_null(t->reply.error);
	assert_int_equal(t->reply.warning.len, 0);
}

static void answer(struct talk *t, const char *attrs)
{
	talk_answer(t, "a", "b", talk_body(t, B, 5000, "RTP/AVP", attrs));
	assert_null(t->reply.error);
}

static void later(struct talk *t)
{
	t->now += NS_PER_SEC;
	t->m->last_packet_ns = t->now; /* it is not to end */
	calls_tick(t->c, t->now);
}

static void three_at_each_start_until_something_comes(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	offer(&t, 1ull << NG_FLAG_PIERCE_NAT);
	assert_int_equal(t.m->pierces, 0); /* no destination is known yet */
	answer(&t, "");
	assert_int_equal(t.m->pierces, 4); /* RTP and RTCP of both */
	for (uint32_t want = 8; want <= 12; want += 4) {
		later(&t);
		assert_int_equal(t.m->pierces, want);
	}
	later(&t);
	assert_int_equal(t.m->pierces, 12);
	answer(&t, ""); /* a repetition starts nothing */
	later(&t);
	assert_int_equal(t.m->pierces, 12);
	offer(&t, 0);
	answer(&t, "");
	assert_int_equal(t.m->pierces, 16);
	t.m->more_packets = 1;
	for (int i = 0; i < 3; i++)
		later(&t);
	assert_int_equal(t.m->pierces, 16);
	talk_end(&t);
}

static void only_who_asked_gets_them_and_nobody_who_waits(void **state)
{
	static const struct {
		uint64_t flags;
		uint32_t pierces;
	} T[] = {
		{0, 0},
		{1ull << NG_FLAG_NAT_WAIT, 0},
		{1ull << NG_FLAG_NAT_WAIT | 1ull << NG_FLAG_PIERCE_NAT, 0},
		{1ull << NG_FLAG_PIERCE_NAT, 4},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct talk t;

		talk_start(&t);
		offer(&t, T[i].flags);
		answer(&t, "");
		assert_int_equal(t.m->pierces, T[i].pierces);
		talk_end(&t);
	}
}

static void with_one_port_there_is_one_packet(void **state)
{
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	r = talk_request("a", "", talk_body(&t, A, 4000, "RTP/AVP", "a=rtcp-mux\r\n"));
	r.flags = 1ull << NG_FLAG_PIERCE_NAT;
	talk_send(&t, &r, false);
	answer(&t, "a=rtcp-mux\r\n");
	assert_int_equal(t.m->pierces, 2);
	assert_int_equal(t.m->pierced[0] % 2 + t.m->pierced[1] % 2, 0);
	talk_end(&t);
}

static void a_busy_worker_is_asked_again(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	offer(&t, 1ull << NG_FLAG_PIERCE_NAT);
	t.m->fail_with = -EAGAIN;
	t.m->fail_at = t.m->calls + 2; /* after the commit of the answer */
	answer(&t, "");
	assert_int_equal(t.m->pierces, 2);
	t.m->fail_at = 0;
	later(&t);
	assert_int_equal(t.m->pierces, 6);
	talk_end(&t);
}

/* The worker's part of it. */
static void packets_go_to_the_signalled_address_only(void **state)
{
	static const struct {
		const char *addr;
		uint16_t port;
		bool sent;
	} T[] = {
		{"198.51.100.7", 4000, true},
		{"2001:db8::7", 4000, true},
		{"198.51.100.7", 0, false},
		{"0.0.0.0", 4000, false},
		{"::", 4000, false},
		{"239.1.2.3", 4000, false},
		{"ff02::1", 4000, false},
	};
	struct media_config cfg = {.max_ctx = 2,
		.max_stream = 4,
		.port_min = 30000,
		.port_max = 30003,
		.local_addrs = 1,
		.burst_max = 4,
		.key_slots = 8};
	struct media_cmd cmd = {.type = MEDIA_STREAM_SET, .id = 1};
	struct media_cmd ctx = {.type = MEDIA_CTX_SET};
	struct packet_out out;
	struct media *m;

	(void)state;
	assert_int_equal(media_create(&m, &cfg), 0);
	assert_int_equal(media_command(m, &ctx), 0);
	assert_false(media_pierce(m, 1, &out));
	assert_false(media_pierce(m, 99, &out));
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct media_cmd learned = {.type = MEDIA_STREAM_RESUME, .id = 1};

		cmd.stream = (struct media_stream_cfg){.local = {.port = 30002},
			.rtp = true,
			.rtp_to = MEDIA_NONE,
			.rtcp_to = MEDIA_NONE,
			.tos = 184};
		assert_int_equal(endpoint_parse_addr(&cmd.stream.remote, str_from(T[i].addr)), 0);
		cmd.stream.remote.port = T[i].port;
		assert_int_equal(media_command(m, &cmd), 0);
		/* another source was learned: it gets no empty packets */
		assert_int_equal(
			endpoint_parse(&learned.stream_resume.remote, STR("203.0.113.66:666")), 0);
		learned.stream_resume.confirmed = true;
		assert_int_equal(media_command(m, &learned), 0);
		assert_int_equal(media_pierce(m, 1, &out), T[i].sent);
		if (!T[i].sent)
			continue;
		assert_true(endpoint_eq(&out.dst, &cmd.stream.remote));
		assert_int_equal(out.len, 0);
		assert_int_equal(out.local.port, 30002);
		assert_int_equal(out.tos, 184);
		assert_int_equal(out.in, MEDIA_NONE);
	}
	media_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_at_each_start_until_something_comes),
		cmocka_unit_test(only_who_asked_gets_them_and_nobody_who_waits),
		cmocka_unit_test(with_one_port_there_is_one_packet),
		cmocka_unit_test(a_busy_worker_is_asked_again),
		cmocka_unit_test(packets_go_to_the_signalled_address_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
