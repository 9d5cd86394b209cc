/* SPDX-License-Identifier: GPL-2.0-or-later */
/* side/session.h against strangers: packets of others neither take the place of a terminal in the
 * handshake nor end it. RFC 5763, RFC 6347 4.2.1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "keying/dtls_gate.h"
#include "side/session.h"

#define S_NS 1000000000ull

struct peer { /* a DTLS client */
	struct endpoint addr;
	struct dtls_cert *cert;
	struct dtls *a[2]; /* by [rtcp] */
};

struct rig {
	uint64_t now;
	struct session_env env;
	struct session_order order;
	struct session *s;
	struct peer terminal, stranger;
	bool lose_rtp;    /* packets of RTP's port are lost */
	uint32_t flights; /* packets with a certificate */
	struct session_event event[16];
	uint32_t events;
};

static struct endpoint address(uint8_t last, uint16_t port)
{
	return (struct endpoint){.family = AF_INET, .port = port, .addr = {198, 51, 100, last}};
}

static struct dtls_config config(struct dtls_cert *cert)
{
	return (struct dtls_config){.cert = cert,
		.role = DTLS_ROLE_CLIENT,
		.profile = {SUITE_AES_CM_128_80},
		.profiles = 1};
}

static void peer_begin(struct rig *r, struct peer *p, bool rtcp)
{
	struct dtls_config c = config(p->cert);
	struct dtls_fingerprints f = {.count = 1};

	dtls_destroy(p->a[rtcp]);
	assert_int_equal(dtls_create(&p->a[rtcp], &c), 0);
	assert_int_equal(dtls_cert_fingerprint(&f.f[0], r->order.cert, DTLS_SHA256), 0);
	(void)dtls_expect(p->a[rtcp], &f, r->now);
	assert_int_equal(dtls_start(p->a[rtcp], r->now), 0);
}

static void peer_start(struct rig *r, struct peer *p, bool both)
{
	for (int k = 0; k <= both; k++)
		peer_begin(r, p, k);
}

static void peer_init(struct peer *p, uint8_t last, uint16_t port)
{
	*p = (struct peer){.addr = address(last, port)};
	assert_int_equal(dtls_cert_create(&p->cert, 1700000000, 86400), 0);
}

static void peer_fini(struct peer *p)
{
	dtls_destroy(p->a[0]);
	dtls_destroy(p->a[1]);
	dtls_cert_put(p->cert);
}

/* named: SDP names the terminal's fingerprint, else the answer is still to come. */
static void start(struct rig *r, bool mux, bool named)
{
	struct session_cfg *cfg = &r->order.cfg;

	memset(r, 0, sizeof(*r));
	r->now = S_NS;
	assert_int_equal(dtls_gate_create(&r->env.gate, r->now), 0);
	r->env.profile[0] = SUITE_AES_CM_128_80;
	r->env.profiles = 1;
	assert_int_equal(dtls_cert_create(&r->order.cert, 1700000000, 86400), 0);
	peer_init(&r->terminal, 1, 4000);
	peer_init(&r->stranger, 66, 6666);
	cfg->mux = mux;
	cfg->dtls = (struct session_dtls){
		.on = true, .role = named ? DTLS_ROLE_SERVER : DTLS_ROLE_NONE, .association = 1};
	assert_int_equal(session_create(&r->s, &r->env), 0);
	assert_int_equal(session_set(r->s, &r->order, r->now), 0);
}

/* SDP names the terminal's certificate, and where it is. */
static void name(struct rig *r, uint16_t port)
{
	struct session_cfg *cfg = &r->order.cfg;

	cfg->dtls.role = DTLS_ROLE_SERVER;
	cfg->dtls.prints.count = 1;
	assert_int_equal(
		dtls_cert_fingerprint(&cfg->dtls.prints.f[0], r->terminal.cert, DTLS_SHA256), 0);
	cfg->remote[0] = address(1, port);
	cfg->remote[1] = address(1, port + 1);
	(void)session_set(r->s, &r->order, r->now);
}

static void end(struct rig *r)
{
	session_destroy(r->s);
	dtls_gate_destroy(r->env.gate);
	dtls_cert_put(r->order.cert);
	peer_fini(&r->terminal);
	peer_fini(&r->stranger);
}

static struct endpoint source(const struct peer *p, bool rtcp)
{
	struct endpoint e = p->addr;

	e.port += rtcp;
	return e;
}

static void inject(struct rig *r, const struct peer *p, bool rtcp, const uint8_t *b, size_t len)
{
	struct endpoint src = source(p, rtcp);
	struct session_in in = {.rtcp = rtcp, .dtls = true, .src = &src, .p = b, .len = len};

	session_take(r->s, &in, r->now);
}

