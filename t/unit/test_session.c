/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two sessions of legs, with a network in memory between them and a clock of the test's own: ICE
 * full and lite, DTLS with and without ICE and mux, roles decided late, restored sessions, new
 * associations, lost consent, strangers, the end. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

#include "ice_net.h"
#include "ice/agent_int.h"
#include "side/session_int.h"

#define S_NS     1000000000ull
#define GOT_MAX  64u
#define WIRE_MAX 256u

static uint64_t now_ns;

/* OpenSSL's timer reads the wall clock. */
int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	(void)zone;
	tv->tv_sec = (time_t)(1700000000 + now_ns / S_NS);
	tv->tv_usec = (suseconds_t)(now_ns % S_NS / 1000);
	return 0;
}

struct end {
	struct session *s;
	struct session_env env;
	struct session_order order;
	struct session_event got[GOT_MAX];
	uint32_t n;
	bool mute; /* nothing of it arrives */
};

struct packet {
	uint8_t from;
	struct session_out out;
};

static struct rig {
	struct end e[2];
	struct packet wire[WIRE_MAX];
	uint32_t n, sent;
	bool rtp_late; /* DTLS of RTP is lost */
	bool no_v4;    /* all IPv4 is lost */
} rig;

/* --- Ends ------------------------------------------------------------------------------------- */

static const char *const at[2][2] = {
	{"192.0.2.1:4000", "192.0.2.1:4001"}, {"198.51.100.2:5000", "198.51.100.2:5001"}};
static const char *const at_v6[2][2] = {
	{"[2001:db8::1]:4400", "[2001:db8::1]:4401"}, {"[2001:db8::2]:5400", "[2001:db8::2]:5401"}};

static void identify(struct session_ice *ice, int who, uint8_t generation)
{
	memset(ice->ufrag, 'a' + who * 10 + generation, sizeof(ice->ufrag));
	memset(ice->pwd, 'A' + who * 10 + generation, sizeof(ice->pwd));
	ice->generation = generation;
}

static void start_end(int who)
{
	struct end *e = &rig.e[who];

	memset(e, 0, sizeof(*e));
	e->env.profile[0] = SUITE_AEAD_AES_128_GCM;
	e->env.profiles = 1;
	assert_int_equal(dtls_gate_create(&e->env.gate, now_ns), 0);
	assert_int_equal(dtls_cert_create(&e->order.cert, 1700000000, 86400), 0);
	assert_int_equal(session_create(&e->s, &e->env), 0);
	for (int k = 0; k < 2; k++)
		e->order.cfg.local[0][k] = net_at(at[who][k]);
	e->order.cfg.locals = 1;
	e->order.cfg.dtls = (struct session_dtls){.on = true, .association = 1};
	e->order.cfg.mux = true;
	identify(&e->order.cfg.ice, who, 1);
}

static void start(void)
{
	now_ns = 100 * S_NS;
	memset(&rig, 0, sizeof(rig));
	for (int i = 0; i < 2; i++)
		start_end(i);
	rig.e[0].order.cfg.dtls.role = DTLS_ROLE_SERVER;
	rig.e[1].order.cfg.dtls.role = DTLS_ROLE_CLIENT;
	rig.e[0].order.cfg.ice.controlling = true;
}

static void end(void)
{
	for (int i = 0; i < 2; i++) {
		session_destroy(rig.e[i].s);
		dtls_cert_put(rig.e[i].order.cert);
		dtls_gate_destroy(rig.e[i].env.gate);
	}
}

static void set(int who)
{
	struct session_order *o = &rig.e[who].order;

	memset(o->seed, (int)(17 + who + now_ns / 1000000), sizeof(o->seed));
	assert_int_equal(session_set(rig.e[who].s, o, now_ns), 0);
}

/* The other terminal's SDP. */
static void hear_ice(int who)
{
	struct session_ice *ice = &rig.e[who].order.cfg.ice;
	const struct session_ice *other = &rig.e[!who].order.cfg.ice;

	ice->on = ice->started = ice->last = true;
	ice->remote_lite = other->lite;
	memset(ice->remote_ufrag, 0, sizeof(ice->remote_ufrag));
	memset(ice->remote_pwd, 0, sizeof(ice->remote_pwd));
	memcpy(ice->remote_ufrag, other->ufrag, sizeof(other->ufrag));
	memcpy(ice->remote_pwd, other->pwd, sizeof(other->pwd));
	ice->candidates = 0;
	for (uint8_t i = 0; i < rig.e[!who].order.cfg.locals; i++)
		for (uint8_t k = 0; k < (rig.e[who].order.cfg.mux ? 1 : 2); k++)
			ice->candidate[ice->candidates++] =
				(struct ice_candidate){.addr = rig.e[!who].order.cfg.local[i][k],
					.priority = ice_candidate_priority(
						ICE_HOST, (uint16_t)(UINT16_MAX - i), k + 1),
					.foundation = {(char)('1' + i)},
					.foundation_len = 1,
					.component = k + 1};
}

static void hear_print(int who, bool wrong)
{
	struct dtls_fingerprints *f = &rig.e[who].order.cfg.dtls.prints;

	f->count = 1;
	assert_int_equal(dtls_cert_fingerprint(&f->f[0], rig.e[!who].order.cert, DTLS_SHA256), 0);
	f->f[0].value[0] ^= wrong;
}

