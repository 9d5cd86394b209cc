/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICE agents under attack: forged requests and responses change nothing, memory is bounded, nothing
 * is amplified. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "ice_net.h"

static struct net N;
static const uint8_t TXID[STUN_TXID_LEN] = {9, 9, 9};

static void begin(void)
{
	net_clear(&N);
	net_agent(&N.a, "192.0.2.1:5000", true, 1);
	net_agent(&N.b, "192.0.2.2:6000", false, 2);
	net_tell(&N, &N.b, &N.a, false);
	net_tell(&N, &N.a, &N.b, false);
}

/* A request to a, as its peer would send it, or with a wrong password. */
static size_t request(uint8_t *p, struct str remote_ufrag, struct str pwd, unsigned flags)
{
	struct stun_writer w = {.p = p, .cap = ICE_PACKET_MAX};
	struct stun_key key;

	stun_key_init(&key, pwd);
	stun_write_head(&w, STUN_REQUEST, TXID);
	stun_write_username(&w, ice_ufrag(&N.a), remote_ufrag);
	stun_write_priority(&w, 0x6e0001ff);
	if (flags & 1)
		stun_write_use_candidate(&w);
	if (flags & 2)
		stun_write_role(&w, STUN_ROLE_CONTROLLING, UINT64_MAX);
	return stun_write_end(&w, &key);
}

static struct endpoint number(uint32_t n)
{
	struct endpoint e = net_at("198.51.100.1:1000");

	put_be32(e.addr, 0xc6336400u + n);
	return e;
}

static unsigned drain(struct ice_agent *a)
{
	struct ice_out o;
	unsigned n = 0;

	while (ice_next(a, &o))
		n++;
	return n;
}

/* The state that no attacker may change: all but counters, the budget of errors and the clock. */
struct essence {
	struct ice_agent a;
	struct remote remote[ICE_REMOTES];
	struct pair pair[ICE_PAIRS];
};

static void essence(struct essence *e, const struct ice_agent *a)
{
	memset(e, 0, sizeof(*e));
	e->a = *a;
	memcpy(e->remote, a->remote, a->remote_count * sizeof(*a->remote));
	memcpy(e->pair, a->pair, a->pair_count * sizeof(*a->pair));
	memset(e->a.count, 0, sizeof(e->a.count));
	e->a.remote = NULL;
	e->a.pair = NULL;
	e->a.out = NULL;
	e->a.out_at = e->a.error_tokens = 0;
	e->a.error_ns = e->a.now_ns = 0;
}

static void forged_requests_change_nothing(void **state)
{
	static struct essence before, after;
	uint8_t p[ICE_PACKET_MAX];
	unsigned answers = 0;

	(void)state;
	begin();
	assert_true(net_run(&N, ICE_COMPLETED, 1000 * NET_MS));
	essence(&before, &N.a);
	for (uint32_t i = 0; i < 20000; i++) {
		struct endpoint src = i % 2 ? number(i) : N.b.local[0].addr;
		size_t n = request(p, ice_ufrag(&N.b), STR("wrong password of 22 b"), i % 4);

		if (i % 3 == 0) /* without integrity */
			n = request(p, i % 5 ? ice_ufrag(&N.b) : STR("else"), STR_NONE, 3);
		ice_take(&N.a, 0, &src, p, n, N.now_ns + i * NET_MS / 10);
		answers += drain(&N.a);
	}
	essence(&after, &N.a);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_in_range(answers, 1, 8 + 20 + 1); /* a burst, and ten per second */
	assert_int_equal(ice_counter(&N.a, ICE_COUNT_UNAUTHENTIC), 20000);
	net_pass(&N, 60000 * NET_MS);
	assert_int_equal(ice_state(&N.a), ICE_COMPLETED);
}

