/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where media may go: the policy as a table, SDP that names forbidden addresses, and calls that
 * send to each other. No sequence of offers and answers may form a circle. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "call/call.h"
#include "call/delete.h"
#include "call/reach_again.h"
#include "call/tick.h"
#include "call_talk.h"
#include "offer/exchange.h"

#define A    "198.51.100.1"
#define B    "198.51.100.2"
#define OURS "10.0.0.1"    /* interface "inside" of the mock */
#define TOLD "203.0.113.9" /* advertised by interface "outside" */

/* --- Policy ----------------------------------------------------------------------------------- */

static struct endpoint at(const char *addr, uint16_t port)
{
	struct endpoint e;

	assert_int_equal(endpoint_parse_addr(&e, str_from(addr)), 0);
	e.port = port;
	return e;
}

static bool is(const struct endpoint *e, const char *addr)
{
	struct endpoint other = at(addr, e->port);

	return endpoint_addr_eq(e, &other);
}

static bool host_has(void *arg, const struct endpoint *e)
{
	(void)arg;
	return is(e, "192.0.2.77") || is(e, "2001:db8::77");
}

static bool host_has_broadcast(void *arg, const struct endpoint *e)
{
	(void)arg;
	return is(e, "192.0.2.255");
}

static void setup(struct reach *r, struct relay_local local[2], const char *allow)
{
	memset(local, 0, 2 * sizeof(*local));
	local[0].addr = at("10.0.0.5", 0);
	local[0].advertised = at("203.0.113.5", 0);
	local[1].addr = local[1].advertised = at("2001:db8::5", 0);
	*r = (struct reach){.local = local,
		.locals = 2,
		.port_min = 30000,
		.port_max = 30999,
		.own = host_has,
		.broadcast = host_has_broadcast};
	if (allow)
		assert_int_equal(endpoint_parse_net(&r->allow.net[r->allow.n],
					 &r->allow.bits[r->allow.n], str_from(allow)),
			0);
	r->allow.n += allow != NULL;
}

