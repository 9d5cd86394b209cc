/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One-way media: listeners get copies under their own keys, publishers only send. Other parties'
 * media stay unchanged. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "call/call.h"
#include "call/delete.h"
#include "call/recorder.h"
#include "call/recording.h"
#include "call_talk.h"
#include "offer/exchange.h"

/* --- Media ------------------------------------------------------------------------------------ */

enum { L1 = 4, L2 = 5, PORT_L1 = 30004, PORT_L2 = 30006 };

static void listen_on(struct rig *r, uint32_t id, uint16_t port, uint32_t ctx, uint32_t next)
{
	struct media_cmd cmd =
		rig_stream_cmd(id, port, ctx, MEDIA_NONE, MEDIA_NONE, "192.0.2.9:9000");

	cmd.stream.rtp = cmd.stream.rtcp = cmd.stream.listener = true;
	cmd.stream.copy[0] = cmd.stream.copy[1] = next;
	assert_int_equal(media_command(r->m, &cmd), 0);
}

static void source(struct rig *r, uint32_t to, uint32_t first, uint8_t gate)
{
	struct media_cmd cmd = rig_stream_cmd(A, PORT_A, 0, to, to, "192.0.2.1:4000");

	cmd.stream.rtp = cmd.stream.rtcp = true;
	cmd.stream.gate = gate;
	cmd.stream.copy[0] = cmd.stream.copy[1] = first;
	assert_int_equal(media_command(r->m, &cmd), 0);
}

static struct rig *rig_listened(uint32_t to)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);

	rig_ctx(r, 2, (struct rig_keys){0, 0, SUITE_PLAIN, true, true});
	rig_ctx(r, 3, (struct rig_keys){A_TX2, A_RX, SUITE_AES_CM_128_80, true, true});
	listen_on(r, L1, PORT_L1, 2, L2 + 1);
	listen_on(r, L2, PORT_L2, 3, 0);
	source(r, to, L1 + 1, 0);
	return r;
}

static const struct packet_out *left_from(const struct rig *r, uint16_t port)
{
	for (uint32_t i = 0; i < r->outs; i++)
		if (r->out[i].local.port == port)
			return &r->out[i];
	return NULL;
}

static void every_listener_gets_the_packet_under_its_own_key(void **state)
{
	struct rig *r = rig_listened(B);
	uint8_t plain[172];

	(void)state;
	for (uint64_t index = 65530; index < 65545; index++) {
		rig_send(r, 7, index, A_TX);
		rig_run(r);
		assert_int_equal(r->outs, 3);
		rig_plain_rtp(plain, 7, index);
		assert_memory_equal(
			r->a.out + left_from(r, PORT_L1)->out_off, plain, sizeof(plain));
		assert_int_equal(left_from(r, PORT_L1)->len, sizeof(plain));
		/* tag of 80 bits and another key: neither the plain text nor B's packet */
		assert_int_equal(left_from(r, PORT_L2)->len, sizeof(plain) + 10);
		assert_memory_not_equal(
			r->a.out + left_from(r, PORT_L2)->out_off + 12, plain + 12, 20);
		rig_got(r, 0, 7, index, index);
	}
	rig_free(r);
}

static void a_source_without_a_peer_is_heard_too(void **state)
{
	struct rig *r = rig_listened(MEDIA_NONE);

	(void)state;
	rig_send(r, 7, 1, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 2);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_INACTIVE), 0);
	assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->packets), 1);
	rig_free(r);
}

static void what_is_forged_replayed_or_blocked_is_not_copied(void **state)
{
	struct rig *r = rig_listened(B);

	(void)state;
	rig_send(r, 7, 1, A_TX)[20] ^= 1;
	rig_run(r);
	assert_int_equal(r->outs, 0);
	rig_send(r, 7, 2, A_TX);
	rig_send(r, 7, 2, A_TX); /* twice in one burst: both authenticate */
	rig_run(r);
	assert_int_equal(r->outs, 3);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_REPLAY), 1);
	source(r, B, L1 + 1, MEDIA_GATE_MEDIA);
	rig_send(r, 7, 3, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	rig_free(r);
}