static void hear_remote(int who)
{
	for (int k = 0; k < 2; k++)
		rig.e[who].order.cfg.remote[k] = net_at(at[!who][k]);
}

static void hear(int who, bool ice)
{
	if (ice)
		hear_ice(who);
	hear_print(who, false);
	hear_remote(who);
	set(who);
}

/* --- The network ------------------------------------------------------------------------------ */

/* Whether it is lost on the way. */
static bool is_lost(int who, const struct session_out *o)
{
	return rig.e[who].mute || (rig.no_v4 && o->dst.family == AF_INET) ||
		(rig.rtp_late && !o->rtcp && dtls_is(o->packet, o->len));
}

static void collect(int who)
{
	struct end *e = &rig.e[who];
	struct packet *p = &rig.wire[rig.n];
	struct session_event event;

	for (; session_next(e->s, &p->out); p = &rig.wire[rig.n]) {
		p->from = (uint8_t)who;
		rig.n += !is_lost(who, &p->out);
		rig.sent++;
		assert_true(rig.n < WIRE_MAX);
	}
	while (session_event(e->s, &event)) {
		assert_true(e->n < GOT_MAX);
		e->got[e->n++] = event;
	}
}

static void arrive(const struct packet *p, const struct endpoint *src)
{
	int to = !p->from;
	struct end *e = &rig.e[to];
	struct session_in in = {.src = src,
		.dtls = dtls_is(p->out.packet, p->out.len),
		.p = p->out.packet,
		.len = p->out.len};

	for (uint8_t k = 0; k < SESSION_PORTS; k++)
		if (endpoint_eq(&p->out.dst, &e->order.cfg.local[k / 2][k % 2])) {
			in.rtcp = k % 2;
			in.at = k / 2;
			session_take(e->s, &in, now_ns);
		}
	collect(to);
}

static void deliver(void)
{
	collect(0);
	collect(1);
	for (uint32_t i = 0; i < rig.n; i++) {
		struct packet p = rig.wire[i];

		arrive(&p, &rig.e[p.from].order.cfg.local[p.out.at][p.out.rtcp]);
	}
	rig.n = 0;
}

/* So much time passes. */
static void pass(uint64_t ns)
{
	uint64_t until = now_ns + ns;

	for (;;) {
		uint64_t a = session_deadline(rig.e[0].s), b = session_deadline(rig.e[1].s);
		uint64_t next = a < b ? a : b;

		deliver();
		a = session_deadline(rig.e[0].s);
		b = session_deadline(rig.e[1].s);
		next = a < b ? a : b;
		if (next > until)
			break;
		now_ns = next > now_ns ? next : now_ns + 1;
		session_tick(rig.e[0].s, now_ns);
		session_tick(rig.e[1].s, now_ns);
	}
	now_ns = until;
}

static uint32_t events(int who, enum session_event_kind kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < rig.e[who].n; i++)
		n += rig.e[who].got[i].kind == kind;
	return n;
}

/* The last one. */
static const struct session_event *event(int who, enum session_event_kind kind, bool rtcp)
{
	for (uint32_t i = rig.e[who].n; i--;)
		if (rig.e[who].got[i].kind == kind && rig.e[who].got[i].rtcp == rtcp)
			return &rig.e[who].got[i];
	return NULL;
}

static void keys_agree(bool rtcp)
{
	const struct session_event *a = event(0, SESSION_KEYS, rtcp),
				   *b = event(1, SESSION_KEYS, rtcp);

	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(a->rx.suite, SUITE_AEAD_AES_128_GCM);
	assert_memory_equal(a->rx.key, b->tx.key, 16);
	assert_memory_equal(a->tx.key, b->rx.key, 16);
	assert_memory_not_equal(a->tx.key, a->rx.key, 16);
}

static bool led_to(int who, bool rtcp)
{
	const struct session_event *e = event(who, SESSION_PAIR, rtcp);
	struct endpoint there = net_at(at[!who][rtcp]);

	return e && endpoint_eq(&e->remote, &there);
}

static void talk(bool ice)
{
	hear(0, ice);
	hear(1, ice);
	pass(3 * S_NS);
	keys_agree(false);
}

/* --- Tests ------------------------------------------------------------------------------------ */

static void both_have_full_ice(void **state)
{
	(void)state;
	start();
	talk(true);
	assert_true(led_to(0, false));
	assert_true(led_to(1, false));
	assert_int_equal(events(0, SESSION_KEYS), 1);
	assert_int_equal(events(1, SESSION_KEYS), 1);
	assert_int_equal(events(0, SESSION_FAILED) + events(1, SESSION_FAILED), 0);
	for (int i = 0; i < 2; i++) {
		const struct session_counts *c = &rig.e[i].env.total;
		const struct hist *h = &c->handshake_ns;
		struct hist_total t;

		hist_total(&t, &h, 1);
		assert_int_equal(c->handshake[DTLS_FAIL_NONE], 1);
		assert_int_equal(t.count, 1);
		assert_int_equal(c->ice_state[ICE_COMPLETED], 1);
		assert_int_equal(c->ice_state[ICE_CHECKING], 0);
		assert_true(c->ice[ICE_COUNT_REQUESTS] > 0);
		session_destroy(rig.e[i].s);
		rig.e[i].s = NULL;
		assert_int_equal(c->ice_state[ICE_COMPLETED], 0);
		assert_true(c->ice[ICE_COUNT_REQUESTS] > 0);
	}
	end();
}