static void addresses_are_judged_by_what_they_are(void **state)
{
	static const struct {
		const char *addr;
		enum reach_verdict want;
		const char *allow; /* allows the address: REACH_OK */
	} T[] = {
		{"198.51.100.1", REACH_OK, NULL},
		{"10.0.0.6", REACH_OK, NULL},
		{"192.168.1.1", REACH_OK, NULL},
		{"100.64.0.1", REACH_OK, NULL},
		{"2001:db8::1", REACH_OK, NULL},
		{"fd00::1", REACH_OK, NULL},
		{"126.255.255.255", REACH_OK, NULL},
		{"128.0.0.0", REACH_OK, NULL},
		{"223.255.255.255", REACH_OK, NULL},
		{"1.0.0.0", REACH_OK, NULL},
		{"169.253.0.1", REACH_OK, NULL},
		{"0.0.0.0", REACH_NOWHERE, NULL},
		{"::", REACH_NOWHERE, NULL},
		{"127.0.0.1", REACH_LOOPBACK, "127.0.0.1"},
		{"127.0.0.0", REACH_LOOPBACK, "127.0.0.0/8"},
		{"127.255.255.255", REACH_LOOPBACK, "127.0.0.0/8"},
		{"::1", REACH_LOOPBACK, "::1"},
		{"::ffff:127.0.0.1", REACH_LOOPBACK, "127.0.0.1"},
		{"::ffff:127.0.0.1", REACH_LOOPBACK, "::ffff:127.0.0.0/104"},
		{"::127.0.0.1", REACH_LOOPBACK, NULL},
		{"::ffff:0:127.0.0.1", REACH_LOOPBACK, NULL},
		{"64:ff9b::127.0.0.1", REACH_LOOPBACK, NULL},
		{"64:ff9b::198.51.100.1", REACH_OK, NULL},
		{"2002:7f00:1::1", REACH_LOOPBACK, NULL},
		{"2002:c633:6401::1", REACH_OK, NULL},
		{"2002:a00:5::1", REACH_OWN, NULL},
		/* local NAT64 prefixes, /96 and /48 (RFC 8215, RFC 6052 2.2) */
		{"64:ff9b:1::7f00:1", REACH_LOOPBACK, NULL},
		{"64:ff9b:1:fffe::10.0.0.5", REACH_OWN, NULL},
		{"64:ff9b:1:7f00:0:100::", REACH_LOOPBACK, NULL},
		{"64:ff9b:1:a00:0:500::", REACH_OWN, NULL},
		{"64:ff9b:1:c000:2:ff00::", REACH_BROADCAST, NULL},
		{"64:ff9b:1::198.51.100.1", REACH_OK, NULL},
		{"64:ff9b:1:fffe::198.51.100.1", REACH_OK, NULL},
		{"64:ff9b:1:c633:64:100::", REACH_OK, NULL},
		/* and /56 and /64 inside of it */
		{"64:ff9b:1:7f:0:1::", REACH_LOOPBACK, NULL},
		{"64:ff9b:1:fe0a:0:5::", REACH_OWN, NULL},
		{"64:ff9b:1:c0:0:2ff::", REACH_BROADCAST, NULL},
		{"64:ff9b:1:c6:33:6401::", REACH_OK, NULL},
		{"64:ff9b:1:0:7f:0:100:0", REACH_LOOPBACK, NULL},
		{"64:ff9b:1:fffe:a:0:500:0", REACH_OWN, NULL},
		{"64:ff9b:1:0:c0:2:ff00:0", REACH_BROADCAST, NULL},
		{"64:ff9b:1:0:c6:3364:100:0", REACH_OK, NULL},
		/* Teredo (RFC 4380): the client's address with inverted bits */
		{"2001:0:4136:e378:8000:63bf:80ff:fffe", REACH_LOOPBACK, NULL},
		{"2001:0:4136:e378:8000:63bf:39cc:9bfe", REACH_OK, NULL},
		/* ISATAP (RFC 5214) */
		{"2001:db8:9::5efe:127.0.0.1", REACH_LOOPBACK, NULL},
		{"2001:db8:9::200:5efe:10.0.0.5", REACH_OWN, NULL},
		{"2001:db8:9::5efe:198.51.100.1", REACH_OK, NULL},
		{"0.0.0.1", REACH_THIS_NET, "0.0.0.0/8"},
		{"0.255.0.0", REACH_THIS_NET, NULL},
		{"::ffff:0.0.0.0", REACH_THIS_NET, NULL},
		{"::2", REACH_THIS_NET, NULL},
		{"224.0.0.1", REACH_MULTICAST, "224.0.0.0/4"},
		{"239.255.255.255", REACH_MULTICAST, NULL},
		{"ff02::1", REACH_MULTICAST, NULL},
		{"::ffff:224.0.0.1", REACH_MULTICAST, NULL},
		{"240.0.0.1", REACH_RESERVED, NULL},
		{"255.255.255.255", REACH_RESERVED, NULL},
		{"192.0.2.255", REACH_BROADCAST, "192.0.2.255"},
		{"169.254.1.1", REACH_LINK_LOCAL, NULL},
		{"fe80::1", REACH_LINK_LOCAL, "fe80::/10"},
		{"febf::1", REACH_LINK_LOCAL, NULL},
		{"fec0::1", REACH_OK, NULL},
		{"10.0.0.5", REACH_OWN, "10.0.0.0/8"},
		{"203.0.113.5", REACH_OWN, NULL},
		{"2001:db8::5", REACH_OWN, NULL},
		{"192.0.2.77", REACH_OWN, "192.0.2.77"},
		{"2001:db8::77", REACH_OWN, NULL},
		{"::ffff:10.0.0.5", REACH_OWN, NULL},
	};
	struct relay_local local[2];
	struct endpoint e;
	struct reach r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		setup(&r, local, NULL);
		e = at(T[i].addr, 4000);
		if (reach_check(&r, &e) != T[i].want)
			fail_msg("%s: %s", T[i].addr, reach_text(reach_check(&r, &e)));
		e.port = 0;
		assert_int_equal(reach_check(&r, &e), REACH_NOWHERE);
		if (!T[i].allow)
			continue;
		setup(&r, local, T[i].allow);
		e.port = 4000;
		if (reach_check(&r, &e) != REACH_OK)
			fail_msg("%s, allowed: %s", T[i].addr, reach_text(reach_check(&r, &e)));
	}
	/* --media-deny overrides --media-allow, and there "any" names all addresses. */
	setup(&r, local, "10.0.0.0/8");
	r.deny = (struct call_nets){.n = 1, .net = {at("10.1.0.0", 0)}, .bits = {16}};
	e = at("10.1.2.3", 4000);
	assert_int_equal(reach_check(&r, &e), REACH_DENIED);
	e = at("::ffff:10.1.2.3", 4000);
	assert_int_equal(reach_check(&r, &e), REACH_DENIED);
	e = at("64:ff9b:1::10.1.2.3", 4000);
	assert_int_equal(reach_check(&r, &e), REACH_DENIED);
	e = at("10.2.0.1", 4000);
	assert_int_equal(reach_check(&r, &e), REACH_OK);
	r.deny.bits[0] = 0;
	assert_int_equal(reach_check(&r, &e), REACH_DENIED);
	e = at("2001:db8::1", 4000);
	assert_int_equal(reach_check(&r, &e), REACH_OK);
	/* "Any" is not an interface name. */
	setup(&r, local, "0.0.0.0/0");
	e = at("127.0.0.1", 4000);
	assert_int_equal(reach_check(&r, &e), REACH_LOOPBACK);
	/* The interface itself has a link-local address. */
	local[1].addr = at("fe80::5", 0);
	e = at("fe80::1", 4000);
	assert_int_equal(reach_check(&r, &e), REACH_OK);
	e = at("169.254.0.1", 4000);
	assert_int_equal(reach_check(&r, &e), REACH_LINK_LOCAL);
}

