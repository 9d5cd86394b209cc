/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A leg with ICE on several local addresses (RFC 8421): candidates in SDP, idle ports, effects of a
 * selected pair, release of ports, and restoration after a restart. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "call/call_int.h"
#include "call/query.h"
#include "call/session_places.h"
#include "call/unsaved.h"
#include "mock_sessions.h"
#include "save_talk.h"

#define ICE                                                        \
	"a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\n" \
	"a=candidate:1 1 udp 2130706431 198.51.100.1 4000 typ host\r\n"
#define MUX "a=rtcp-mux\r\n"

struct rig {
	struct talk t;
	struct mock_sessions s;
	uint16_t a, b; /* home ports: towards the offerer, towards the answerer */
};

static void start(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	talk_start(&r->t);
	r->t.m->plenty = true;
	mock_sessions_start(&r->s, r->t.m, r->t.c);
	calls_save_start(r->t.c);
}

/* The session of the leg with this port on its own address. */
static uint32_t session_of(const struct rig *r, uint16_t port)
{
	uint32_t i = mock_session_at(&r->s, port);

	assert_true(i < MOCK_SESSIONS);
	return i;
}

static uint16_t other_port(const struct rig *r, uint16_t port)
{
	return r->s.port[session_of(r, port)][1].rtp.port;
}

static bool says(const struct rig *r, const char *text)
{
	return memmem(r->t.reply.sdp.s, r->t.reply.sdp.len, text, strlen(text));
}

static void offer(struct rig *r, const char *attrs, uint32_t ice)
{
	struct ng_request q =
		talk_request("a", "", talk_body(&r->t, "198.51.100.1", 4000, "RTP/AVP", attrs));

	q.rtcp_mux = NG_RTCP_MUX_ACCEPT;
	q.ice = ice;
	talk_send(&r->t, &q, false);
	assert_null(r->t.reply.error);
	r->b = r->t.sdp->media[0].port;
}

static void answer(struct rig *r, const char *attrs)
{
	talk_answer(&r->t, "a", "b", talk_body(&r->t, "198.51.100.2", 5000, "RTP/AVP", attrs));
	assert_null(r->t.reply.error);
	r->a = r->t.sdp->media[0].port;
}

/* Whether the last SDP has this default address for an m-line. */
static bool names(const struct rig *r, uint32_t media, const char *addr)
{
	struct endpoint want;

	assert_int_equal(endpoint_parse_addr(&want, str_from(addr)), 0);
	return endpoint_eq(&r->t.sdp->media[media].conn.addr, &want);
}

static struct endpoint at(const char *text)
{
	struct endpoint e;

	assert_int_equal(endpoint_parse(&e, str_from(text)), 0);
	return e;
}

static void pair(struct rig *r, uint16_t port, uint8_t local, bool rtcp, const char *remote)
{
	struct session_event e = {.kind = SESSION_PAIR,
		.rtcp = rtcp,
		.at = local,
		.controlling = true, /* after a conflict */
		.remote = at(remote)};

	assert_int_equal(calls_session_event(r->t.c, session_of(r, port), &e, r->t.now), 0);
}

/* A call whose both legs do ICE, with mux towards the offerer. */
static void begin(struct rig *r)
{
	start(r);
	offer(r, ICE MUX, 0);
	answer(r, ICE);
}

/* --- Tests ------------------------------------------------------------------------------------ */

/* Candidates alternate between families, the side's own first. c= and m= are as with one
 * address. */
static void sdp_lists_all_addresses_of_the_interface(void **state)
{
	char text[128];
	struct rig r;

	(void)state;
	begin(&r);
	assert_int_equal(r.t.m->ports, 4);
	assert_true(says(&r, "c=IN IP4 203.0.113.9"));
	assert_int_equal(r.s.cfg[session_of(&r, r.a)].locals, 2);
	snprintf(text, sizeof(text), "a=candidate:1 1 UDP %u 203.0.113.9 %u typ host",
		ice_candidate_priority(ICE_HOST, 65535, 1), r.a);
	assert_true(says(&r, text));
	snprintf(text, sizeof(text), "a=candidate:2 1 UDP %u 2001:db8::1 %u typ host",
		ice_candidate_priority(ICE_HOST, 65534, 1), other_port(&r, r.a));
	assert_true(says(&r, text));
	/* Without mux each address has both components. */
	offer(&r, ICE, 0);
	assert_int_equal(r.t.m->ports, 4);
	snprintf(text, sizeof(text), "2001:db8::1 %u typ host", other_port(&r, r.b) + 1);
	assert_true(says(&r, text));
	assert_false(says(&r, "10.0.0.1")); /* another interface */
	talk_end(&r.t);
}