static void ours_may_be_lite(void **state)
{
	(void)state;
	start();
	rig.e[0].order.cfg.ice.lite = true;
	talk(true);
	assert_true(led_to(0, false));
	assert_true(led_to(1, false));
	pass(100 * S_NS);
	assert_int_equal(events(0, SESSION_LOST) + events(1, SESSION_LOST), 0);
	end();
}

static void without_ice_a_cookie_proves_the_source(void **state)
{
	(void)state;
	start();
	talk(false);
	assert_true(led_to(0, false));
	end();
}

/* RTP and RTCP have ports, pairs, associations and keys of their own. */
static void without_mux_there_are_two_associations(void **state)
{
	for (int ice = 0; ice < 2; ice++) {
		(void)state;
		start();
		rig.e[0].order.cfg.mux = rig.e[1].order.cfg.mux = false;
		talk(ice);
		keys_agree(true);
		assert_memory_not_equal(event(0, SESSION_KEYS, false)->rx.key,
			event(0, SESSION_KEYS, true)->rx.key, 16);
		assert_true(!ice || led_to(1, true));
		assert_int_equal(events(0, SESSION_KEYS), 2);
		end();
	}
}

/* Keys of RTCP are of no use before those of RTP. */
static void rtcp_waits_for_rtp(void **state)
{
	(void)state;
	start();
	rig.e[0].order.cfg.mux = rig.e[1].order.cfg.mux = false;
	rig.rtp_late = true;
	hear(0, true);
	hear(1, true);
	pass(3 * S_NS);
	assert_int_equal(events(0, SESSION_KEYS) + events(1, SESSION_KEYS), 0);
	rig.rtp_late = false;
	pass(6 * S_NS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(events(i, SESSION_KEYS), 2);
		assert_true(event(i, SESSION_KEYS, false) < event(i, SESSION_KEYS, true));
	}
	end();
}

/* An association of a peer of another kind, at its port of RTCP. It would take the first of these
 * suites, whatever RTP has. */
static struct dtls *other_peer(int who)
{
	struct dtls_config c = {.cert = rig.e[who].order.cert,
		.role = who ? DTLS_ROLE_CLIENT : DTLS_ROLE_SERVER,
		.profile = {SUITE_AEAD_AES_256_GCM, SUITE_AEAD_AES_128_GCM},
		.profiles = 2};
	struct dtls_fingerprints f = {.count = 1};
	struct dtls *a;

	assert_int_equal(dtls_create(&a, &c), 0);
	assert_int_equal(dtls_cert_fingerprint(&f.f[0], rig.e[!who].order.cert, DTLS_SHA256), 0);
	assert_int_equal(dtls_expect(a, &f, now_ns), 0);
	return a;
}

/* Its packets and those of the session !who, for RTCP. */
static void talk_rtcp(int who, struct dtls *peer)
{
	struct endpoint src = net_at(at[who][1]);
	struct end *e = &rig.e[!who];
	struct session_out out;
	uint8_t p[DTLS_PACKET_MAX];
	int n;

	(void)dtls_start(peer, now_ns);
	for (int i = 0; i < 100; i++) {
		for (uint32_t k = 0; k < rig.n; k++)
			if (rig.wire[k].from == !who && rig.wire[k].out.rtcp)
				(void)dtls_take(
					peer, rig.wire[k].out.packet, rig.wire[k].out.len, now_ns);
		rig.n = 0;
		while (session_next(e->s, &out))
			if (out.rtcp)
				(void)dtls_take(peer, out.packet, out.len, now_ns);
		while ((n = dtls_next(peer, p, sizeof(p))) > 0)
			session_take(e->s,
				&(struct session_in){.rtcp = true,
					.dtls = true,
					.src = &src,
					.p = p,
					.len = (size_t)n},
				now_ns);
		now_ns += S_NS / 10;
		if (session_deadline(e->s) <= now_ns)
			session_tick(e->s, now_ns);
		if (dtls_deadline(peer) <= now_ns)
			dtls_tick(peer, now_ns);
	}
	collect(!who);
}

/* A peer whose RTCP prefers another suite gets RTP's. */
static void rtcp_has_the_suite_of_rtp(void **state)
{
	(void)state;
	for (int we = 0; we < 2; we++) {
		struct dtls *peer;

		start();
		rig.e[we].env.profile[0] = SUITE_AEAD_AES_256_GCM;
		rig.e[we].env.profile[1] = SUITE_AEAD_AES_128_GCM;
		rig.e[we].env.profiles = 2;
		rig.e[we].order.cfg.mux = false;
		talk(false);
		peer = other_peer(!we);
		talk_rtcp(!we, peer);
		assert_non_null(event(we, SESSION_KEYS, true));
		assert_int_equal(event(we, SESSION_KEYS, true)->rx.suite, SUITE_AEAD_AES_128_GCM);
		dtls_destroy(peer);
		end();
	}
}

/* The daemon was killed between the keys of RTP and those of RTCP. Only RTCP's handshake is made
 * again. */