static void a_source_is_learned_where_media_may_go_or_was_sent(void **state)
{
	static const struct {
		const char *signalled, *src;
		bool want;
	} T[] = {
		{"198.51.100.1:4000", "198.51.100.9:9", true},
		{"198.51.100.1:4000", "127.0.0.1:22222", false},
		{"127.0.0.1:4000", "127.0.0.1:4000", true}, /* signalling was allowed to name it */
		{"127.0.0.1:4000", "127.0.0.1:4001", false},
		{"198.51.100.1:4000", "192.0.2.77:4000", false},
		{"198.51.100.1:4000", "10.0.0.5:30000", false},
		{"10.0.0.5:30000", "10.0.0.5:30000", true},
		{"203.0.113.5:30000", "10.0.0.5:30000",
			true}, /* the same port by the interface's other address */
		{"203.0.113.5:30000", "10.0.0.5:30002", false},
		{"203.0.113.5:29000", "10.0.0.5:29000", false},
		{"[2001:db8::5]:30000", "10.0.0.5:30000", false},
	};
	struct relay_local local[2];
	struct reach r;

	(void)state;
	setup(&r, local, NULL);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct endpoint signalled, src;

		assert_int_equal(endpoint_parse(&signalled, str_from(T[i].signalled)), 0);
		assert_int_equal(endpoint_parse(&src, str_from(T[i].src)), 0);
		if (reach_may_learn(&r, &signalled, &src) != T[i].want)
			fail_msg("%s instead of %s", T[i].src, T[i].signalled);
	}
	/* Allowing an address by name does not allow our own media ports there. */
	setup(&r, local, "10.0.0.0/8");
	struct endpoint signalled = at("198.51.100.1", 4000), port = at("10.0.0.5", 30000),
			other = at("10.0.0.5", 4000);
	assert_false(reach_may_learn(&r, &signalled, &port));
	assert_true(reach_may_learn(&r, &signalled, &other));
}

/* The first interface's ports 30000 and 30001 are a call's. */
static bool has_one_pair(void *arg, struct local_port port)
{
	(void)arg;
	return port.addr == 0 && port.port / 2 == 15000;
}

/* Checks also go to media ports of ours: a call may pass through this relay twice. They do not go
 * to ports of the range that no call has, because another program may have bound them. */
static void checks_reach_our_media_ports(void **state)
{
	static const struct {
		const char *to;
		bool want;
	} T[] = {
		{"198.51.100.1:4000", true},
		{"10.0.0.5:30000", true},
		{"10.0.0.5:30001", true},
		{"203.0.113.5:30000", true},
		{"10.0.0.5:30002", false}, /* a media port that no call has */
		{"203.0.113.5:39999", false},
		{"10.0.0.5:22222", false}, /* another port of this host */
		{"127.0.0.1:30000", false},
		{"192.0.2.77:30000", false},
		{"0.0.0.0:30000", false},
	};
	struct relay_local local[2];
	struct endpoint to;
	struct reach r;

	(void)state;
	setup(&r, local, NULL);
	r.taken = has_one_pair;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		assert_int_equal(endpoint_parse(&to, str_from(T[i].to)), 0);
		if (reach_may_check(&r, &to) != T[i].want)
			fail_msg("%s", T[i].to);
	}
	r.deny = (struct call_nets){.net = {at("10.0.0.5", 0)}, .bits = {32}, .n = 1};
	to = at("10.0.0.5", 30000);
	assert_false(reach_may_check(&r, &to));
}

/* --- SDP -------------------------------------------------------------------------------------- */

