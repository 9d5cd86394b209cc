/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls over a packet side in memory: what terminals are told, what workers are told, and that nothing stays behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "call/call.h"
#include "mock_relay.h"
#include "proto/sdes.h"

#define NOW (1000 * NS_PER_SEC)

#define K1 "inline:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define K2 "inline:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
#define K3 "inline:CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC"

#define CM80 "AES_CM_128_HMAC_SHA1_80"
#define CM32 "AES_CM_128_HMAC_SHA1_32"

static struct mock_relay mock;
static struct calls *calls;
static struct pool *pool;
static struct call_reply reply;
static struct sdp *sdp; /* the reply's, parsed again */

static void start(uint32_t max_calls)
{
	struct call_policy policy = {.suites = ~1u & ((1u << SUITE_COUNT) - 1),
		.learning = MEDIA_LEARN_HEURISTIC,
		.tos = 184,
		.timeout_ns = 60 * NS_PER_SEC,
		.silent_timeout_ns = 3600 * NS_PER_SEC,
		.offer_timeout_ns = 300 * NS_PER_SEC,
		.delete_delay_ns = 30 * NS_PER_SEC,
		.max_calls = max_calls,
		.loop_id = "0123456789abcdef"};

	mock_relay_init(&mock);
	assert_int_equal(calls_create(&calls, &policy, &mock.relay), 0);
}

static void assert_empty(void)
{
	assert_int_equal(mock.ports, 0);
	assert_int_equal(mock.ctxs, 0);
	assert_int_equal(mock.keys, 0);
}

static void stop(void)
{
	calls_destroy(calls);
	pool_destroy(pool);
	pool = NULL;
	assert_empty();
}

static struct ng_request request(enum ng_command c, const char *from, const char *to)
{
	return (struct ng_request){.command = c,
		.call_id = STR("call"),
		.from_tag = str_from(from),
		.to_tag = str_from(to),
		.tos = -1,
		.delete_delay = -1,
		.limit = -1};
}

static void fresh_pool(void)
{
	pool_destroy(pool);
	assert_int_equal(pool_create(&pool, 8 << 20), 0);
}

/* last: the host part of the terminal's address; media: m= lines and what belongs to them */
static bool say(struct ng_request r, int last, const char *media)
{
	char body[4096];

	snprintf(body, sizeof(body),
		"v=0\r\no=- 1 1 IN IP4 192.0.2.%d\r\ns=-\r\nc=IN IP4 192.0.2.%d\r\nt=0 0\r\n%s",
		last, last, media);
	fresh_pool();
	r.sdp = pool_strdup(pool, str_from(body));
	if (r.command == NG_OFFER)
		calls_offer(calls, pool, &r, NOW, &reply);
	else
		calls_answer(calls, pool, &r, NOW, &reply);
	sdp = pool_alloc(pool, sizeof(*sdp));
	if (reply.sdp.len)
		assert_int_equal(sdp_parse(sdp, pool, reply.sdp, NULL), SDP_OK);
	return !reply.error && !reply.load_limit;
}

static struct ng_request offer_as(const char *transport)
{
	struct ng_request r = request(NG_OFFER, "a", NULL);

	r.transport = str_from(transport);
	return r;
}

/* The n-th crypto line of the reply's first media, from 0; false if there are not so many. */
static bool crypto(struct sdes *out, unsigned n)
{
	const struct sdp_line *l = sdp_attr(sdp->media[0].lines, STR("crypto"));

	while (l && n--)
		l = sdp_attr(l->next, STR("crypto"));
	return l && sdes_parse(out, l->arg) == SDES_OK;
}

static unsigned crypto_count(void)
{
	struct sdes s;
	unsigned n = 0;

	while (crypto(&s, n))
		n++;
	return n;
}

static struct sdes crypto_of(enum srtp_suite_id id)
{
	struct sdes s;

	for (unsigned i = 0; crypto(&s, i); i++)
		if (s.master.suite == id)
			return s;
	fail();
	return s;
}