static void no_answer_is_longer_than_its_request(void **state)
{
	uint8_t p[ICE_PACKET_MAX];
	struct stun_writer w = {.p = p, .cap = sizeof(p)};
	struct endpoint src = number(1);
	struct ice_out o;
	size_t n;

	(void)state;
	begin();
	drain(&N.a);
	unsigned proved = 0;
	for (unsigned flags = 0; flags < 4; flags++) {
		n = request(p, ice_ufrag(&N.b), flags & 1 ? ice_pwd(&N.a) : STR("wrong"), flags);
		ice_take(&N.a, 0, &src, p, n, N.now_ns);
		assert_true(ice_next(&N.a, &o) && o.len <= n);
		/* Only a response of class success shows that the check was authentic. */
		assert_int_equal(o.proved, o.packet[0] == 1 && o.packet[1] == 1);
		proved += o.proved;
		drain(&N.a);
	}
	assert_in_range(proved, 1, 2);
	stun_write_head(&w, STUN_REQUEST, TXID);
	ice_take(&N.a, 0, &src, p, w.len, N.now_ns); /* 20 bytes: an error would be longer */
	assert_false(ice_next(&N.a, &o));
	stun_write_head(&w, STUN_INDICATION, TXID);
	n = stun_write_end(&w, NULL);
	ice_take(&N.a, 0, &src, p, n, N.now_ns);
	assert_false(ice_next(&N.a, &o));
}

/* The peer's real response arrives from another address, or with a wrong password. */
static unsigned detoured;
static bool detour(struct net *n, struct net_flight *f)
{
	struct stun_msg m;

	if (endpoint_eq(&f->dst, &n->a.local[0].addr) && stun_parse(&m, f->packet, f->len) == 0 &&
		m.cls == STUN_SUCCESS) {
		f->src.port++;
		detoured++;
	}
	return true;
}

static bool corrupt(struct net *n, struct net_flight *f)
{
	struct stun_msg m;
	struct stun_key key;
	struct stun_writer w = {.p = f->packet, .cap = sizeof(f->packet)};

	if (endpoint_eq(&f->dst, &n->a.local[0].addr) && stun_parse(&m, f->packet, f->len) == 0 &&
		m.cls == STUN_SUCCESS) {
		detoured++;
		stun_key_init(&key, STR("not the password of b"));
		if (detoured % 2) {
			stun_write_head(&w, STUN_SUCCESS, m.txid);
			stun_write_mapped(&w, &m.mapped);
		} else {
			stun_write_head(&w, STUN_ERROR, m.txid);
			stun_write_error(&w, STUN_ROLE_CONFLICT);
		}
		f->len = (uint16_t)stun_write_end(&w, detoured % 3 ? &key : NULL);
	}
	return true;
}

static void only_real_responses_count(void **state)
{
	static bool (*const evil[])(struct net *, struct net_flight *) = {detour, corrupt};
	struct ice_pair_selected s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(evil); i++) {
		begin();
		N.arrive = evil[i];
		detoured = 0;
		net_pass(&N, 30000 * NET_MS);
		assert_true(detoured > 3);
		assert_int_equal(ice_state(&N.a), ICE_CHECKING);
		assert_true(ice_is_controlling(&N.a));
		assert_false(ice_selected(&N.a, 1, &s));
		assert_true(ice_counter(&N.a, ICE_COUNT_STRAY) >= detoured);
		N.arrive = NULL;
		assert_true(net_run(&N, ICE_COMPLETED, 9000 * NET_MS));
	}
}

static void consent_needs_real_responses(void **state)
{
	static bool (*const evil[])(struct net *, struct net_flight *) = {detour, corrupt};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(evil); i++) {
		begin();
		assert_true(net_run(&N, ICE_COMPLETED, 1000 * NET_MS));
		N.arrive = evil[i];
		net_pass(&N, 35000 * NET_MS);
		assert_int_equal(ice_state(&N.a), ICE_LOST);
	}
}

/* A peer with a thousand candidates cannot shut out the one that is real. */
static void a_thousand_candidates(void **state)
{
	struct ice_candidate c = {.foundation = "1", .foundation_len = 1, .component = 1};
	struct ice_pair_selected s;

	(void)state;
	net_clear(&N);
	net_agent(&N.a, "192.0.2.1:5000", true, 1);
	net_agent(&N.b, "192.0.2.2:6000", false, 2);
	net_tell(&N, &N.a, &N.b, true);
	for (uint32_t i = 0; i < 1000; i++) {
		c.addr = number(i);
		c.priority = 0x7effffff - i;
		net_trickle(&N, &N.a, &N.b, &c);
	}
	assert_true(N.a.remote_count == ICE_REMOTES - ICE_LEARNABLE && N.a.pair_count <= ICE_PAIRS);
	assert_true(ice_counter(&N.a, ICE_COUNT_BEYOND) >= 1000 - ICE_REMOTES);
	net_tell(&N, &N.b, &N.a, false);
	assert_true(net_run(&N, ICE_COMPLETED, 30000 * NET_MS));
	assert_true(ice_selected(&N.a, 1, &s) && endpoint_eq(&s.remote, &N.b.local[0].addr));
}