static struct ng_request request(
	const char *call, const char *from, const char *to, const char *body)
{
	struct ng_request r = talk_request(from, to, body);

	r.call_id = str_from(call);
	return r;
}

static void an_sdp_is_refused_with_line_and_reason_or_passes(void **state)
{
#define HEAD(c) "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\n" c "t=0 0\r\n"
#define AUDIO   "m=audio 4000 RTP/AVP 0\r\n"
	static const struct {
		const char *body, *detail; /* NULL: the SDP is accepted */
	} T[] = {
		{HEAD("c=IN IP4 " A "\r\n") AUDIO, NULL}, /* o= is not a destination */
		{HEAD("c=IN IP4 127.0.0.1\r\n") AUDIO, "line 4: 127.0.0.1:4000 is a loopback"},
		{HEAD("c=IN IP4 " A "\r\n") AUDIO "c=IN IP4 127.0.0.1\r\n",
			"line 7: 127.0.0.1:4000"},
		{HEAD("c=IN IP4 127.0.0.1\r\n") AUDIO "c=IN IP4 " A "\r\n", NULL}, /* not in use */
		{HEAD("c=IN IP4 127.0.0.1\r\n") "m=audio 0 RTP/AVP 0\r\n", NULL},
		{HEAD("c=IN IP4 " A "\r\n") AUDIO "m=video 0 RTP/AVP 31\r\nc=IN IP4 127.0.0.1\r\n",
			NULL},
		{HEAD("c=IN IP4 " A "\r\n") AUDIO "m=image 5 udptl t38\r\nc=IN IP4 127.0.0.1\r\n",
			"line 8: 127.0.0.1:5"},
		{HEAD("c=IN IP4 " A "\r\n") AUDIO
			"m=message 5 TCP/MSRP *\r\nc=IN IP4 127.0.0.1\r\n",
			NULL},
		{HEAD("c=IN IP4 " A "\r\n") AUDIO "m=video 6 RTP/AVP 31\r\nc=IN IP4 224.0.0.1\r\n",
			"line 8: 224.0.0.1:6 is a multicast"},
		{HEAD("c=IN IP4 0.0.0.0\r\n") AUDIO, NULL},
		{HEAD("c=IN IP6 ::\r\n") AUDIO, NULL},
		{HEAD("c=IN IP4 a.host.example\r\n") AUDIO,
			"line 4: \"a.host.example\" is not an IP"},
		{HEAD("c=IN IP4 127.1\r\n") AUDIO, "line 4: \"127.1\" is not an IP"},
		{HEAD("c=IN IP4 0x7f000001\r\n") AUDIO, "is not an IP"},
		{HEAD("c=IN IP6 fe80::1%eth0\r\n") AUDIO, "line 4: \"fe80::1%eth0\" is not an IP"},
		{HEAD("c=ATM NSAP 47\r\n") AUDIO, "line 4: \"47\" is not an IP"},
		{HEAD("c=IN IP4 x\r\n") "m=audio 0 RTP/AVP 0\r\n", NULL},
		{HEAD("c=IN IP4 x\r\n") "m=audio 0 RTP/AVP 0\r\nm=message 5 TCP *\r\n", NULL},
		{HEAD("c=IN IP6 hold.invalid\r\n") AUDIO, NULL}, /* reserved (RFC 6157, RFC 2606) */
		{HEAD("c=IN IP4 " A "\r\n") AUDIO "a=rtcp:9 IN IP4 localhost\r\n",
			"line 7: \"localhost\" is not an IP"},
		{HEAD("c=IN IP4 0.0.0.0\r\n") AUDIO "a=rtcp:9 IN IP4 127.0.0.1\r\n",
			"line 7: 127.0.0.1:9"},
		{HEAD("c=IN IP4 " A "\r\n") AUDIO "a=rtcp:22222 IN IP4 127.0.0.1\r\n",
			"line 7: 127.0.0.1:22222"},
		{HEAD("c=IN IP4 " A "\r\n") AUDIO "a=rtcp:22222 IN IP6 ::1\r\n",
			"line 7: [::1]:22222"},
		{HEAD("c=IN IP4 " A "\r\n") AUDIO "a=rtcp:0 IN IP4 127.0.0.1\r\n", NULL},
		{HEAD("c=IN IP4 " OURS "\r\n") "m=audio 30040 RTP/AVP 0\r\n", "that no call uses"},
		{HEAD("c=IN IP4 " TOLD "\r\n") "m=audio 30040 RTP/AVP 0\r\n", "that no call uses"},
	};
	struct talk t;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (int answer = 0; answer < 2; answer++) {
			talk_start(&t);
			if (answer)
				talk_offer(&t, "a", "", talk_body(&t, A, 4000, "RTP/AVP", ""));
			talk_pool(&t);
			struct ng_request r = talk_request("a", answer ? "b" : "", T[i].body);

			(answer ? calls_answer : calls_offer)(t.c, t.p, &r, t.now, &t.reply);
			if (!T[i].detail && t.reply.error)
				fail_msg("row %zu: %s (" STR_FMT ")", i, t.reply.error,
					STR_ARG(t.reply.detail));
			if (T[i].detail) {
				assert_string_equal(t.reply.error, REACH_ERROR);
				if (!strstr(t.reply.detail.s, T[i].detail))
					fail_msg("row %zu: " STR_FMT, i, STR_ARG(t.reply.detail));
				assert_int_equal(t.m->ports, answer ? 2 : 0);
			}
			talk_end(&t);
		}
}