/* An idle port answers checks, and receives for the port in use. It sends no media. */
static void idle_ports_have_no_media(void **state)
{
	const struct media_stream_cfg *home, *idle;
	struct rig r;

	(void)state;
	begin(&r);
	pair(&r, r.a, 0, false, "198.51.100.1:4000");
	home = mock_stream(r.t.m, r.a);
	idle = mock_stream(r.t.m, other_port(&r, r.a));
	assert_int_equal(home->remote.port, 4000);
	assert_true(home->rtp_to != MEDIA_NONE && home->side);
	assert_int_equal(idle->remote.family, 0);
	assert_int_equal(idle->rtp_to, MEDIA_NONE);
	assert_int_equal(idle->rtcp_to, MEDIA_NONE);
	assert_int_equal(idle->learning, MEDIA_LEARN_OFF);
	assert_true(idle->strict_source);
	assert_int_equal(idle->side, home->side);
	assert_int_equal(idle->side_serial, home->side_serial);
	assert_int_equal(idle->ctx, home->ctx);
	assert_int_equal(home->serves, 0);
	assert_int_equal(idle->serves, r.s.port[session_of(&r, r.a)][0].rtp_stream + 1);
	talk_end(&r.t);
}

/* Before a pair is selected, and after its consent expired, no media pass. */
static void without_a_pair_no_media_pass(void **state)
{
	struct session_event lost = {.kind = SESSION_LOST};
	struct rig r;

	(void)state;
	begin(&r);
	assert_int_equal(mock_stream(r.t.m, r.a)->rtp_to, MEDIA_NONE);
	assert_int_equal(mock_stream(r.t.m, r.a)->rtcp_to, MEDIA_NONE);
	assert_int_equal(mock_stream(r.t.m, r.b)->rtp_to, MEDIA_NONE);
	pair(&r, r.b, 0, false, "198.51.100.2:5000");
	assert_true(mock_stream(r.t.m, r.b)->rtp_to != MEDIA_NONE);
	assert_int_equal(mock_stream(r.t.m, (uint16_t)(r.b + 1))->rtcp_to, MEDIA_NONE);
	pair(&r, r.b, 0, true, "198.51.100.2:5001");
	assert_true(mock_stream(r.t.m, (uint16_t)(r.b + 1))->rtcp_to != MEDIA_NONE);
	assert_int_equal(mock_stream(r.t.m, r.a)->rtp_to, MEDIA_NONE);
	assert_int_equal(calls_session_event(r.t.c, session_of(&r, r.b), &lost, r.t.now), 0);
	assert_int_equal(mock_stream(r.t.m, r.b)->rtp_to, MEDIA_NONE);
	talk_end(&r.t);
}

static const struct ngval *first_stream(struct rig *r)
{
	struct ng_request q = {.call_id = STR("call")};
	struct ngval *v;
	const struct ngval *tag;

	talk_pool(&r->t);
	v = ngval_dict(r->t.p);
	calls_query(r->t.c, r->t.p, &q, r->t.now, &r->t.reply, v);
	tag = ngval_get(ngval_get(v, STR("tags")), STR("a"));
	return ngval_get(ngval_get(tag, STR("medias"))->first, STR("streams"))->first;
}

/* The selected pair decides which port has the media, in both directions. */
static void a_pair_moves_the_media(void **state)
{
	const struct media_stream_cfg *home, *other;
	const struct ngval *v;
	uint16_t port, home_port;
	char text[64];
	struct rig r;

	(void)state;
	begin(&r);
	port = other_port(&r, r.a);
	pair(&r, r.a, 1, false, "[2001:db8::9]:4400");
	home = mock_stream(r.t.m, r.a);
	other = mock_stream(r.t.m, port);
	assert_int_equal(other->remote.port, 4400);
	assert_int_equal(home->remote.family, 0);
	assert_int_equal(home->rtp_to, MEDIA_NONE);
	pair(&r, r.b, 0, false, "198.51.100.2:5000");
	assert_int_equal(other->rtp_to, mock_stream(r.t.m, r.b) - r.t.m->stream_cfg);
	assert_int_equal(mock_stream(r.t.m, r.b)->rtp_to, other - r.t.m->stream_cfg);
	v = first_stream(&r);
	assert_int_equal(ngval_get(v, STR("local port"))->num, port);
	assert_true(str_eq(ngval_get(v, STR("local address"))->str, STR("2001:db8::1")));
	assert_true(str_eq(ngval_get(v, STR("family"))->str, STR("IPv6")));
	assert_non_null(ngval_get(v, STR("local candidates")));
	/* SDP names it (RFC 8839 4.4.1.2.2). */
	home_port = r.a;
	offer(&r, ICE MUX, 0);
	assert_true(names(&r, 0, "203.0.113.9"));
	answer(&r, ICE);
	assert_int_equal(r.a, port);
	assert_true(names(&r, 0, "2001:db8::1"));
	snprintf(text, sizeof(text), "a=rtcp:%u\r\n", port);
	assert_true(says(&r, text));
	r.a = home_port;
	assert_int_equal(mock_stream(r.t.m, port)->remote.port, 4400);
	/* And back to the first pair. */
	pair(&r, r.a, 0, false, "198.51.100.1:4000");
	offer(&r, ICE MUX, 0);
	answer(&r, ICE);
	assert_int_equal(r.a, home_port);
	assert_true(names(&r, 0, "203.0.113.9"));
	assert_int_equal(mock_stream(r.t.m, r.a)->remote.port, 4000);
	assert_int_equal(mock_stream(r.t.m, port)->remote.family, 0);
	/* An invalid number changes nothing. */
	pair(&r, r.a, 2, false, "[2001:db8::9]:4402");
	assert_int_equal(mock_stream(r.t.m, r.a)->remote.port, 4000);
	talk_end(&r.t);
}