/* What the worker knows of the side whose local port is this one. */
static const struct media_stream_cfg *stream_at(uint16_t port)
{
	for (int i = 0; i < MOCK_MAX; i++)
		if (mock.stream[i].local.port == port)
			return &mock.stream[i];
	fail();
	return NULL;
}

static const struct media_ctx_cfg *ctx_at(uint16_t port)
{
	return &mock.ctx[stream_at(port)->ctx];
}

static void answer_line(char out[512], const char *proto, struct sdes s, const char *key)
{
	snprintf(out, 512, "m=audio 6000 %s 0\r\na=crypto:%u %s %s\r\n", proto, s.tag,
		srtp_suite_get(s.master.suite)->name, key);
}

static void test_plain_to_plain(void **state)
{
	uint16_t b_port, a_port;

	(void)state;
	start(0);
	assert_true(say(offer_as(NULL), 1, "m=audio 4000 RTP/AVP 0\r\n"));
	b_port = sdp->media[0].port;
	assert_int_equal(crypto_count(), 0);
	assert_int_equal(sdp->media[0].proto, SDP_RTP_AVP);
	assert_int_equal(sdp->media[0].conn.addr.addr[0], 10);
	assert_true(say(request(NG_ANSWER, "a", "b"), 2, "m=audio 6000 RTP/AVP 0\r\n"));
	a_port = sdp->media[0].port;
	assert_int_equal(stream_at(a_port)->remote.port, 4000);
	assert_int_equal(stream_at(a_port + 1)->remote.port, 4001);
	assert_int_equal(stream_at(b_port)->remote.port, 6000);
	assert_int_equal(mock.stream[stream_at(a_port)->rtp_to].local.port, b_port);
	assert_int_equal(mock.stream[stream_at(b_port + 1)->rtcp_to].local.port, a_port + 1);
	assert_int_equal(stream_at(a_port)->tos, 184);
	assert_int_equal(mock.keys, 0);
	stop();
}

static void test_plain_to_secure(void **state)
{
	struct sdes ours;
	char line[512];
	uint16_t b_port;

	(void)state;
	start(0);
	assert_true(say(offer_as("RTP/SAVP"), 1, "m=audio 4000 RTP/AVP 0\r\n"));
	b_port = sdp->media[0].port;
	assert_int_equal(sdp->media[0].proto, SDP_RTP_SAVP);
	assert_int_equal(crypto_count(), SUITE_COUNT - 1);
	assert_int_equal(stream_at(b_port)->rtp_to, MEDIA_NONE); /* nothing passes unencrypted */
	ours = crypto_of(SUITE_AES_CM_128_80);
	answer_line(line, "RTP/SAVP", ours, K2);
	assert_true(say(request(NG_ANSWER, "a", "b"), 2, line));
	assert_int_equal(sdp->media[0].proto, SDP_RTP_AVP);
	assert_int_equal(crypto_count(), 0);
	assert_memory_equal(mock.key[ctx_at(b_port)->tx.key].key, ours.master.key, 16);
	assert_int_equal(ctx_at(b_port)->rx.suite, SUITE_AES_CM_128_80);
	assert_true(ctx_at(b_port)->rx_new);
	assert_int_equal(ctx_at(sdp->media[0].port)->tx.key, 0);
	assert_int_equal(mock.keys, 2);
	stop();
}

static const char secure_offer[] =
	"m=audio 4000 RTP/SAVP 0\r\na=crypto:5 " CM32 " " K1 "\r\na=crypto:7 " CM80 " " K1 "\r\n";