static void with_sip_source_address_that_address_counts(void **state)
{
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	r = request("call", "a", "", talk_body(&t, A, 4000, "RTP/AVP", ""));
	r.flags |= 1ull << NG_FLAG_SIP_SOURCE_ADDRESS;
	r.received_from = STR("127.0.0.1");
	talk_send(&t, &r, false);
	assert_string_equal(t.reply.error, REACH_ERROR);
	r.received_from = STR(B);
	r.sdp = str_from(talk_body(&t, "127.0.0.1", 4000, "RTP/AVP", ""));
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	talk_end(&t);
}

/* --- Links ------------------------------------------------------------------------------------ */

/* Sends offer and answer of a call, each with an address and port. Returns NULL, or the
 * error-reason. */
struct place {
	const char *addr;
	uint16_t port;
};

static const char *invite(
	struct talk *t, const char *id, const char *to_tag, struct place a, struct place b)
{
	struct ng_request r = request(id, "a", to_tag, talk_body(t, a.addr, a.port, "RTP/AVP", ""));

	talk_send(t, &r, false);
	if (t->reply.error)
		return t->reply.error;
	r = request(id, "a", "b", talk_body(t, b.addr, b.port, "RTP/AVP", ""));
	talk_send(t, &r, true);
	return t->reply.error;
}

static const char *call(struct talk *t, const char *id, const char *a, uint16_t a_port,
	const char *b, uint16_t b_port)
{
	return invite(t, id, "", (struct place){a, a_port}, (struct place){b, b_port});
}

static void end_call(struct talk *t, const char *id)
{
	struct ng_request r = request(id, "a", "", "");

	talk_pool(t);
	r.delete_delay = 0;
	calls_delete(t->c, t->p, &r, t->now, &t->reply, ngval_dict(t->p));
	assert_null(t->reply.error);
}

/* The offerer's port in call n (from 0): the mock gives pairs in order, from 30000 on. */
static uint16_t port_of(unsigned n, bool answerer)
{
	return (uint16_t)(30000 + 4 * n + 2 * answerer);
}

static void links_lead_to_other_calls_only(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	assert_null(call(&t, "one", A, 4000, B, 4000));
	for (int answerer = 0; answerer < 2; answerer++)
		for (uint16_t k = 0; k < 2; k++) {
			assert_string_equal(
				call(&t, "one", TOLD, port_of(0, answerer) + k, B, 4000),
				REACH_ERROR);
			assert_non_null(strstr(t.reply.detail.s, "is a media port of this call"));
			assert_string_equal(
				call(&t, "one", A, 4000, TOLD, port_of(0, answerer) + k),
				REACH_ERROR);
		}
	/* Two calls, both ways: a spiral. */
	assert_null(call(&t, "two", TOLD, port_of(0, true), B, 4000));
	assert_null(call(&t, "one", A, 4000, TOLD, port_of(1, false)));
	assert_true(endpoint_eq(&t.m->stream_cfg[2].remote, &(struct endpoint){0}) == false);
	talk_end(&t);
}