/* Requests of the authenticated peer from a thousand addresses, before and after the answer. */
static void a_thousand_sources(void **state)
{
	uint8_t p[ICE_PACKET_MAX];

	(void)state;
	for (int known = 0; known < 2; known++) {
		net_clear(&N);
		net_agent(&N.a, "192.0.2.1:5000", true, 1);
		net_agent(&N.b, "192.0.2.2:6000", false, 2);
		if (known)
			net_tell(&N, &N.a, &N.b, true);
		for (uint32_t i = 0; i < 1000; i++) {
			struct endpoint src = number(i);
			size_t n = request(p, ice_ufrag(&N.b), ice_pwd(&N.a), 1);

			ice_take(&N.a, 0, &src, p, n, N.now_ns);
			drain(&N.a);
		}
		assert_true(N.a.early_count <= ICE_EARLY && N.a.remote_count <= ICE_REMOTES);
		assert_true(N.a.pair_count <= ICE_REMOTES);
		assert_int_equal(ice_counter(&N.a, ICE_COUNT_REQUESTS), 1000);
		net_tell(&N, &N.a, &N.b, false);
		net_tell(&N, &N.b, &N.a, false);
		assert_true(net_run(&N, ICE_COMPLETED, 39000 * NET_MS));
	}
}

/* Errors to authenticated requests carry integrity, and name what is unknown. */
static void errors_of_authenticated_requests(void **state)
{
	uint8_t p[ICE_PACKET_MAX];
	struct stun_writer w = {.p = p, .cap = sizeof(p)};
	struct endpoint src = number(1);
	struct stun_key key;
	struct stun_msg m;
	struct ice_out o;

	(void)state;
	begin();
	drain(&N.a);
	stun_key_init(&key, ice_pwd(&N.a));
	for (int unknown = 0; unknown < 2; unknown++) {
		stun_write_head(&w, STUN_REQUEST, TXID);
		stun_write_username(&w, ice_ufrag(&N.a), ice_ufrag(&N.b));
		if (unknown) {
			stun_write_priority(&w, 1);
			put_be16(p + w.len - 8, 0x7123); /* in the place of PRIORITY */
		}
		ice_take(&N.a, 0, &src, p, stun_write_end(&w, &key), N.now_ns);
		assert_int_equal(ice_next(&N.a, &o), 1);
		assert_int_equal(stun_parse(&m, o.packet, o.len), 0);
		assert_true(m.cls == STUN_ERROR && stun_verify(&m, o.packet, &key));
		assert_int_equal(m.error, unknown ? STUN_UNKNOWN_ATTRIBUTE : STUN_BAD_REQUEST);
		assert_true(!unknown || memmem(o.packet, o.len, "\x00\x0a\x00\x02\x71\x23", 6));
	}
	assert_int_equal(N.a.remote_count, 1); /* nothing was learned */
}

static void garbage_is_counted(void **state)
{
	struct endpoint src = number(1);
	uint8_t p[2000] = {0};

	(void)state;
	begin();
	drain(&N.a);
	ice_take(&N.a, 0, &src, p, 0, 0);
	ice_take(&N.a, 0, &src, p, sizeof(p), 0);
	ice_take(&N.a, 7, &src, p, request(p, STR("x"), STR("y"), 0), 0);
	assert_int_equal(ice_counter(&N.a, ICE_COUNT_MALFORMED), 3);
	assert_int_equal(drain(&N.a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forged_requests_change_nothing),
		cmocka_unit_test(no_answer_is_longer_than_its_request),
		cmocka_unit_test(only_real_responses_count),
		cmocka_unit_test(consent_needs_real_responses),
		cmocka_unit_test(a_thousand_candidates),
		cmocka_unit_test(a_thousand_sources),
		cmocka_unit_test(errors_of_authenticated_requests),
		cmocka_unit_test(garbage_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