static void a_restored_session_gets_keys_of_rtcp(void **state)
{
	(void)state;
	for (int we = 0; we < 2; we++) {
		struct session_dtls *dtls;
		struct dtls *peer;

		start();
		rig.e[we].env.profile[1] = SUITE_AEAD_AES_256_GCM;
		rig.e[we].env.profiles = 2;
		rig.e[we].order.cfg.mux = false;
		dtls = &rig.e[we].order.cfg.dtls;
		dtls->established = true;
		dtls->rtp_suite = SUITE_AEAD_AES_256_GCM;
		hear(we, false);
		dtls->established = false;
		dtls->rtp_suite = SUITE_PLAIN;
		set(we);
		peer = other_peer(!we);
		talk_rtcp(!we, peer);
		assert_null(event(we, SESSION_KEYS, false));
		assert_non_null(event(we, SESSION_KEYS, true));
		assert_int_equal(event(we, SESSION_KEYS, true)->rx.suite, SUITE_AEAD_AES_256_GCM);
		assert_int_equal(events(we, SESSION_FAILED), 0);
		dtls_destroy(peer);
		end();
	}
}

/* One record of the handshake in clear, forged with the terminal's address. */
static void forge(int to, uint8_t type, uint8_t seq)
{
	struct endpoint src = net_at(at[!to][0]);
	uint8_t p[13 + 12 + 42] = {22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, seq, 0, 12 + 42, type, 0, 0,
		42, 0, 0, 0, 0, 0, 0, 0, 42, 0xfe, 0xfd};

	p[25 + 36] = 2; /* one cipher suite; no extension, so no profile of SRTP */
	p[25 + 37] = 0xc0;
	p[25 + 38] = 0x2b;
	p[25 + 39] = 1;
	session_take(rig.e[to].s,
		&(struct session_in){.dtls = true, .src = &src, .p = p, .len = sizeof(p)}, now_ns);
	collect(to);
}

/* A forged ClientHello or ServerHello ends an association. A fresh one takes its place, a few
 * times, and our alert does not end the terminal's. */
static void a_forged_hello_does_not_end_the_handshake(void **state)
{
	static const uint8_t hello[] = {1, 2}; /* to the server, to the client */

	(void)state;
	for (int to = 0; to < 2; to++)
		for (uint8_t n = 1; n < 10; n += 2) {
			start();
			rig.rtp_late = true;
			hear(0, true);
			hear(1, true);
			pass(2 * S_NS);
			for (uint8_t i = 0; i < n; i++)
				forge(to, hello[to], 0);
			assert_int_equal(events(to, SESSION_FAILED), 1);
			assert_int_equal(event(to, SESSION_FAILED, false)->rtcp, false);
			rig.rtp_late = false;
			pass(6 * S_NS);
			assert_int_equal(events(0, SESSION_KEYS), n <= 3);
			assert_int_equal(events(1, SESSION_KEYS), n <= 3);
			assert_int_equal(events(to, SESSION_FAILED), 1);
			end();
		}
}

/* We offered without a role. A ClientHello that comes ahead of the answer is answered, but keys
 * wait for the fingerprint. */
static void the_answer_decides_the_role(void **state)
{
	for (int ice = 0; ice < 2; ice++) {
		(void)state;
		start();
		rig.e[0].order.cfg.dtls.role = DTLS_ROLE_NONE;
		rig.e[0].order.cfg.ice.on = ice;
		set(0);
		hear(1, ice);
		pass(3 * S_NS);
		assert_int_equal(events(0, SESSION_KEYS), 0);
		rig.e[0].order.cfg.dtls.role = DTLS_ROLE_SERVER;
		hear(0, ice);
		pass(6 * S_NS);
		keys_agree(false);
		end();
	}
}

static void the_answer_may_make_us_the_client(void **state)
{
	(void)state;
	start();
	rig.e[1].order.cfg.dtls.role = DTLS_ROLE_NONE;
	set(1);
	rig.e[1].order.cfg.dtls.role = DTLS_ROLE_CLIENT;
	talk(true);
	end();
}

/* The offer asked for mux, and the answer takes it, or does not. */
static void the_answer_decides_mux(void **state)
{
	for (int mux = 0; mux < 2; mux++) {
		(void)state;
		start();
		rig.e[0].order.cfg.mux = false;
		rig.e[0].order.cfg.maybe_mux = true;
		rig.e[0].order.cfg.ice.on = true;
		set(0);
		rig.e[0].order.cfg.maybe_mux = false;
		rig.e[0].order.cfg.mux = rig.e[1].order.cfg.mux = mux;
		talk(true);
		assert_int_equal(events(0, SESSION_KEYS), mux ? 1 : 2);
		assert_int_equal(events(1, SESSION_KEYS), mux ? 1 : 2);
		end();
	}
}

static void a_wrong_fingerprint_gives_no_keys(void **state)
{
	for (int who = 0; who < 2; who++) {
		(void)state;
		start();
		for (int i = 0; i < 2; i++) {
			hear_ice(i);
			hear_print(i, i == who);
			set(i);
		}
		pass(40 * S_NS);
		assert_int_equal(events(who, SESSION_KEYS), 0);
		assert_int_equal(events(who, SESSION_FAILED), 1);
		assert_string_equal(event(who, SESSION_FAILED, false)->why,
			dtls_failure_text(DTLS_FAIL_FINGERPRINT));
		assert_int_equal(rig.e[who].env.total.handshake[DTLS_FAIL_FINGERPRINT], 1);
		end();
	}
}

static void a_new_association_has_new_keys(void **state)
{
	for (int ice = 0; ice < 2; ice++) {
		struct session_event first;

		(void)state;
		start();
		talk(ice);
		first = *event(0, SESSION_KEYS, false);
		for (int i = 0; i < 2; i++) {
			rig.e[i].order.cfg.dtls.association = 2;
			set(i);
		}
		pass(6 * S_NS);
		assert_int_equal(events(0, SESSION_KEYS), 2);
		assert_int_equal(event(0, SESSION_KEYS, false)->association, 2);
		keys_agree(false);
		assert_memory_not_equal(first.rx.key, event(0, SESSION_KEYS, false)->rx.key, 16);
		end();
	}
}