static void a_burst_without_room_loses_copies_only(void **state)
{
	struct rig *r = rig_listened(B);
	uint32_t to_b = 0;

	(void)state;
	assert_int_equal(media_burst_max(r->m), SLOTS / 2);
	for (uint64_t i = 0; i < SLOTS - 3; i++)
		rig_send(r, 7, 1 + i, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, SLOTS);
	for (uint32_t i = 0; i < r->outs; i++)
		to_b += r->out[i].local.port == PORT_B;
	assert_int_equal(to_b, SLOTS - 3);
	rig_free(r);
}

static void what_a_listener_sends_goes_nowhere(void **state)
{
	struct rig *r = rig_listened(B);
	uint8_t plain[172], *p = rig_slot(r, B, PORT_L1);

	(void)state;
	rig_plain_rtp(plain, 9, 1);
	memcpy(p, plain, sizeof(plain));
	r->in[0].len = sizeof(plain);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	rig_free(r);
}

static void listeners_may_leave_in_any_order(void **state)
{
	struct media_cmd del = {.type = MEDIA_STREAM_DEL, .id = L2};
	struct rig *r = rig_listened(B);

	(void)state;
	assert_int_equal(media_command(r->m, &del), 0); /* L1 still refers to it */
	rig_send(r, 7, 1, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 2);
	del.id = L1;
	assert_int_equal(media_command(r->m, &del), 0);
	rig_send(r, 7, 2, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(media_burst_max(r->m), SLOTS);
	rig_free(r);
}

static void who_must_wait_gets_nothing_before_it_sends(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);
	struct media_cmd cmd = rig_stream_cmd(B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000");

	(void)state;
	cmd.stream.wait = true;
	assert_int_equal(media_command(r->m, &cmd), 0);
	rig_send(r, 7, 1, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	atomic_store(&((struct media_stream_counters *)(uintptr_t)media_stream_counters(r->m, B))
			      ->packets,
		1);
	rig_send(r, 7, 2, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

/* --- Calls ------------------------------------------------------------------------------------ */

#define CRYPTO(x) "a=crypto:" x "\r\n"

static struct str value(const struct ngval *d, const char *key)
{
	for (const struct ngval *c = d->first; c; c = c->next)
		if (str_eq(c->key, str_from(key)))
			return c->str;
	return STR("");
}

static void establish(struct talk *t)
{
	talk_offer(t, "a", "", talk_body(t, "192.0.2.1", 4000, "RTP/SAVP", CRYPTO(C80A)));
	assert_null(t->reply.error);
	talk_answer(t, "a", "b",
		talk_body(t, "192.0.2.2", 5000, "RTP/SAVP",
			CRYPTO("1 AES_CM_128_HMAC_SHA1_80 " K80B)));
	assert_null(t->reply.error);
}

/* Returns the port offered to the listener. */
static uint16_t subscribe(struct talk *t, const char *from, const char *to, const char *transport)
{
	struct ng_request r = talk_request(from, to, "");
	struct ngval *d;

	r.transport = str_from(transport);
	talk_pool(t);
	d = ngval_dict(t->p);
	calls_subscribe(t->c, t->p, &r, t->now, &t->reply, d);
	mock_relay_check(t->m);
	if (t->reply.error)
		return 0;
	assert_true(str_eq(value(d, "from-tag"), str_from(from)));
	assert_true(value(d, "to-tag").len > 0);
	t->sdp = pool_alloc(t->p, sizeof(*t->sdp));
	assert_int_equal(sdp_parse(t->sdp, t->p, t->reply.sdp, NULL), SDP_OK);
	return t->sdp->media[0].port;
}

static void confirm(struct talk *t, const char *to, const char *body)
{
	struct ng_request r = talk_request("", to, body);

	talk_pool(t);
	calls_subscribe_answer(t->c, t->p, &r, t->now, &t->reply);
	mock_relay_check(t->m);
}

static void leave_(struct talk *t, const char *to)
{
	struct ng_request r = talk_request("", to, "");

	talk_pool(t);
	calls_unsubscribe(t->c, t->p, &r, t->now, &t->reply);
	mock_relay_check(t->m);
}

static const struct media_stream_cfg *stream_of(struct talk *t, uint8_t octet)
{
	for (uint32_t i = 0; i < 2 * MOCK_MAX; i++)
		if (t->m->stream_set[i] && t->m->stream_cfg[i].rtp &&
			t->m->stream_cfg[i].remote.addr[3] == octet)
			return &t->m->stream_cfg[i];
	fail_msg("no stream of 192.0.2.%u", octet);
	return NULL;
}

static void a_subscription_is_offered_what_the_source_said(void **state)
{
	const struct media_stream_cfg *a, *b, *l;
	struct sdes line;
	uint16_t port;
	struct talk t;

	(void)state;
	talk_start(&t);
	establish(&t);
	port = subscribe(&t, "a", "l", "");
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media_count, 1);
	assert_int_equal(t.sdp->media[0].proto, SDP_RTP_SAVP);
	assert_int_equal(t.sdp->media[0].dir, SDP_DIR_SENDONLY);
	assert_non_null(strstr(t.reply.sdp.s, "m=audio"));
	assert_true(str_eq(t.sdp->media[0].formats, STR("0 8")));
	assert_non_null(sdp_attr(t.sdp->media[0].lines, STR("rtpmap")));
	assert_true(talk_line(&t, 0, 0, &line));
	/* only the source uses its own key */
	assert_memory_not_equal(line.master.key, "wDfvg&T+)xG7@fb5", 16);
	assert_int_equal(stream_of(&t, 1)->copy[0], 0); /* not before the answer */
	confirm(&t, "l",
		talk_body(&t, "192.0.2.3", 6000, "RTP/SAVP",
			CRYPTO("1 AES_CM_128_HMAC_SHA1_80 " K80A) "a=recvonly\r\n"));
	assert_null(t.reply.error);
	a = stream_of(&t, 1);
	b = stream_of(&t, 2);
	l = mock_stream(t.m, port);
	assert_ptr_equal(&t.m->stream_cfg[a->copy[0] - 1], l);
	assert_true(l->listener);
	assert_int_equal(b->copy[0], 0);
	assert_int_equal(l->rtp_to, MEDIA_NONE);
	assert_memory_equal(
		mock_master(t.m, mock_ctx(t.m, port)->tx.key[0].slot)->key, line.master.key, 16);
	leave_(&t, "l");
	assert_null(t.reply.error);
	assert_int_equal(stream_of(&t, 1)->copy[0], 0);
	assert_null(mock_stream(t.m, port));
	talk_end(&t);
}

static int opens(void *arg, const struct record_start *s, uint32_t *tap, char path[RECORD_PATH_MAX])
{
	(void)arg;
	(void)s;
	*tap = 1;
	snprintf(path, RECORD_PATH_MAX, "file");
	return 0;
}

static void closes(void *arg, uint32_t tap, bool discard)
{
	(void)arg;
	(void)tap;
	(void)discard;
}

static void record(struct talk *t)
{
	static const struct recorder_ops ops = {.start = opens, .stop = closes};
	static const struct recorder recorder = {.ops = &ops};
	struct ng_request r = talk_request("a", "", "");

	talk_pool(t);
	calls_recorder(t->c, &recorder);
	calls_record(t->c, t->p, &r, (struct calls_record){CALL_RECORD_START, ngval_dict(t->p)},
		t->now, &t->reply);
	assert_null(t->reply.error);
}

static bool any_copies(const struct talk *t)
{
	for (uint32_t i = 0; i < 2 * MOCK_MAX; i++)
		if (t->m->stream_set[i] && !t->m->stream_cfg[i].listener &&
			(t->m->stream_cfg[i].copy[0] || t->m->stream_cfg[i].tap))
			return true;
	return false;
}

/* A terminal that offered SRTP has no keys before the answer: packets in clear from strangers to
 * its port are neither copied nor recorded. */
static void nothing_is_heard_before_the_answer(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	talk_offer(&t, "a", "", talk_body(&t, "192.0.2.1", 4000, "RTP/SAVP", CRYPTO(C80A)));
	assert_null(t.reply.error);
	record(&t);
	assert_int_not_equal(subscribe(&t, "a", "l", "RTP/AVP"), 0);
	confirm(&t, "l", talk_body(&t, "192.0.2.3", 6000, "RTP/AVP", "a=recvonly\r\n"));
	assert_null(t.reply.error);
	assert_false(any_copies(&t));
	talk_answer(&t, "a", "b",
		talk_body(&t, "192.0.2.2", 5000, "RTP/SAVP",
			CRYPTO("1 AES_CM_128_HMAC_SHA1_80 " K80B)));
	assert_null(t.reply.error);
	assert_int_not_equal(stream_of(&t, 1)->copy[0], 0);
	assert_int_not_equal(stream_of(&t, 1)->tap, 0);
	talk_end(&t);
}

static void many_may_listen_and_hang_up_in_any_order(void **state)
{
	uint32_t ports;
	struct talk t;

	(void)state;
	talk_start(&t);
	establish(&t);
	ports = t.m->ports;
	for (int round = 0; round < 5; round++) { /* places of former listeners are reused */
		for (int i = 0; i < 10; i++) {
			char tag[2] = {(char)('m' + i), 0}, addr[24];

			snprintf(addr, sizeof(addr), "192.0.2.%d", 10 + i);
			assert_true(subscribe(&t, i % 2 ? "a" : "b", tag, "RTP/AVP") > 0);
			assert_null(sdp_attr(t.sdp->media[0].lines, STR("crypto")));
			confirm(&t, tag, talk_body(&t, addr, 6000, "RTP/AVP", "a=recvonly\r\n"));
			assert_null(t.reply.error);
		}
		uint32_t heard = 0;

		for (uint32_t next = stream_of(&t, 1)->copy[0]; next;
			next = t.m->stream_cfg[next - 1].copy[0])
			heard++;
		assert_int_equal(heard, 5);
		for (int i = 0; i < 10; i++)
			leave_(&t, (char[2]){(char)('m' + (i * 7) % 10), 0});
		assert_int_equal(t.m->ports, ports);
	}
	talk_end(&t);
}

/* RFC 6849: the relay is the mirror. */
static void a_publisher_hears_itself(void **state)
{
	struct ng_request r = talk_request("p", "", "");
	struct talk t;

	(void)state;
	talk_start(&t);
	r.sdp = str_from(talk_body(&t, "192.0.2.5", 4000, "RTP/SAVP",
		CRYPTO(C80A) "a=loopback:rtp-media-loopback\r\na=loopback-source\r\n"));
	r.echo = NG_ECHO_BACKWARDS;
	talk_pool(&t);
	calls_publish(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
	assert_null(t.reply.error);
	t.sdp = pool_alloc(t.p, sizeof(*t.sdp));
	assert_int_equal(sdp_parse(t.sdp, t.p, t.reply.sdp, NULL), SDP_OK);
	assert_int_equal(t.sdp->media[0].dir, SDP_DIR_SENDRECV);
	assert_non_null(sdp_attr(t.sdp->media[0].lines, STR("loopback-mirror")));
	assert_null(sdp_attr(t.sdp->media[0].lines, STR("loopback-source")));
	assert_ptr_equal(&t.m->stream_cfg[stream_of(&t, 5)->rtp_to], stream_of(&t, 5));
	talk_end(&t);
}

static void a_publisher_is_answered_and_heard(void **state)
{
	struct ng_request r = talk_request("p", "", "");
	struct talk t;
	struct ngval *d;
	uint16_t port;

	(void)state;
	talk_start(&t);
	r.sdp = str_from(
		talk_body(&t, "192.0.2.5", 4000, "RTP/SAVP", CRYPTO(C80A) "a=sendonly\r\n"));
	talk_pool(&t);
	d = ngval_dict(t.p);
	calls_publish(t.c, t.p, &r, t.now, &t.reply, d);
	assert_null(t.reply.error);
	t.sdp = pool_alloc(t.p, sizeof(*t.sdp));
	assert_int_equal(sdp_parse(t.sdp, t.p, t.reply.sdp, NULL), SDP_OK);
	assert_int_equal(t.sdp->media[0].dir, SDP_DIR_RECVONLY);
	assert_string_equal(talk_lines(&t, 0), "1 AES_CM_128_HMAC_SHA1_80");
	port = subscribe(&t, "p", "l", "");
	assert_true(port > 0);
	confirm(&t, "l",
		talk_body(&t, "192.0.2.6", 6000, "RTP/SAVP",
			CRYPTO("1 AES_CM_128_HMAC_SHA1_80 " K80B)));
	assert_null(t.reply.error);
	assert_ptr_equal(&t.m->stream_cfg[stream_of(&t, 5)->copy[0] - 1], mock_stream(t.m, port));
	talk_end(&t);
}

static void tags_of_the_wrong_kind_are_refused(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	establish(&t);
	assert_int_equal(subscribe(&t, "nobody", "l", ""), 0);
	assert_string_equal(t.reply.error, "No matching participant in the call");
	assert_int_equal(subscribe(&t, "a", "b", ""), 0);
	assert_string_equal(t.reply.error, "Invalid dialogue association");
	confirm(&t, "b", talk_body(&t, "192.0.2.3", 6000, "RTP/AVP", ""));
	assert_string_equal(t.reply.error, "Invalid dialogue association");
	leave_(&t, "a");
	assert_string_equal(t.reply.error, "Invalid dialogue association");
	assert_true(subscribe(&t, "a", "l", "") > 0);
	talk_offer(&t, "l", "a", talk_body(&t, "192.0.2.3", 6000, "RTP/AVP", ""));
	assert_string_equal(t.reply.error, "Invalid dialogue association");
	talk_end(&t);
}

static void a_listener_that_hangs_up_ends_nobodys_call(void **state)
{
	struct ng_request r = talk_request("l", "", "");
	struct calls_counters n;
	struct talk t;

	(void)state;
	talk_start(&t);
	establish(&t);
	subscribe(&t, "a", "l", "");
	talk_pool(&t);
	r.delete_delay = 0;
	calls_delete(t.c, t.p, &r, t.now, &t.reply, ngval_dict(t.p));
	calls_counters(t.c, &n);
	assert_int_equal(n.current, 1);
	assert_int_equal(t.m->ports, 2);
	talk_end(&t);
}

static void every_step_of_a_subscription_may_fail(void **state)
{
	(void)state;
	for (uint32_t at = 1; at < 40; at++) {
		struct talk t;
		uint32_t ports, keys;

		talk_start(&t);
		establish(&t);
		ports = t.m->ports;
		keys = t.m->keys;
		t.m->fail_at = t.m->calls + at;
		t.m->fail_with = -28;
		subscribe(&t, "a", "l", "");
		if (!t.reply.error)
			confirm(&t, "l",
				talk_body(&t, "192.0.2.3", 6000, "RTP/SAVP",
					CRYPTO("1 AES_CM_128_HMAC_SHA1_80 " K80A)));
		else
			assert_true(t.m->ports == ports && t.m->keys == keys);
		talk_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_listener_gets_the_packet_under_its_own_key),
		cmocka_unit_test(a_source_without_a_peer_is_heard_too),
		cmocka_unit_test(what_is_forged_replayed_or_blocked_is_not_copied),
		cmocka_unit_test(a_burst_without_room_loses_copies_only),
		cmocka_unit_test(what_a_listener_sends_goes_nowhere),
		cmocka_unit_test(listeners_may_leave_in_any_order),
		cmocka_unit_test(who_must_wait_gets_nothing_before_it_sends),
		cmocka_unit_test(a_subscription_is_offered_what_the_source_said),
		cmocka_unit_test(many_may_listen_and_hang_up_in_any_order),
		cmocka_unit_test(a_publisher_hears_itself),
		cmocka_unit_test(a_publisher_is_answered_and_heard),
		cmocka_unit_test(tags_of_the_wrong_kind_are_refused),
		cmocka_unit_test(a_listener_that_hangs_up_ends_nobodys_call),
		cmocka_unit_test(every_step_of_a_subscription_may_fail),
		cmocka_unit_test(nothing_is_heard_before_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