/* Without mux, RTP and RTCP may be on different addresses. */
static void components_move_apart(void **state)
{
	uint16_t port, home;
	char text[64];
	struct rig r;

	(void)state;
	begin(&r);
	port = other_port(&r, r.b);
	pair(&r, r.b, 0, false, "198.51.100.2:5000");
	pair(&r, r.b, 1, true, "[2001:db8::8]:5001");
	assert_int_equal(mock_stream(r.t.m, r.b)->remote.port, 5000);
	assert_int_equal(mock_stream(r.t.m, (uint16_t)(r.b + 1))->remote.family, 0);
	assert_int_equal(mock_stream(r.t.m, (uint16_t)(port + 1))->remote.port, 5001);
	assert_int_equal(mock_stream(r.t.m, port)->remote.family, 0);
	/* Later offers name both. A leg that shall lose ICE returns to its own address. */
	home = r.b;
	offer(&r, ICE MUX, 0);
	assert_int_equal(r.b, home);
	assert_true(names(&r, 0, "203.0.113.9"));
	snprintf(text, sizeof(text), "a=rtcp:%u IN IP6 2001:db8::1\r\n", port + 1);
	assert_true(says(&r, text));
	pair(&r, home, 1, false, "[2001:db8::8]:5000");
	offer(&r, ICE MUX, 0);
	assert_int_equal(r.b, port);
	assert_true(names(&r, 0, "2001:db8::1"));
	snprintf(text, sizeof(text), "a=rtcp:%u\r\n", port + 1);
	assert_true(says(&r, text));
	offer(&r, ICE MUX, NG_ICE_REMOVE);
	assert_int_equal(r.b, home);
	assert_true(names(&r, 0, "203.0.113.9"));
	talk_end(&r.t);
}

/* Packets of all ports count, and a silent port does not make the call silent. */
static void what_arrived_before_the_move_counts(void **state)
{
	struct relay_stats before = {.packets = 500, .last_packet_ns = 777};
	const struct ngval *v;
	struct rig r;

	(void)state;
	begin(&r);
	pair(&r, r.a, 0, false, "198.51.100.1:4000");
	r.t.m->stats[mock_stream(r.t.m, r.a) - r.t.m->stream_cfg] = &before;
	pair(&r, r.a, 1, false, "[2001:db8::9]:4400");
	before.last_packet_ns = r.t.now;
	v = first_stream(&r);
	assert_int_equal(ngval_get(ngval_get(v, STR("stats")), STR("packets"))->num, 510);
	talk_end(&r.t);
}

static void ports_are_given_back_when_ice_ends(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	offer(&r, ICE MUX, 0);
	assert_int_equal(r.t.m->ports, 4);
	answer(&r, ""); /* the answerer does no ICE */
	assert_int_equal(r.t.m->ports, 3);
	pair(&r, r.a, 1, false, "[2001:db8::9]:4400");
	offer(&r, "", NG_ICE_REMOVE);
	answer(&r, "");
	assert_int_equal(r.t.m->ports, 2);
	assert_int_equal(mock_stream(r.t.m, r.a)->remote.port, 4000);
	assert_true(mock_stream(r.t.m, r.a)->rtp_to != MEDIA_NONE);
	talk_end(&r.t);
}

/* Further ports are a bonus: neither their lack nor a failure refuses a call. */
static void a_leg_may_do_without(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	r.t.m->plenty = false;
	offer(&r, ICE MUX, 0);
	answer(&r, ICE);
	assert_int_equal(r.t.m->ports, 2);
	assert_int_equal(r.s.cfg[session_of(&r, r.a)].locals, 1);
	/* And it stays so: the agents have begun. */
	r.t.m->plenty = true;
	offer(&r, ICE MUX, 0);
	answer(&r, ICE);
	assert_int_equal(r.t.m->ports, 2);
	talk_end(&r.t);
	start(&r);
	offer(&r, "", 0); /* no ICE */
	assert_int_equal(r.t.m->ports, 2);
	talk_end(&r.t);
}