static void test_suites_may_differ(void **state)
{
	static const struct {
		enum srtp_suite_id b, a;
		unsigned tag;
	} T[] = {{SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 7},
		{SUITE_AES_CM_128_32, SUITE_AES_CM_128_32, 5},
		{SUITE_AEAD_AES_256_GCM, SUITE_AES_CM_128_32, 5}};
	static const char gcm_key[] =
		"inline:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct sdes s;
		char line[512];

		start(0);
		assert_true(say(offer_as(NULL), 1, secure_offer));
		assert_true(crypto(&s, 0)); /* the offerer's order first */
		assert_int_equal(s.master.suite, SUITE_AES_CM_128_32);
		assert_memory_not_equal(s.master.key, (uint8_t[16]){0}, 16); /* not its key */
		answer_line(line, "RTP/SAVP", crypto_of(T[i].b),
			srtp_suite_get(T[i].b)->key_len == 32 ? gcm_key : K2);
		assert_true(say(request(NG_ANSWER, "a", "b"), 2, line));
		assert_int_equal(crypto_count(), 1);
		assert_true(crypto(&s, 0));
		assert_int_equal(s.master.suite, T[i].a);
		assert_int_equal(s.tag, T[i].tag);
		assert_memory_equal(
			mock.key[ctx_at(sdp->media[0].port)->tx.key].key, s.master.key, 16);
		stop();
	}
}