static void a_reinvite_keeps_the_association(void **state)
{
	(void)state;
	start();
	talk(true);
	for (int i = 0; i < 2; i++)
		set(i);
	pass(20 * S_NS);
	assert_int_equal(events(0, SESSION_KEYS), 1);
	assert_int_equal(events(0, SESSION_FAILED) + events(0, SESSION_LOST), 0);
	end();
}

static void an_ice_restart_keeps_the_association(void **state)
{
	(void)state;
	start();
	talk(true);
	for (int i = 0; i < 2; i++)
		identify(&rig.e[i].order.cfg.ice, i, 2);
	for (int i = 0; i < 2; i++) {
		hear_ice(i);
		set(i);
	}
	pass(60 * S_NS);
	assert_int_equal(events(0, SESSION_KEYS), 1);
	assert_int_equal(events(0, SESSION_LOST) + events(1, SESSION_LOST), 0);
	assert_int_equal(events(0, SESSION_FAILED) + events(1, SESSION_FAILED), 0);
	end();
}

static void a_peer_that_never_answers_is_given_up(void **state)
{
	(void)state;
	start();
	rig.e[0].mute = true;
	hear(1, false);
	pass(29 * S_NS);
	assert_int_equal(events(1, SESSION_FAILED), 0);
	pass(2 * S_NS);
	assert_int_equal(events(1, SESSION_FAILED), 1);
	assert_string_equal(
		event(1, SESSION_FAILED, false)->why, dtls_failure_text(DTLS_FAIL_TIMEOUT));
	end();
	start();
	rig.e[0].mute = true;
	hear(1, true);
	pass(39 * S_NS);
	assert_int_equal(events(1, SESSION_FAILED), 0);
	pass(2 * S_NS);
	assert_int_equal(events(1, SESSION_FAILED), 1);
	end();
}

/* Nothing is sent to who does not agree any more, until it answers again. */
static void lost_consent_comes_back_with_a_check(void **state)
{
	(void)state;
	start();
	talk(true);
	rig.e[1].mute = true;
	pass(25 * S_NS);
	assert_int_equal(events(0, SESSION_LOST), 0);
	pass(10 * S_NS);
	assert_int_equal(events(0, SESSION_LOST), 1);
	assert_int_equal(rig.e[0].env.total.consent_lost, 1);
	rig.e[1].mute = false;
	for (int i = 0; i < 2; i++)
		identify(&rig.e[i].order.cfg.ice, i, 2);
	for (int i = 0; i < 2; i++) {
		hear_ice(i);
		set(i);
	}
	pass(5 * S_NS);
	assert_int_equal(events(0, SESSION_PAIR), 2);
	assert_int_equal(events(0, SESSION_KEYS), 1);
	end();
}

/* Candidates arrive before the answer: each fragment adds new ones, and the same one only once.
 * Other credentials remove them. */
static void early_candidates_add_up(void **state)
{
	struct session_ice *ice = &rig.e[0].order.cfg.ice;
	struct ice_candidate right, wrong;

	(void)state;
	start();
	for (int i = 0; i < 2; i++)
		identify(&rig.e[i].order.cfg.ice, i, 1);
	hear_ice(0);
	right = ice->candidate[0];
	ice->started = ice->last = false;
	ice->candidates = 1;
	for (uint8_t i = 0; i < 4; i++) { /* the second and the fourth one are the same */
		wrong = right;
		wrong.addr = net_at(i % 2 ? "203.0.113.9:1"
				: i       ? "203.0.113.9:2"
					  : "203.0.113.9:3");
		ice->candidate[0] = i == 0 ? right : wrong;
		set(0);
	}
	assert_int_equal(rig.e[0].s->ice_peer.candidates, 3);
	assert_false(rig.e[0].s->ice_peer.last);
	/* The answer names none. */
	ice->started = true;
	ice->candidates = 0;
	ice->last = true;
	set(0);
	assert_int_equal(rig.e[0].s->ice->remote_count, 3);
	assert_true(rig.e[0].s->ice_peer.last);
	hear_ice(1);
	set(1);
	pass(20 * S_NS);
	assert_int_equal(events(0, SESSION_PAIR), 1);
	assert_int_equal(events(0, SESSION_FAILED), 0);
	/* Another terminal's fragment. */
	ice->remote_ufrag[0] ^= 1;
	ice->peer++;
	ice->candidate[0] = right;
	ice->candidates = 1;
	set(0);
	assert_int_equal(rig.e[0].s->ice_peer.candidates, 1);
	end();
}

/* The candidates of an offered restart wait for the answer. The terminal sends no checks before it
 * gets ours, and no SDP of the answer names it. */