static void what_would_close_a_circle_is_refused_and_changes_nothing(void **state)
{
	struct media_stream_cfg before;
	struct talk t;

	(void)state;
	talk_start(&t);
	/* A phone's packet to call n goes to the phone's port of call n + 1. */
	assert_null(call(&t, "0", A, 4000, B, 4000));
	assert_null(call(&t, "1", A, 4000, TOLD, port_of(0, false)));
	assert_null(call(&t, "2", A, 4000, TOLD, port_of(1, false)));
	memcpy(&before, &t.m->stream_cfg[2], sizeof(before));
	assert_string_equal(call(&t, "0", A, 4000, TOLD, port_of(2, false)), REACH_ERROR);
	assert_non_null(strstr(t.reply.detail.s, "circle"));
	assert_memory_equal(&before, &t.m->stream_cfg[2], sizeof(before));
	/* The same by its RTCP port, and by RTCP alone. */
	assert_string_equal(call(&t, "0", A, 4000, TOLD, port_of(2, false) + 1), REACH_ERROR);
	struct ng_request r = request("0", "a", "b",
		talk_body(&t, B, 4000, "RTP/AVP", "a=rtcp:30008 IN IP4 " TOLD "\r\n"));
	talk_send(&t, &r, true);
	assert_string_equal(t.reply.error, REACH_ERROR);
	/* Without its last link, the chain is not a circle. */
	end_call(&t, "2");
	assert_null(call(&t, "0", A, 4000, B, 4000));
	talk_end(&t);
}

static void echo_listeners_and_connect_are_ways_too(void **state)
{
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	assert_null(call(&t, "0", A, 4000, B, 4000));
	assert_null(call(&t, "1", TOLD, port_of(0, true), B, 4000));
	assert_null(call(&t, "0", A, 4000, TOLD, port_of(1, false)));
	/* Echo at the second call returns media to the first call's port and on to the phone: no
	 * circle yet. Echo at both calls is a circle. */
	r = request("1", "a", "b", talk_body(&t, TOLD, port_of(0, true), "RTP/AVP", ""));
	r.echo = NG_ECHO_BACKWARDS;
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	r = request("1", "a", "b", talk_body(&t, B, 4000, "RTP/AVP", ""));
	talk_send(&t, &r, true);
	assert_null(t.reply.error);
	r = request("0", "a", "b", talk_body(&t, A, 4000, "RTP/AVP", ""));
	r.echo = NG_ECHO_FORWARD;
	talk_send(&t, &r, false);
	assert_string_equal(t.reply.error, REACH_ERROR);
	talk_end(&t);
}

static void a_link_ends_with_the_call_that_it_leads_to(void **state)
{
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	assert_null(call(&t, "0", A, 4000, B, 4000));
	assert_null(call(&t, "1", A, 4000, TOLD, port_of(0, false)));
	assert_int_equal(t.m->stream_cfg[6].remote.port, port_of(0, false));
	end_call(&t, "0");
	assert_int_equal(t.m->cuts, 2); /* RTP and RTCP */
	assert_int_equal(t.m->stream_cfg[6].remote.port, 0);
	assert_int_equal(t.m->stream_cfg[7].remote.port, 0);
	/* Another call has the port now. This call continues, and sends there only if its terminal
	 * names the port again. */
	assert_null(call(&t, "2", A, 4000, B, 4000));
	assert_int_equal(t.m->stream_cfg[0].local.port, port_of(0, false));
	r = request("1", "a", "b", talk_body(&t, A, 4000, "RTP/AVP", ""));
	talk_send(&t, &r, false);
	assert_int_equal(t.m->stream_cfg[6].remote.port, 0);
	talk_end(&t);
}

/* --- The host's addresses change -------------------------------------------------------------- */

struct changing {
	struct reach reach;
	const char *own;
	uint32_t asked;
};

static bool has_now(void *arg, const struct endpoint *e)
{
	struct changing *h = arg;

	h->asked++;
	return h->own && is(e, h->own);
}

static void changing_start(struct talk *t, struct changing *h)
{
	talk_start(t);
	*h = (struct changing){.reach = {.local = t->m->local,
				       .locals = t->m->locals,
				       .port_min = 30000,
				       .port_max = 40000,
				       .own = has_now,
				       .arg = h}};
	calls_set_reach(t->c, &h->reach);
}

static void all_again(struct talk *t)
{
	uint32_t steps = 0;

	calls_host_changed(t->c);
	while (calls_reach_again(t->c, t->now))
		assert_true(++steps < 100);
}