/* The script names the address of one side: that is its only candidate. */
static void media_address_is_the_only_candidate(void **state)
{
	struct ng_request q;
	struct rig r;

	(void)state;
	start(&r);
	q = talk_request("a", "", talk_body(&r.t, "198.51.100.1", 4000, "RTP/AVP", ICE MUX));
	q.media_address = STR("203.0.113.77");
	talk_send(&r.t, &q, false);
	assert_null(r.t.reply.error);
	assert_true(says(&r, " 203.0.113.77 "));
	assert_false(says(&r, "2001:db8::1"));
	r.b = r.t.sdp->media[0].port;
	answer(&r, ICE);
	assert_true(says(&r, "2001:db8::1"));
	assert_int_equal(r.t.m->ports, 3);
	talk_end(&r.t);
	start(&r);
	offer(&r, ICE MUX, NG_ICE_REMOVE);
	q = talk_request("a", "b", talk_body(&r.t, "198.51.100.2", 5000, "RTP/AVP", ""));
	q.media_address = STR("203.0.113.77");
	talk_send(&r.t, &q, true);
	assert_null(r.t.reply.error);
	assert_true(says(&r, " 203.0.113.77 "));
	assert_false(says(&r, "2001:db8::1"));
	assert_int_equal(r.t.m->ports, 2);
	talk_end(&r.t);
}

static void the_selected_port_comes_back(void **state)
{
	const struct session_place *place;
	const struct session_cfg *cfg;
	const char *why = NULL;
	struct leg_ice *ice;
	struct saved s;
	struct rig r;
	uint16_t port;

	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		begin(&r);
		port = other_port(&r, r.a);
		pair(&r, r.a, 1, false, "[2001:db8::9]:4400");
		pair(&r, r.b, 0, false, "198.51.100.2:5000");
		/* The terminal may still use the credentials before an ICE restart. */
		place = &r.t.c->session_place[session_of(&r, r.a)];
		ice = &place->call->side[place->side]->leg[place->media]->ice;
		memcpy(ice->prev_ufrag, "oldufrag", SESSION_UFRAG);
		memcpy(ice->prev_pwd, "old password, 24 letters", SESSION_PWD);
		save(&r.t, &s);
		if (lost) /* another program now has an idle port of the other leg */
			r.t.m->gone = other_port(&r, r.b);
		reborn(&r.t);
		mock_sessions_start(&r.s, r.t.m, r.t.c);
		calls_save_start(r.t.c);
		assert_int_equal(restore(&r.t, sbuf_view(&s.whole), sbuf_view(&s.state), &why), 0);
		assert_int_equal(r.t.m->ports, 4 - lost);
		assert_int_equal(mock_stream(r.t.m, port)->remote.port, 4400);
		assert_int_equal(mock_stream(r.t.m, r.a)->remote.family, 0);
		cfg = &r.s.cfg[session_of(&r, r.a)];
		assert_int_equal(cfg->locals, 2);
		assert_int_equal(cfg->selected[0].port, 4400);
		assert_int_equal(cfg->selected_at[0], 1);
		assert_true(cfg->ice.controlling);
		assert_memory_equal(cfg->ice.prev_ufrag, "oldufrag", SESSION_UFRAG);
		assert_memory_equal(cfg->ice.prev_pwd, "old password, 24 letters", SESSION_PWD);
		assert_int_equal(cfg->local[1][0].port, port);
		assert_int_equal(r.s.cfg[session_of(&r, r.b)].locals, 2 - lost);
		pair(&r, r.a, 0, false, "198.51.100.1:4000");
		assert_int_equal(mock_stream(r.t.m, r.a)->remote.port, 4000);
		sbuf_fini(&s.whole);
		sbuf_fini(&s.state);
		talk_end(&r.t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sdp_lists_all_addresses_of_the_interface),
		cmocka_unit_test(idle_ports_have_no_media),
		cmocka_unit_test(without_a_pair_no_media_pass),
		cmocka_unit_test(a_pair_moves_the_media),
		cmocka_unit_test(components_move_apart),
		cmocka_unit_test(what_arrived_before_the_move_counts),
		cmocka_unit_test(ports_are_given_back_when_ice_ends),
		cmocka_unit_test(a_leg_may_do_without),
		cmocka_unit_test(media_address_is_the_only_candidate),
		cmocka_unit_test(the_selected_port_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