static void candidates_of_a_restart_wait(void **state)
{
	struct session_ice *ice = &rig.e[0].order.cfg.ice;
	struct ice_candidate elsewhere;

	(void)state;
	start();
	talk(true);
	elsewhere = ice->candidate[0];
	ice->candidate[0].addr = net_at("203.0.113.9:1"); /* nobody is there */
	ice->candidate[1] = elsewhere;
	ice->candidates = 2;
	identify(&rig.e[1].order.cfg.ice, 1, 2);
	memcpy(ice->next_ufrag, rig.e[1].order.cfg.ice.ufrag, SESSION_UFRAG);
	set(0);
	pass(5 * S_NS);
	assert_int_equal(events(0, SESSION_PAIR), 1);
	assert_int_equal(events(0, SESSION_LOST), 0);
	/* The answer. */
	identify(ice, 0, 2);
	hear_ice(0);
	memset(ice->next_ufrag, 0, sizeof(ice->next_ufrag));
	ice->candidates = 0;
	set(0);
	assert_int_equal(rig.e[0].s->ice->remote_count, 2);
	assert_int_equal(rig.e[0].s->ice_next == NULL, true);
	hear_ice(1);
	set(1);
	pass(60 * S_NS);
	assert_int_equal(events(0, SESSION_LOST) + events(0, SESSION_FAILED), 0);
	end();
}

/* Forking: another terminal answers the same offer. Nothing goes to the first one any more, and a
 * pair with the same address is reported again. */
static void another_terminal_ends_the_pair(void **state)
{
	struct ice_pair_selected pair;

	(void)state;
	start();
	talk(true);
	rig.e[1].mute = true;
	identify(&rig.e[1].order.cfg.ice, 1, 2);
	rig.e[0].order.cfg.ice.peer++;
	hear_ice(0);
	set(0);
	assert_false(ice_selected(rig.e[0].s->ice, 1, &pair));
	rig.e[1].mute = false;
	set(1);
	pass(5 * S_NS);
	assert_int_equal(events(0, SESSION_PAIR), 2);
	assert_true(led_to(0, false));
	assert_int_equal(events(0, SESSION_LOST), 0);
	end();
}

/* A re-INVITE without ICE, then one with it: the call forgot the pair, so it is reported again. */
static void ice_may_end_and_begin(void **state)
{
	(void)state;
	start();
	talk(true);
	for (int on = 0; on < 2; on++) {
		for (int i = 0; i < 2; i++) {
			rig.e[i].order.cfg.ice.on = on;
			set(i);
		}
		pass(5 * S_NS);
	}
	assert_int_equal(events(0, SESSION_PAIR), 2);
	assert_int_equal(events(1, SESSION_PAIR), 2);
	assert_int_equal(events(0, SESSION_KEYS), 1);
	end();
}

/* Keys and pair are known; the handshake was in another life. */
static void restore(int who)
{
	struct end *e = &rig.e[who];

	session_destroy(e->s);
	assert_int_equal(session_create(&e->s, &e->env), 0);
	e->n = 0;
	e->order.cfg.selected[0] = net_at((e->order.cfg.selected_at[0] ? at_v6 : at)[!who][0]);
	e->order.cfg.ice.candidates = 0;
	e->order.cfg.dtls.established = true;
	set(who);
	/* Later changes do not speak of that life. */
	e->order.cfg.dtls.established = false;
	e->order.cfg.selected[0] = (struct endpoint){0};
}

static void a_restored_session_goes_on(void **state)
{
	for (int i = 0; i < 4; i++) {
		int who = i & 1;
		bool lite = i & 2;

		(void)state;
		start();
		rig.e[who].order.cfg.ice.lite = lite;
		rig.e[who].order.cfg.ice.controlling = !lite && !who;
		rig.e[!who].order.cfg.ice.controlling = lite || who;
		talk(true);
		rig.e[!who].n = 0;
		restore(who);
		pass(120 * S_NS);
		set(who);
		pass(5 * S_NS);
		for (int k = 0; k < 2; k++) {
			assert_int_equal(events(k, SESSION_LOST), 0);
			assert_int_equal(events(k, SESSION_FAILED), 0);
			assert_int_equal(events(k, SESSION_KEYS), 0);
		}
		end();
	}
}

/* ICE was restarted before, and the terminal still uses our name of then. */
static void a_restored_session_knows_its_previous_name(void **state)
{
	for (int known = 0; known < 2; known++) {
		struct session_ice *ice = &rig.e[0].order.cfg.ice;

		(void)state;
		start();
		talk(true);
		if (known) {
			memcpy(ice->prev_ufrag, ice->ufrag, sizeof(ice->prev_ufrag));
			memcpy(ice->prev_pwd, ice->pwd, sizeof(ice->prev_pwd));
		}
		memcpy(ice->ufrag, "newufrag", sizeof(ice->ufrag));
		memcpy(ice->pwd, "another password of 24 b", sizeof(ice->pwd));
		restore(0);
		pass(120 * S_NS);
		assert_int_equal(events(0, SESSION_LOST), 0);
		assert_int_equal(events(1, SESSION_LOST), !known);
		end();
	}
}

static void a_restored_session_may_lose_consent(void **state)
{
	(void)state;
	start();
	talk(true);
	restore(0);
	rig.e[1].mute = true;
	pass(35 * S_NS);
	assert_int_equal(events(0, SESSION_LOST), 1);
	end();
}

static void a_restored_session_may_get_a_new_association(void **state)
{
	for (int who = 0; who < 2; who++) {
		(void)state;
		start();
		talk(true);
		restore(who);
		pass(S_NS);
		for (int i = 0; i < 2; i++) {
			rig.e[i].order.cfg.dtls.association = 2;
			set(i);
		}
		pass(6 * S_NS);
		keys_agree(false);
		assert_int_equal(events(who, SESSION_KEYS), 1);
		end();
	}
}