static void test_refusals_leave_nothing(void **state)
{
	static const struct {
		const char *transport, *media, *error;
		uint32_t sdes;
	} T[] = {
		{NULL, "m=audio 4000 RTP/SAVP 0\r\n", "No common crypto suite", 0},
		{NULL, "m=audio 4000 UDP/TLS/RTP/SAVPF 0\r\n",
			"DTLS-SRTP is not available and no a=crypto was offered", 0},
		{"RTP/SAVP", "m=audio 4000 RTP/AVP 0\r\n",
			"SDES is off and there is no other way to agree on keys", NG_SDES_OFF},
		{NULL, "m=audio x RTP/AVP 0\r\n", "Failed to parse SDP", 0},
		{NULL, "m=audio 4000 RTP/AVP 0\r\nc=IN IP4 phone.example\r\n",
			"Incomplete SDP specification", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request r = offer_as(T[i].transport);
		struct calls_counters c;

		start(0);
		r.sdes.flags = T[i].sdes;
		assert_false(say(r, 1, T[i].media));
		assert_string_equal(reply.error, T[i].error);
		calls_counters(calls, &c);
		assert_int_equal(c.current, 0);
		assert_empty();
		stop();
	}
}

static void test_answer_must_take_an_offered_line(void **state)
{
	struct sdes s;
	char line[512];

	(void)state;
	start(0);
	assert_true(say(offer_as(NULL), 1, secure_offer));
	s = crypto_of(SUITE_AES_CM_128_80);
	s.tag = 99;
	answer_line(line, "RTP/SAVP", s, K2);
	assert_false(say(request(NG_ANSWER, "a", "b"), 2, line));
	assert_string_equal(reply.error, "No common crypto suite");
	assert_int_equal(mock.keys, 0);
	assert_int_equal(mock.commits, 1);
	assert_false(say(request(NG_ANSWER, "x", "b"), 2, line));
	assert_string_equal(reply.error, "Invalid dialogue association");
	stop();
}

struct pair {
	uint16_t a_port, b_port;
	struct sdes to_a, to_b;
};

static struct pair set_up(void)
{
	struct pair x = {0};
	char line[512];

	assert_true(say(offer_as(NULL), 1, secure_offer));
	x.b_port = sdp->media[0].port;
	x.to_b = crypto_of(SUITE_AES_CM_128_80);
	answer_line(line, "RTP/SAVP", x.to_b, K2);
	assert_true(say(request(NG_ANSWER, "a", "b"), 2, line));
	x.a_port = sdp->media[0].port;
	x.to_a = crypto_of(SUITE_AES_CM_128_80);
	return x;
}

static void test_same_key_keeps_index(void **state)
{
	struct pair x;
	char line[512];
	uint32_t rx, tx;

	(void)state;
	start(0);
	x = set_up();
	rx = ctx_at(x.a_port)->rx.key;
	tx = ctx_at(x.a_port)->tx.key;
	for (int round = 0; round < 3; round++) {
		struct ng_request r = offer_as(NULL);

		r.to_tag = STR("b");
		assert_true(say(r, 1, secure_offer));
		assert_int_equal(sdp->media[0].port, x.b_port);
		assert_memory_equal(
			crypto_of(SUITE_AES_CM_128_80).master.key, x.to_b.master.key, 16);
		answer_line(line, "RTP/SAVP", x.to_b, K2);
		for (int twice = 0; twice < 2; twice++) /* 183, then 200 */
			assert_true(say(request(NG_ANSWER, "a", "b"), 2, line));
		assert_memory_equal(
			crypto_of(SUITE_AES_CM_128_80).master.key, x.to_a.master.key, 16);
		assert_int_equal(sdp->media[0].port, x.a_port);
		assert_false(ctx_at(x.a_port)->rx_new || ctx_at(x.a_port)->tx_new);
		assert_false(ctx_at(x.b_port)->rx_new || ctx_at(x.b_port)->tx_new);
		assert_false(stream_at(x.a_port)->relearn);
		assert_int_equal(ctx_at(x.a_port)->rx.key, rx);
		assert_int_equal(ctx_at(x.a_port)->tx.key, tx);
	}
	assert_int_equal(mock.keys, 4);
	stop();
}

static void test_new_key_is_new(void **state)
{
	struct pair x;
	char line[512];

	(void)state;
	start(0);
	x = set_up();
	assert_true(say(
		offer_as(NULL), 1, "m=audio 4000 RTP/SAVP 0\r\na=crypto:7 " CM80 " " K3 "\r\n"));
	assert_false(ctx_at(x.a_port)->rx_new); /* not before the answer */
	answer_line(line, "RTP/SAVP", crypto_of(SUITE_AES_CM_128_80), K2);
	assert_true(say(request(NG_ANSWER, "a", "b"), 2, line));
	assert_true(ctx_at(x.a_port)->rx_new);
	assert_int_equal(mock.key[ctx_at(x.a_port)->rx.key].key[0], 0x08);
	assert_false(ctx_at(x.a_port)->tx_new);
	assert_false(ctx_at(x.b_port)->rx_new);
	assert_int_equal(mock.keys, 4);
	stop();
}

static void test_answerer_may_offer(void **state)
{
	struct pair x;
	char line[512];
	struct sdes s;

	(void)state;
	start(0);
	x = set_up();
	assert_true(say(request(NG_OFFER, "b", "a"), 2,
		"m=audio 6000 RTP/SAVP 0\r\na=crypto:1 " CM80 " " K2 "\r\n"));
	assert_int_equal(sdp->media[0].port, x.a_port);
	s = crypto_of(SUITE_AES_CM_128_80); /* what runs towards A goes on */
	assert_memory_equal(s.master.key, x.to_a.master.key, 16);
	answer_line(line, "RTP/SAVP", s, K1);
	assert_true(say(request(NG_ANSWER, "b", "a"), 1, line));
	assert_int_equal(sdp->media[0].port, x.b_port);
	assert_false(ctx_at(x.a_port)->rx_new || ctx_at(x.a_port)->tx_new);
	assert_false(ctx_at(x.b_port)->rx_new);
	stop();
}

static void test_mux_is_each_sides_own(void **state)
{
	uint16_t a, b;

	(void)state;
	start(0);
	assert_true(say(offer_as(NULL), 1, "m=audio 4000 RTP/AVP 0\r\na=rtcp-mux\r\n"));
	assert_true(sdp->media[0].rtcp_mux);
	b = sdp->media[0].port;
	assert_true(
		say(request(NG_ANSWER, "a", "b"), 2, "m=audio 6000 RTP/AVP 0\r\na=rtcp:6009\r\n"));
	assert_true(sdp->media[0].rtcp_mux);
	a = sdp->media[0].port;
	assert_true(stream_at(a)->rtp && stream_at(a)->rtcp);
	assert_true(stream_at(b)->rtp && !stream_at(b)->rtcp);
	assert_int_equal(mock.stream[stream_at(b + 1)->rtcp_to].local.port, a);
	assert_int_equal(mock.stream[stream_at(a)->rtcp_to].local.port, b + 1);
	assert_int_equal(stream_at(b + 1)->remote.port, 6009);
	stop();
}

static void test_hold_and_rejection(void **state)
{
	uint16_t a, b;

	(void)state;
	start(0);
	assert_true(say(offer_as(NULL), 1,
		"m=audio 4000 RTP/AVP 0\r\nm=video 0 RTP/AVP 96\r\nm=image 4002 udptl t38\r\n"));
	assert_int_equal(mock.ports, 2);
	b = sdp->media[0].port;
	assert_int_equal(sdp->media[1].port, 0);
	assert_int_equal(sdp->media[2].port, 4002);
	assert_true(say(request(NG_ANSWER, "a", "b"), 2,
		"m=audio 6000 RTP/AVP 0\r\nm=video 0 RTP/AVP 96\r\nm=image 0 udptl t38\r\n"));
	a = sdp->media[0].port;
	assert_true(say(offer_as(NULL), 1,
		"m=audio 4000 RTP/AVP 0\r\nc=IN IP4 0.0.0.0\r\na=inactive\r\n"
		"m=video 4004 RTP/AVP 96\r\nm=image 0 udptl t38\r\n"));
	assert_int_equal(sdp->media[0].port, b);
	assert_int_equal(mock.ports, 4);
	assert_true(say(request(NG_ANSWER, "a", "b"), 2,
		"m=audio 6000 RTP/AVP 0\r\nm=video 0 RTP/AVP 96\r\nm=image 0 udptl t38\r\n"));
	assert_int_equal(sdp->media[0].port, a);
	assert_int_equal(sdp->media[1].port, 0);
	assert_int_equal(stream_at(a)->remote.port, 0);
	assert_int_equal(stream_at(b)->remote.port, 6000);
	assert_true(say(offer_as(NULL), 1,
		"m=audio 4000 RTP/AVP 0\r\nm=video 0 RTP/AVP 96\r\nm=image 0 udptl t38\r\n"));
	assert_true(say(request(NG_ANSWER, "a", "b"), 2,
		"m=audio 6000 RTP/AVP 0\r\nm=video 0 RTP/AVP 96\r\nm=image 0 udptl t38\r\n"));
	assert_int_equal(stream_at(a)->remote.port, 4000);
	assert_int_equal(mock.ports, 2); /* the video's went */
	stop();
}

static void test_interfaces(void **state)
{
	struct ng_request r = offer_as(NULL);

	(void)state;
	start(0);
	r.direction[0] = STR("inner");
	r.direction[1] = STR("outer");
	assert_true(say(r, 1, "m=audio 4000 RTP/AVP 0\r\n"));
	assert_int_equal(sdp->media[0].conn.addr.addr[0], 198); /* advertised */
	assert_true(say(request(NG_ANSWER, "a", "b"), 2, "m=audio 6000 RTP/AVP 0\r\n"));
	assert_int_equal(sdp->media[0].conn.addr.addr[0], 10);
	stop();
	start(0);
	r = offer_as(NULL);
	r.address_family = AF_INET6;
	assert_true(say(r, 1, "m=audio 4000 RTP/AVP 0\r\n"));
	assert_int_equal(sdp->media[0].conn.addr.family, AF_INET6);
	stop();
}

/* Every call that can fail does so once, in a first offer, an answer, and a re-offer with a new stream and new keys. */
static void test_every_failure_is_undone(void **state)
{
	static const char more[] = "m=audio 4000 RTP/SAVP 0\r\na=crypto:7 " CM80 " " K3 "\r\n"
				   "m=video 4010 RTP/SAVP 96\r\na=crypto:1 " CM80 " " K3 "\r\n";
	uint32_t n, failures = 0;
	bool ok = false;

	(void)state;
	for (n = 1; !ok; n++) {
		start(0);
		mock.fail_at = n;
		ok = say(offer_as(NULL), 1, secure_offer);
		if (!ok) {
			assert_string_equal(reply.error, "Ran out of ports");
			assert_empty();
			failures++;
		}
		stop();
	}
	ok = false;
	for (n = 1; !ok; n++) {
		struct pair x;
		struct ng_request r = offer_as(NULL);
		uint32_t keys, commits;

		start(0);
		x = set_up();
		keys = mock.keys;
		commits = mock.commits;
		mock.fail_at = mock.calls + n;
		ok = say(r, 1, more);
		if (!ok) {
			assert_int_equal(mock.ports, 2);
			assert_int_equal(mock.ctxs, 2);
			assert_int_equal(mock.keys, keys);
			assert_int_equal(mock.commits, commits);
			failures++;
		}
		mock.fail_at = 0;
		assert_true(say(r, 1, more)); /* and can be said again */
		assert_int_equal(sdp->media[0].port, x.b_port);
		assert_int_equal(mock.ports, 4);
		stop();
	}
	ok = false;
	for (n = 1; !ok; n++) {
		char line[512];

		start(0);
		assert_true(say(offer_as(NULL), 1, secure_offer));
		answer_line(line, "RTP/SAVP", crypto_of(SUITE_AES_CM_128_80), K2);
		mock.fail_at = mock.calls + n;
		ok = say(request(NG_ANSWER, "a", "b"), 2, line);
		failures += !ok;
		if (!ok)
			assert_int_equal(mock.keys, 0);
		mock.fail_at = 0;
		assert_true(say(request(NG_ANSWER, "a", "b"), 2, line));
		assert_int_equal(mock.keys, 4);
		stop();
	}
	assert_int_equal(failures, 5 + 5 + 5);
}

static struct ngval *end_call(struct ng_request r, uint64_t now)
{
	struct ngval *dict;

	fresh_pool();
	dict = ngval_dict(pool);
	calls_delete(calls, pool, &r, now, &reply, dict);
	return dict;
}

static uint64_t current(void)
{
	struct calls_counters c;

	calls_counters(calls, &c);
	return c.current;
}

static void test_delete_and_timers(void **state)
{
	struct ng_request r = request(NG_DELETE, NULL, NULL);

	(void)state;
	start(0);
	set_up();
	r.from_tag = STR("nobody");
	end_call(r, NOW);
	assert_null(reply.error);
	assert_true(str_eq(reply.warning, STR("Call-ID not found or tags didn't match")));
	r.flags = 1ull << NG_FLAG_FATAL;
	end_call(r, NOW);
	assert_non_null(reply.error);
	r.from_tag = STR("b");
	assert_non_null(ngval_get(end_call(r, NOW), STR("totals")));
	calls_tick(calls, NOW + 29 * NS_PER_SEC);
	assert_int_equal(current(), 1);
	calls_tick(calls, NOW + 30 * NS_PER_SEC);
	assert_int_equal(current(), 0);
	assert_empty();
	set_up();
	mock.last_packet_ns = NOW + 50 * NS_PER_SEC;
	calls_tick(calls, NOW + 61 * NS_PER_SEC);
	assert_int_equal(current(), 1);
	calls_tick(calls, NOW + 110 * NS_PER_SEC);
	assert_int_equal(current(), 0);
	set_up();
	r.delete_delay = 0;
	end_call(r, NOW);
	assert_int_equal(current(), 0);
	assert_empty();
	stop();
}

static void test_query_has_no_keys(void **state)
{
	struct ng_request r = request(NG_QUERY, NULL, NULL);
	struct ngval *dict;
	struct sbuf b;

	(void)state;
	start(0);
	set_up();
	fresh_pool();
	dict = ngval_dict(pool);
	calls_query(calls, pool, &r, NOW, &reply, dict);
	assert_null(reply.error);
	sbuf_init(&b, 0);
	json_write(&b, dict, false);
	assert_int_equal(b.err, 0);
	assert_non_null(strstr(b.p, "\"crypto suite\":\"" CM80 "\""));
	assert_non_null(strstr(b.p, "\"advertised endpoint\""));
	assert_null(strstr(b.p, "inline"));
	sbuf_fini(&b);
	r.call_id = STR("other");
	calls_query(calls, pool, &r, NOW, &reply, dict);
	assert_string_equal(reply.error, "Unknown call-id");
	stop();
}

static void test_limit_is_for_new_calls(void **state)
{
	struct ng_request r = offer_as(NULL);

	(void)state;
	start(1);
	set_up();
	assert_true(say(r, 1, secure_offer));
	r.call_id = STR("second");
	assert_false(say(r, 1, secure_offer));
	assert_true(reply.load_limit);
	stop();
}

static void test_version_counts_what_was_said(void **state)
{
	static const struct {
		uint32_t replace;
		uint16_t port;
		const char *want;
	} T[] = {{1u << NG_REPLACE_SDP_VERSION, 4000, "1"},
		{1u << NG_REPLACE_SDP_VERSION, 4000, "1"},
		{1u << NG_REPLACE_SDP_VERSION, 4002, "2"},
		{1u << NG_REPLACE_FORCE_INCREMENT, 4002, "3"}};

	(void)state;
	start(0);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request r = offer_as(NULL);
		char media[64];

		snprintf(media, sizeof(media), "m=audio %u RTP/AVP 0\r\n", T[i].port);
		r.replace = T[i].replace;
		assert_true(say(r, 1, media));
		assert_true(str_eq(sdp->origin_version, str_from(T[i].want)));
	}
	stop();
}