static void a_destination_that_becomes_the_hosts_is_cut(void **state)
{
	const struct endpoint none = {0}, ours = at(B, 9);
	struct ng_request r;
	struct changing h;
	struct talk t;

	(void)state;
	changing_start(&t, &h);
	assert_null(call(&t, "0", A, 4000, B, 4000));
	assert_null(call(&t, "1", A, 4002, A, 4004));
	assert_null(call(&t, "2", A, 4006, TOLD, port_of(0, false)));
	t.m->remote[4] = ours; /* learned by RTP of call 1's caller */
	r = request("3", "a", "", talk_body(&t, B, 4008, "RTP/AVP", ""));
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	all_again(&t);
	assert_int_equal(t.m->cuts, 0); /* control: nothing changed for these */
	h.own = B;
	all_again(&t);
	/* The side of call 0 with this address loses it for RTP and RTCP. Call 1 forgets a learned
	 * one and uses the signalled one again. */
	t.m->remote[4] = none;
	assert_int_equal(t.m->cuts, 2 + 2); /* the mock reports it as learned again */
	for (uint32_t i = 0; i < 12; i++)
		assert_true(!t.m->stream_cfg[i].remote.port == (i == 2 || i == 3));
	/* The pending offer is answered, and no media is sent there. */
	r = request("3", "a", "b", talk_body(&t, A, 4010, "RTP/AVP", ""));
	talk_send(&t, &r, true);
	assert_null(t.reply.error);
	for (uint32_t i = 12; i < 16; i++)
		assert_false(is(&t.m->stream_cfg[i].remote, B));
	/* New SDP from the terminal restores the flow. */
	assert_null(call(&t, "0", A, 4000, A, 4012));
	assert_true(is(&t.m->stream_cfg[2].remote, A));
	talk_end(&t);
}

/* Calls end and change during a pass, while addresses keep changing. */
static void judging_again_is_bounded_and_comes_to_its_end(void **state)
{
	enum { CALLS = 600, STEP_MAX = 5000 }; /* each call queries a few addresses */
	uint32_t steps = 0, longest = 0, all = 0;
	struct changing h;
	struct talk t;
	char id[8];

	(void)state;
	changing_start(&t, &h);
	for (unsigned n = 0; n < CALLS; n++) {
		snprintf(id, sizeof(id), "%u", n);
		assert_null(call(&t, id, A, 4000, n == CALLS - 1 ? B : A, 4000));
	}
	h.own = B;
	calls_host_changed(t.c);
	for (bool more = true; more; steps++) {
		assert_true(steps < 200);
		if (steps < 20)
			calls_host_changed(t.c);
		h.asked = 0;
		more = calls_reach_again(t.c, t.now) != 0;
		longest = h.asked > longest ? h.asked : longest;
		all += h.asked;
		if (steps >= 4)
			continue;
		snprintf(id, sizeof(id), "%u", 128 * (steps + 1)); /* the next call of the pass */
		end_call(&t, id);
		snprintf(id, sizeof(id), "%u", 128 * (steps + 1) + 1); /* and the next */
		assert_null(invite(&t, id, "b", (struct place){A, 4002}, (struct place){A, 4000}));
	}
	assert_in_range(all, 2 * CALLS, 100 * CALLS);
	assert_in_range(longest, 1, STEP_MAX < all / 4 ? STEP_MAX : all / 4);
	assert_int_equal(t.m->cuts, 2);
	talk_end(&t);
}

static void an_offer_that_waits_is_looked_at_again_when_it_is_answered(void **state)
{
	struct ng_request r;
	struct talk t;

	(void)state;
	talk_start(&t);
	assert_null(call(&t, "0", A, 4000, B, 4000));
	r = request("1", "a", "", talk_body(&t, TOLD, port_of(0, false), "RTP/AVP", ""));
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	end_call(&t, "0");
	r = request("1", "a", "b", talk_body(&t, B, 4000, "RTP/AVP", ""));
	talk_send(&t, &r, true);
	assert_string_equal(t.reply.error, REACH_ERROR);
	talk_end(&t);
}

static void a_long_chain_is_walked_within_bounds(void **state)
{
	char id[16];
	struct talk t;
	unsigned n = 0;

	(void)state;
	talk_start(&t);
	/* Links are added from the end: no call sends to the new one, so no search is needed. */
	assert_null(call(&t, "0", A, 4000, B, 4000));
	for (n = 1; n < 50; n++) {
		snprintf(id, sizeof(id), "%u", n);
		assert_null(call(&t, id, A, 4000, TOLD, port_of(n - 1, false)));
	}
	/* In the middle, the path to the end is too long to search. */
	assert_string_equal(invite(&t, "48", "b", (struct place){A, 4001},
				    (struct place){TOLD, port_of(47, false)}),
		REACH_ERROR);
	assert_null(invite(
		&t, "10", "b", (struct place){A, 4001}, (struct place){TOLD, port_of(9, false)}));
	talk_end(&t);
}