/* A copy of each packet comes from elsewhere, first. */
static void strangers_are_not_believed(void **state)
{
	struct endpoint stranger = net_at("203.0.113.9:9999");

	(void)state;
	start();
	talk(true);
	for (int i = 0; i < 2; i++) {
		rig.e[i].order.cfg.dtls.association = 2;
		set(i);
	}
	for (int round = 0; round < 20; round++) {
		uint32_t n, sent;

		collect(0);
		collect(1);
		n = rig.n;
		sent = rig.sent;
		for (uint32_t i = 0; i < n; i++) {
			struct packet p = rig.wire[i];

			if (dtls_is(p.out.packet, p.out.len))
				arrive(&p, &stranger);
		}
		assert_int_equal(rig.sent, sent);
		deliver();
	}
	keys_agree(false);
	assert_int_equal(events(0, SESSION_KEYS), 2);
	end();
}

/* The first terminal keeps its place; the second one's cookie is refused. */
static void without_ice_the_first_keeps_its_place(void **state)
{
	struct endpoint stranger = net_at("203.0.113.9:9999");

	(void)state;
	start();
	hear(0, false);
	hear(1, false);
	pass(3 * S_NS);
	keys_agree(false);
	rig.e[0].n = 0;
	session_close(rig.e[1].s, now_ns); /* a packet */
	collect(1);
	for (uint32_t i = 0; i < rig.n; i++) {
		struct packet p = rig.wire[i];

		arrive(&p, &stranger);
	}
	assert_int_equal(events(0, SESSION_CLOSED), 0);
	end();
}

static void the_end_is_told(void **state)
{
	for (int ice = 0; ice < 2; ice++) {
		(void)state;
		start();
		talk(ice);
		session_close(rig.e[1].s, now_ns);
		deliver();
		assert_int_equal(events(0, SESSION_CLOSED), 1);
		assert_int_equal(events(0, SESSION_FAILED), 0);
		end();
	}
}

/* --- Several local addresses ------------------------------------------------------------------ */

static void start_both_families(bool lite)
{
	start();
	rig.e[0].order.cfg.ice.lite = lite;
	for (int i = 0; i < 2; i++) {
		rig.e[i].order.cfg.locals = 2;
		for (int k = 0; k < 2; k++)
			rig.e[i].order.cfg.local[1][k] = net_at(at_v6[i][k]);
	}
}

static const struct session_event *last_pair(int who)
{
	const struct session_event *e = NULL;

	for (uint32_t i = 0; i < rig.e[who].n; i++)
		if (rig.e[who].got[i].kind == SESSION_PAIR)
			e = &rig.e[who].got[i];
	assert_non_null(e);
	return e;
}

/* The first address leads nowhere. The handshake uses the second one, too. */
static void the_second_address_serves(void **state)
{
	(void)state;
	for (int lite = 0; lite < 2; lite++) {
		start_both_families(lite);
		rig.no_v4 = true;
		talk(true);
		for (int i = 0; i < 2; i++) {
			struct endpoint there = net_at(at_v6[!i][0]);

			assert_int_equal(last_pair(i)->at, 1);
			assert_true(endpoint_eq(&last_pair(i)->remote, &there));
			assert_int_equal(events(i, SESSION_PAIR), 1);
		}
		end();
	}
}

/* Both believe to control; one gives way, and says so. */
static void the_role_after_a_conflict_is_told(void **state)
{
	(void)state;
	start();
	rig.e[1].order.cfg.ice.controlling = true;
	talk(true);
	pass(3 * S_NS);
	assert_int_not_equal(last_pair(0)->controlling, last_pair(1)->controlling);
	end();
}

static void each_component_may_use_the_second(void **state)
{
	(void)state;
	start_both_families(false);
	for (int i = 0; i < 2; i++)
		rig.e[i].order.cfg.mux = false;
	rig.no_v4 = true;
	talk(true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(event(i, SESSION_PAIR, true)->at, 1);
		assert_int_equal(event(i, SESSION_PAIR, false)->at, 1);
		assert_int_equal(event(i, SESSION_PAIR, true)->remote.port % 2, 1);
		assert_int_equal(events(i, SESSION_KEYS), 2);
	}
	end();
}

/* The selected family fails in mid-call: the keys stay. */
static void another_address_takes_over(void **state)
{
	(void)state;
	start_both_families(false);
	talk(true);
	assert_int_equal(last_pair(0)->at, 0);
	pass(60 * S_NS);
	rig.no_v4 = true;
	pass(60 * S_NS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(last_pair(i)->at, 1);
		assert_int_equal(events(i, SESSION_LOST), 0);
		assert_int_equal(events(i, SESSION_KEYS), 1);
	}
	end();
}

static void a_restored_session_uses_the_second(void **state)
{
	(void)state;
	start_both_families(false);
	rig.no_v4 = true;
	talk(true);
	rig.e[0].order.cfg.selected_at[0] = 1;
	restore(0);
	pass(60 * S_NS);
	assert_int_equal(last_pair(0)->at, 1);
	assert_int_equal(events(0, SESSION_LOST) + events(1, SESSION_LOST), 0);
	end();
}