static void test_forks_and_loops(void **state)
{
	struct ng_request r = offer_as(NULL);

	(void)state;
	start(0);
	r.flags = 1ull << NG_FLAG_LOOP_PROTECT;
	assert_true(say(r, 1, "m=audio 4000 RTP/AVP 0\r\n"));
	assert_non_null(sdp_attr(sdp->session, STR("xcipher")));
	assert_true(say(request(NG_ANSWER, "a", "b1"), 2, "m=audio 6000 RTP/AVP 0\r\n"));
	assert_true(say(request(NG_ANSWER, "a", "b2"), 3, "m=audio 7000 RTP/AVP 0\r\n"));
	assert_int_equal(mock.stream[stream_at(sdp->media[0].port)->rtp_to].remote.port, 7000);
	assert_true(say(request(NG_OFFER, "b1", "a"), 2, "m=audio 6000 RTP/AVP 0\r\n"));
	assert_false(say(request(NG_OFFER, "b1", "b2"), 2, "m=audio 6000 RTP/AVP 0\r\n"));
	r.call_id = STR("again");
	assert_true(say(r, 1, "a=xcipher:0123456789abcdef\r\nm=audio 4000 RTP/AVP 0\r\n"));
	assert_int_equal(sdp->media[0].port, 4000);
	stop();
}

