/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of the sessions of a thread. The thread writes them, any thread may read them. */
#include "side/session_int.h"

static void add(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(
		c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static void count_handshake(struct session *s, struct component *c, uint64_t now_ns)
{
	struct session_counts *n = &s->env->total;
	enum dtls_state state = c->dtls ? dtls_state(c->dtls) : DTLS_IDLE;

	if (state == DTLS_IDLE || c->counted)
		return;
	if (!c->began_ns)
		c->began_ns = now_ns;
	if (state == DTLS_OPEN) {
		add(&n->handshake[DTLS_FAIL_NONE], 1);
		hist_add(&n->handshake_ns, now_ns - c->began_ns);
		c->counted = true;
	} else if (state == DTLS_FAILED) {
		add(&n->handshake[dtls_failure(c->dtls)], 1);
		c->counted = true;
	}
}

static void count_dtls(struct session *s)
{
	struct dtls_counts *c = &s->env->counts;

	for (int i = 0; i < DTLS_DROP_COUNT; i++)
		atomic_store_explicit(&s->env->total.drop[i], c->drop[i], memory_order_relaxed);
	atomic_store_explicit(&s->env->total.retransmitted, c->retransmitted, memory_order_relaxed);
}

/* Counts one failure of the exchange at most, and then its success, if another attempt brings it.
 * counted: what was counted before. NULL: no exchange. */
static void count_result(
	struct session_counts *n, const struct zrtp *z, uint64_t took_ns, uint8_t *counted)
{
	enum zrtp_state state = z ? zrtp_state(z) : ZRTP_IDLE;

	if (*counted == ZRTP_OPEN || *counted == state)
		return;
	if (state == ZRTP_OPEN) {
		add(&n->zrtp[ZRTP_FAIL_NONE], 1);
		hist_add(&n->zrtp_ns, took_ns);
		*counted = ZRTP_OPEN;
	} else if (state == ZRTP_FAILED) {
		add(&n->zrtp[zrtp_failure(z)], 1);
		*counted = ZRTP_FAILED;
	}
}

static void count_zrtp(struct session *s, uint64_t now_ns)
{
	struct zrtp_counts *c = &s->env->zrtp_counts;
	struct session_counts *n = &s->env->total;
	struct exchange *x = &s->exchange;

	count_result(n, x->zrtp, now_ns - x->began_ns, &x->counted);
	count_result(n, x->later, now_ns - x->again_began_ns, &x->later_counted);
	for (int i = 0; i < ZRTP_DROP_COUNT; i++)
		atomic_store_explicit(
			&s->env->total.zrtp_drop[i], c->drop[i], memory_order_relaxed);
	atomic_store_explicit(
		&s->env->total.zrtp_retransmitted, c->retransmitted, memory_order_relaxed);
}

static void count_state(struct session *s, uint8_t now)
{
	struct session_counts *n = &s->env->total;

	if (now == s->ice_counted)
		return;
	if (s->ice_counted)
		add(&n->ice_state[s->ice_counted - 1], (uint64_t)-1);
	if (now)
		add(&n->ice_state[now - 1], 1);
	add(&n->consent_lost, now == ICE_LOST + 1);
	add(&n->ice_failed, now == ICE_FAILED + 1);
	s->ice_counted = now;
}

static void count_ice(struct session *s)
{
	for (int i = 0; i < ICE_COUNT_N; i++) {
		uint32_t now = ice_counter(s->ice, (enum ice_count)i);

		if (now != s->ice_counts[i])
			add(&s->env->total.ice[i], now - s->ice_counts[i]);
		s->ice_counts[i] = now;
	}
	count_state(s, (uint8_t)(ice_state(s->ice) + 1));
}

void session_count(struct session *s, uint64_t now_ns)
{
	for (uint32_t k = 0; k < COMPONENTS; k++)
		count_handshake(s, &s->part[k], now_ns);
	count_dtls(s);
	count_zrtp(s, now_ns);
	if (s->ice)
		count_ice(s);
}

void session_count_absent(struct session *s)
{
	add(&s->env->total.zrtp_absent, 1);
}

void session_count_ice_end(struct session *s)
{
	if (s->ice)
		count_ice(s);
	count_state(s, 0);
	memset(s->ice_counts, 0, sizeof(s->ice_counts));
}