/* An address that the agent does not have, and one without ICE. */
static void other_ports_are_ignored(void **state)
{
	struct endpoint src = net_at(at[1][0]);
	struct session_in in = {.src = &src, .at = 2, .p = (const uint8_t *)"x", .len = 1};

	(void)state;
	start_both_families(false);
	talk(true);
	for (in.at = 2; in.at < 8; in.at++)
		for (int kind = 0; kind < 3; kind++) {
			in.dtls = kind == 1;
			in.zrtp = kind == 2;
			session_take(rig.e[0].s, &in, now_ns);
		}
	end();
	start();
	talk(false);
	in.at = 1;
	in.dtls = true;
	session_take(rig.e[0].s, &in, now_ns);
	end();
}

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* A terminal that many calls have: several addresses, for RTP only. */
static void add_candidates(struct session_ice *ice, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct ice_candidate *c = &ice->candidate[ice->candidates++];

		*c = (struct ice_candidate){.addr = net_at("203.0.113.1:6000"),
			.priority = ice_candidate_priority(ICE_RELAY, (uint16_t)(1000 - i), 1),
			.foundation = {(char)('A' + i)},
			.foundation_len = 1,
			.component = 1,
			.type = ICE_RELAY};
		c->addr.port += (uint16_t)i;
	}
}

/* Bytes of a session after its handshake. Sessions share one certificate of each end, as in the
 * daemon. */
static size_t memory_of_session(bool ice, uint32_t candidates)
{
	enum { N = 100 };
	struct session *kept[2 * N];
	struct dtls_cert *cert[2];
	size_t before = 0, used;

	for (int i = -1; i < N; i++) { /* the first fills OpenSSL's own tables */
		before = i ? before : heap();
		start();
		for (int k = 0; k < 2; k++) {
			if (i < 0)
				cert[k] = dtls_cert_get(rig.e[k].order.cert);
			dtls_cert_put(rig.e[k].order.cert);
			rig.e[k].order.cert = dtls_cert_get(cert[k]);
		}
		for (int k = 0; k < 2; k++) {
			if (ice)
				hear_ice(k);
			add_candidates(&rig.e[k].order.cfg.ice, ice ? candidates : 0);
			hear_print(k, false);
			hear_remote(k);
			set(k);
		}
		pass(3 * S_NS);
		keys_agree(false);
		for (int k = 0; k < 2; k++) {
			session_settle(rig.e[k].s, 1, false, now_ns);
			collect(k);
			if (i >= 0) {
				kept[2 * i + k] = rig.e[k].s;
				rig.e[k].s = NULL;
			}
		}
		end();
	}
	used = heap() - before;
	for (int i = 0; i < 2 * N; i++)
		session_destroy(kept[i]);
	dtls_cert_put(cert[0]);
	dtls_cert_put(cert[1]);
	return used / (2 * N);
}

/* A call has two legs, so with DTLS on both it needs at most 8 KiB more than SDES, which has no
 * session. Sanitizers replace the allocator, and then all figures are 0. */
static void little_memory_stays_after_the_handshake(void **state)
{
	size_t dtls = memory_of_session(false, 0), ice = memory_of_session(true, 0),
	       many = memory_of_session(true, 20);

	(void)state;
	print_message(
		"bytes per leg: DTLS %zu, with ICE %zu, with 21 candidates %zu\n", dtls, ice, many);
	assert_true(dtls <= 2048);
	assert_true(ice <= 3584);
	assert_true(many <= 7168);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_have_full_ice),
		cmocka_unit_test(ours_may_be_lite),
		cmocka_unit_test(without_ice_a_cookie_proves_the_source),
		cmocka_unit_test(without_mux_there_are_two_associations),
		cmocka_unit_test(rtcp_waits_for_rtp),
		cmocka_unit_test(rtcp_has_the_suite_of_rtp),
		cmocka_unit_test(a_restored_session_gets_keys_of_rtcp),
		cmocka_unit_test(a_forged_hello_does_not_end_the_handshake),
		cmocka_unit_test(the_answer_decides_the_role),
		cmocka_unit_test(the_answer_may_make_us_the_client),
		cmocka_unit_test(the_answer_decides_mux),
		cmocka_unit_test(a_wrong_fingerprint_gives_no_keys),
		cmocka_unit_test(a_new_association_has_new_keys),
		cmocka_unit_test(a_reinvite_keeps_the_association),
		cmocka_unit_test(an_ice_restart_keeps_the_association),
		cmocka_unit_test(a_peer_that_never_answers_is_given_up),
		cmocka_unit_test(lost_consent_comes_back_with_a_check),
		cmocka_unit_test(early_candidates_add_up),
		cmocka_unit_test(candidates_of_a_restart_wait),
		cmocka_unit_test(another_terminal_ends_the_pair),
		cmocka_unit_test(ice_may_end_and_begin),
		cmocka_unit_test(a_restored_session_goes_on),
		cmocka_unit_test(a_restored_session_knows_its_previous_name),
		cmocka_unit_test(a_restored_session_may_lose_consent),
		cmocka_unit_test(a_restored_session_may_get_a_new_association),
		cmocka_unit_test(strangers_are_not_believed),
		cmocka_unit_test(without_ice_the_first_keeps_its_place),
		cmocka_unit_test(the_end_is_told),
		cmocka_unit_test(the_second_address_serves),
		cmocka_unit_test(the_role_after_a_conflict_is_told),
		cmocka_unit_test(each_component_may_use_the_second),
		cmocka_unit_test(another_address_takes_over),
		cmocka_unit_test(a_restored_session_uses_the_second),
		cmocka_unit_test(other_ports_are_ignored),
		cmocka_unit_test(little_memory_stays_after_the_handshake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