/* A stream that receives more than a terminal sends is watched every ten seconds, any other
 * rarely. */
static void fast_streams_are_watched(void **state)
{
	static const struct {
		uint32_t pps, seconds, watches; /* of four plain streams */
		bool kernel, early;
	} T[] = {{50, 100, 4, false, false}, {50, 1000, 16, false, false},
		{399, 100, 4, false, false}, {400, 100, 40, false, false},
		{1599, 100, 0, true, false}, {1600, 100, 40, true, false},
		{50, 100, 4, false, true}, {400, 100, 40, false, true}};
	struct talk t;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		talk_start(&t);
		if (T[i].early)
			talk_offer(&t, "a", "", talk_body(&t, A, 4000, "RTP/AVP", ""));
		else
			assert_null(call(&t, "0", A, 4000, B, 4000));
		t.m->in_kernel = T[i].kernel;
		t.m->last_packet_ns = UINT64_MAX;
		for (uint32_t s = 0; s <= T[i].seconds; s++) {
			t.m->more_packets += T[i].pps;
			t.m->last_packet_ns = t.now;
			calls_tick(t.c, t.now);
			t.now += NS_PER_SEC;
		}
		if (t.m->watches != T[i].watches)
			fail_msg("row %zu: %u", i, t.m->watches);
		talk_end(&t);
	}
}

/* Random links between a few calls. An independent search finds no circle in the accepted graph. */
static void no_sequence_of_words_makes_a_circle(void **state)
{
	enum { CALLS = 6, STEPS = 4000 };
	uint32_t seed = 1, accepted = 0, refused = 0;
	struct talk t;

	(void)state;
	talk_start(&t);
	for (unsigned n = 0; n < CALLS; n++) {
		char id[2] = {(char)('0' + n), 0};

		assert_null(call(&t, id, A, 4000, B, 4000));
	}
	for (int step = 0; step < STEPS; step++) {
		uint16_t to[2];
		char id[2];

		seed = seed * 1664525u + 1013904223u;
		id[0] = (char)('0' + (seed >> 8) % CALLS);
		id[1] = 0;
		for (int k = 0; k < 2; k++)
			to[k] = seed >> (12 + k) & 1
				? (uint16_t)(30000 + (seed >> (14 + 6 * k)) % (4 * CALLS))
				: 0;
		if (call(&t, id, to[0] ? TOLD : A, to[0] ? to[0] : 4000, to[1] ? TOLD : B,
			    to[1] ? to[1] : 4000))
			refused++;
		else
			accepted++;
		/* Follows a packet from every port: it must leave the graph. */
		for (uint32_t start = 0; start < 4 * CALLS; start++) {
			uint32_t stream = start, hops = 0;

			for (;; hops++) {
				const struct media_stream_cfg *in = &t.m->stream_cfg[stream], *out;
				uint32_t leaves = in->rtp ? in->rtp_to : in->rtcp_to;

				if (leaves == MEDIA_NONE)
					break;
				out = &t.m->stream_cfg[leaves];
				if (!is(&out->remote, TOLD) || !out->remote.port)
					break;
				stream = out->remote.port - 30000u;
				if (hops > 4 * CALLS)
					fail_msg("step %d: a packet to port %u goes round", step,
						30000 + start);
			}
		}
	}
	assert_true(accepted > STEPS / 20 && refused > STEPS / 20);
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_judged_by_what_they_are),
		cmocka_unit_test(a_source_is_learned_where_media_may_go_or_was_sent),
		cmocka_unit_test(checks_reach_our_media_ports),
		cmocka_unit_test(an_sdp_is_refused_with_line_and_reason_or_passes),
		cmocka_unit_test(with_sip_source_address_that_address_counts),
		cmocka_unit_test(links_lead_to_other_calls_only),
		cmocka_unit_test(what_would_close_a_circle_is_refused_and_changes_nothing),
		cmocka_unit_test(echo_listeners_and_connect_are_ways_too),
		cmocka_unit_test(a_link_ends_with_the_call_that_it_leads_to),
		cmocka_unit_test(a_destination_that_becomes_the_hosts_is_cut),
		cmocka_unit_test(judging_again_is_bounded_and_comes_to_its_end),
		cmocka_unit_test(an_offer_that_waits_is_looked_at_again_when_it_is_answered),
		cmocka_unit_test(a_long_chain_is_walked_within_bounds),
		cmocka_unit_test(fast_streams_are_watched),
		cmocka_unit_test(no_sequence_of_words_makes_a_circle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
