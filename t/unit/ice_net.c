/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ice_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct endpoint net_at(const char *text)
{
	struct endpoint e;

	assert_int_equal(endpoint_parse(&e, str_from(text)), 0);
	return e;
}

void net_clear(struct net *n)
{
	ice_fini(&n->a);
	ice_fini(&n->b);
	memset(n, 0, sizeof(*n));
}

static void start(struct ice_agent *a, const char *addr, struct ice_config c, uint8_t seed)
{
	uint8_t bytes[ICE_SEED_LEN] = {seed};
	struct str rest = str_from(addr), word;

	c.components = 1;
	for (word = str_word(&rest); word.len > 0; word = str_word(&rest)) {
		struct ice_local *l = &c.local[c.local_count++];
		struct str component = word, at = str_cut(&component, '/');

		assert_int_equal(endpoint_parse(&l->addr, at), 0);
		l->component = component.len > 0 ? (uint8_t)(component.s[0] - '0') : 1;
		if (l->component > c.components)
			c.components = l->component;
	}
	ice_fini(a);
	assert_int_equal(ice_init(a, &c, bytes, 0), 0);
}

void net_agent(struct ice_agent *a, const char *addr, bool controlling, uint8_t seed)
{
	start(a, addr, (struct ice_config){.controlling = controlling}, seed);
}

void net_lite(struct ice_agent *a, const char *addr, bool controlling, uint8_t seed)
{
	start(a, addr, (struct ice_config){.controlling = controlling, .lite = true}, seed);
}

static void flush(struct net *n, struct ice_agent *from)
{
	struct ice_out o;

	while (ice_next(from, &o)) {
		struct net_flight f = {.src = from->local[o.local].addr,
			.dst = o.dst,
			.at_ns = n->now_ns + 5 * NET_MS,
			.len = o.len};

		memcpy(f.packet, o.packet, o.len);
		n->sent++;
		if (n->route && !n->route(n, from, &f))
			continue;
		assert_true(n->flights < NET_FLIGHTS);
		n->flight[n->flights++] = f;
	}
}

static void tell(struct net *n, struct ice_agent *to, const struct ice_agent *from,
	const struct ice_candidate *c, uint32_t count)
{
	struct ice_remote r = {.ufrag = ice_ufrag(from),
		.pwd = ice_pwd(from),
		.lite = ice_is_lite(from),
		.last = true,
		.candidate = c,
		.count = count};

	assert_int_equal(ice_set_remote(to, &r, n->now_ns), 0);
	flush(n, to);
}

void net_tell(struct net *n, struct ice_agent *to, const struct ice_agent *from, bool none)
{
	struct ice_candidate c[ICE_LOCALS];

	tell(n, to, from, c, none ? 0 : ice_local_candidates(from, c, ARRAY_LEN(c)));
}

void net_trickle(struct net *n, struct ice_agent *to, const struct ice_agent *from,
	const struct ice_candidate *c)
{
	tell(n, to, from, c, 1);
}

static void deliver(struct net *n, struct net_flight *f)
{
	struct ice_agent *both[2] = {&n->a, &n->b};

	if (n->arrive && !n->arrive(n, f))
		return;
	for (int k = 0; k < 2; k++)
		for (uint8_t i = 0; i < both[k]->local_count; i++)
			if (endpoint_eq(&both[k]->local[i].addr, &f->dst)) {
				ice_take(both[k], i, &f->src, f->packet, f->len, n->now_ns);
				flush(n, both[k]);
			}
}

/* Advances to the next event at or before end: an arriving packet, or a deadline. */
static bool step(struct net *n, uint64_t end)
{
	uint64_t next = ice_deadline(&n->a), b = ice_deadline(&n->b);
	int f = -1;

	next = b < next ? b : next;
	for (unsigned i = 0; i < n->flights; i++)
		if (n->flight[i].at_ns <= next) {
			next = n->flight[i].at_ns;
			f = (int)i;
		}
	if (next > end)
		return false;
	assert_true(++n->steps < 100000); /* a deadline in the past would loop for ever */
	n->now_ns = next > n->now_ns ? next : n->now_ns;
	if (f >= 0) {
		struct net_flight copy = n->flight[f];

		n->flight[f] = n->flight[--n->flights];
		deliver(n, &copy);
		return true;
	}
	ice_tick(&n->a, n->now_ns);
	flush(n, &n->a);
	ice_tick(&n->b, n->now_ns);
	flush(n, &n->b);
	return true;
}

bool net_run(struct net *n, enum ice_state want, uint64_t ns)
{
	uint64_t end = n->now_ns + ns;

	do {
		if (ice_state(&n->a) == want && ice_state(&n->b) == want)
			return true;
	} while (step(n, end));
	n->now_ns = end;
	return false;
}

void net_pass(struct net *n, uint64_t ns)
{
	uint64_t end = n->now_ns + ns;

	while (step(n, end))
		;
	n->now_ns = end;
}

bool net_agree(const struct net *n, uint8_t component)
{
	struct ice_pair_selected a, b;

	return ice_selected(&n->a, component, &a) && ice_selected(&n->b, component, &b) &&
		a.nominated && b.nominated && endpoint_eq(&a.remote, &n->b.local[b.local].addr) &&
		endpoint_eq(&b.remote, &n->a.local[a.local].addr);
}