static void test_ten_thousand_calls(void **state)
{
	char id[16];

	(void)state;
	start(0);
	for (int i = 0; i < 10000; i++) {
		struct ng_request r = offer_as("RTP/SAVP");

		snprintf(id, sizeof(id), "c%d", i);
		r.call_id = str_from(id);
		assert_true(say(r, 1, "m=audio 4000 RTP/AVP 0\r\n"));
		if (i < 9000)
			continue;
		r = request(NG_DELETE, NULL, NULL);
		r.call_id = str_from(id);
		r.delete_delay = 0;
		end_call(r, NOW);
	}
	assert_int_equal(current(), 9000);
	assert_int_equal(mock.ports, 18000);
	for (int i = 0; i < 64; i++)
		calls_tick(calls, NOW + 301 * NS_PER_SEC);
	assert_int_equal(current(), 0);
	assert_empty();
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_to_plain),
		cmocka_unit_test(test_plain_to_secure),
		cmocka_unit_test(test_suites_may_differ),
		cmocka_unit_test(test_refusals_leave_nothing),
		cmocka_unit_test(test_answer_must_take_an_offered_line),
		cmocka_unit_test(test_same_key_keeps_index),
		cmocka_unit_test(test_new_key_is_new),
		cmocka_unit_test(test_answerer_may_offer),
		cmocka_unit_test(test_mux_is_each_sides_own),
		cmocka_unit_test(test_hold_and_rejection),
		cmocka_unit_test(test_interfaces),
		cmocka_unit_test(test_every_failure_is_undone),
		cmocka_unit_test(test_delete_and_timers),
		cmocka_unit_test(test_query_has_no_keys),
		cmocka_unit_test(test_limit_is_for_new_calls),
		cmocka_unit_test(test_version_counts_what_was_said),
		cmocka_unit_test(test_forks_and_loops),
		cmocka_unit_test(test_ten_thousand_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