static bool say(struct rig *r, struct peer *p)
{
	uint8_t buf[DTLS_PACKET_MAX];
	bool any = false;
	int n;

	for (int k = 0; k < 2; k++)
		while (p->a[k] && (n = dtls_next(p->a[k], buf, sizeof(buf))) > 0) {
			if (k || !r->lose_rtp)
				inject(r, p, k, buf, (size_t)n);
			any = true;
		}
	return any;
}

static bool hear(struct rig *r)
{
	struct session_out o;
	bool any = false;

	while (session_next(r->s, &o)) {
		any = true;
		r->flights += o.len > 400;
		for (int k = 0; k < 2; k++) {
			struct peer *p = k ? &r->stranger : &r->terminal;
			struct endpoint to = source(p, o.rtcp);

			if (endpoint_eq(&to, &o.dst) && p->a[o.rtcp])
				(void)dtls_take(p->a[o.rtcp], o.packet, o.len, r->now);
		}
	}
	return any;
}

static void watch(struct rig *r)
{
	while (r->events < ARRAY_LEN(r->event) && session_event(r->s, &r->event[r->events]))
		r->events++;
}

/* Until nobody has anything to say. */
static void talk(struct rig *r, bool terminal, bool stranger)
{
	bool any = true;

	for (int i = 0; any && i < 100; i++) {
		any = terminal && say(r, &r->terminal);
		any |= stranger && say(r, &r->stranger);
		any |= hear(r);
		watch(r);
	}
}

/* The terminal's first flight was lost: it sends a new ClientHello. */
static void again(struct rig *r, uint64_t after_ns)
{
	r->now += after_ns;
	session_tick(r->s, r->now);
	peer_start(r, &r->terminal, false);
}

static uint32_t keys(const struct rig *r, bool rtcp)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->events; i++)
		n += r->event[i].kind == SESSION_KEYS && r->event[i].rtcp == rtcp;
	return n;
}

/* --- Tests ------------------------------------------------------------------------------------ */

static void a_terminal_gets_its_keys(void **state)
{
	struct rig r;

	(void)state;
	start(&r, true, true);
	name(&r, 4000);
	peer_start(&r, &r.terminal, false);
	talk(&r, true, false);
	assert_int_equal(keys(&r, false), 1);
	end(&r);
}

/* The stranger returns a cookie, completes a handshake with a certificate of its own, and fails. */
static void a_stranger_with_another_certificate_ends_nothing(void **state)
{
	struct rig r;

	(void)state;
	for (uint16_t port = 4000; port <= 4400; port += 400) { /* exact, and translated */
		start(&r, true, true);
		name(&r, port);
		peer_start(&r, &r.stranger, false);
		talk(&r, false, true);
		assert_int_equal(keys(&r, false), 0);
		again(&r, S_NS);
		talk(&r, true, false);
		assert_int_equal(keys(&r, false), 1);
		end(&r);
	}
}

/* While the callee's phone rings nobody's certificate is known. */
static void a_stranger_before_the_answer_ends_nothing(void **state)
{
	struct rig r;

	(void)state;
	start(&r, true, false);
	peer_start(&r, &r.stranger, false);
	talk(&r, false, true);
	name(&r, 4000);
	watch(&r);
	assert_int_equal(keys(&r, false), 0);
	again(&r, S_NS);
	talk(&r, true, false);
	assert_int_equal(keys(&r, false), 1);
	end(&r);
}

/* The stranger begins, and never goes on. */
static void an_unfinished_handshake_holds_the_place_only_shortly(void **state)
{
	struct rig r;

	(void)state;
	for (uint16_t port = 4000; port <= 4400; port += 400) {
		start(&r, true, true);
		name(&r, port);
		peer_start(&r, &r.stranger, false);
		(void)say(&r, &r.stranger);
		(void)hear(&r);
		(void)say(&r, &r.stranger); /* with the cookie */
		(void)hear(&r);
		again(&r, port == 4000 ? 1 : 3 * S_NS);
		talk(&r, true, false);
		assert_int_equal(keys(&r, false), 1);
		end(&r);
	}
}

/* A terminal in the middle of its handshake is not replaced by one who comes later. */
static void a_handshake_under_way_goes_on(void **state)
{
	struct rig r;

	(void)state;
	start(&r, true, true);
	name(&r, 4000);
	peer_start(&r, &r.terminal, false);
	(void)say(&r, &r.terminal);
	(void)hear(&r);
	(void)say(&r, &r.terminal);
	(void)hear(&r);
	r.now += 10 * S_NS; /* the named address keeps its place */
	peer_start(&r, &r.stranger, false);
	talk(&r, false, true);
	talk(&r, true, false);
	assert_int_equal(keys(&r, false), 1);
	end(&r);
}

/* Handshakes are expensive: strangers cannot begin many. */
static void strangers_begin_few_handshakes(void **state)
{
	struct rig r;
	(void)state;
	start(&r, true, true);
	name(&r, 4000);
	for (uint32_t i = 0; i < 200; i++) {
		r.stranger.addr.port = (uint16_t)(6000 + 2 * i);
		peer_start(&r, &r.stranger, false);
		talk(&r, false, true);
		r.now += S_NS / 100;
	}
	assert_in_range(r.flights, 1, 4);
	again(&r, S_NS);
	talk(&r, true, false);
	assert_int_equal(keys(&r, false), 1);
	end(&r);
}

/* An attacker who can forge the terminal's address sends plain alerts into the handshake. */
static void a_forged_alert_ends_nothing(void **state)
{
	static const uint8_t fatal[] = {21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40};
	static const uint8_t closes[] = {21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 8, 0, 2, 1, 0};
	struct rig r;

	(void)state;
	start(&r, true, true);
	name(&r, 4000);
	peer_start(&r, &r.terminal, false);
	(void)say(&r, &r.terminal);
	(void)hear(&r);
	(void)say(&r, &r.terminal);
	inject(&r, &r.terminal, false, closes, sizeof(closes));
	inject(&r, &r.terminal, false, fatal, sizeof(fatal));
	(void)hear(&r);
	talk(&r, true, false);
	assert_int_equal(keys(&r, false), 1);
	end(&r);
}

static const struct session_event *failure(const struct rig *r)
{
	for (uint32_t i = 0; i < r->events; i++)
		if (r->event[i].kind == SESSION_FAILED)
			return &r->event[i];
	return NULL;
}

/* An emergency call goes on in clear if the terminal declines. A stranger does not decline for it,
 * neither by an alert nor by silence. */
static void a_stranger_declines_nothing_for_the_terminal(void **state)
{
	static const uint8_t fatal[] = {21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40};
	struct rig r;

	(void)state;
	for (int who = 0; who < 4; who++) {
		struct peer *p = who % 2 ? &r.terminal : &r.stranger;

		start(&r, true, true);
		name(&r, 4000);
		peer_start(&r, p, false);
		(void)say(&r, p);
		(void)hear(&r);
		(void)say(&r, p);
		(void)hear(&r);
		if (who / 2)
			inject(&r, p, false, fatal, sizeof(fatal));
		for (int i = 0; i < 120 && !failure(&r); i++) {
			r.now += S_NS;
			session_tick(r.s, r.now);
			watch(&r);
		}
		assert_non_null(failure(&r));
		assert_int_equal(failure(&r)->declined, who % 2);
		end(&r);
	}
}

/* RTCP's handshake begins after RTP's, and so its keys come later. Its first ClientHello was not
 * answered: the terminal repeats it. */
static void keys_of_rtcp_wait_for_those_of_rtp(void **state)
{
	struct rig r;

	(void)state;
	start(&r, false, true);
	name(&r, 4000);
	peer_start(&r, &r.terminal, true);
	r.lose_rtp = true;
	talk(&r, true, false);
	assert_int_equal(keys(&r, true), 0);
	r.lose_rtp = false;
	again(&r, S_NS);
	talk(&r, true, false);
	assert_int_equal(keys(&r, false), 1);
	peer_begin(&r, &r.terminal, true);
	talk(&r, true, false);
	assert_int_equal(keys(&r, true), 1);
	for (uint32_t i = 0; i < r.events; i++)
		if (r.event[i].kind == SESSION_KEYS) {
			assert_false(r.event[i].rtcp);
			break;
		}
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_terminal_gets_its_keys),
		cmocka_unit_test(a_stranger_with_another_certificate_ends_nothing),
		cmocka_unit_test(a_stranger_before_the_answer_ends_nothing),
		cmocka_unit_test(an_unfinished_handshake_holds_the_place_only_shortly),
		cmocka_unit_test(a_handshake_under_way_goes_on),
		cmocka_unit_test(strangers_begin_few_handshakes),
		cmocka_unit_test(a_forged_alert_ends_nothing),
		cmocka_unit_test(a_stranger_declines_nothing_for_the_terminal),
		cmocka_unit_test(keys_of_rtcp_wait_for_those_of_rtp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
