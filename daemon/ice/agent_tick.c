/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Timers of an agent: retransmissions, pacing, nomination, consent and giving up. ice_deadline()
 * mirrors ice_tick(). */
#include "ice/agent_int.h"

static void retransmit(struct ice_agent *a)
{
	for (uint8_t i = 0; i < a->pair_count; i++)
		if (a->pair[i].open && a->pair[i].due_ns <= a->now_ns)
			ice_check_again(a, &a->pair[i]);
}

/* One check per Ta (RFC 8445 6.1.4.2). A pair under way is triggered by repeating its request: the
 * response to either copy counts. */
static void pace(struct ice_agent *a)
{
	int i;

	if (a->now_ns < a->pace_next_ns || !a->cur.has_remote || a->lite)
		return;
	i = ice_pair_next(a);
	if (i < 0)
		return;
	if (a->pair[i].open && a->pair[i].state == PAIR_PROGRESS && a->pair[i].tries < ICE_TRIES) {
		a->pair[i].triggered = false;
		ice_check_again(a, &a->pair[i]);
	} else {
		ice_check_start(a, &a->pair[i]);
	}
	a->pace_next_ns = a->now_ns + a->pace_ns;
}

/* A nomination does not wait for Ta: pacing spares NATs new bindings (RFC 8445 B.1), and this pair
 * has one. One per component. */
static void nominate(struct ice_agent *a)
{
	ice_nominate(a);
	for (uint8_t i = 0; i < a->pair_count; i++)
		if (a->pair[i].nominating && a->pair[i].triggered && !a->pair[i].open)
			ice_check_start(a, &a->pair[i]);
}

/* --- Consent and keepalives ------------------------------------------------------------------- */

static void consent_send(struct ice_agent *a, struct selected *s)
{
	struct waiting_out o = {.kind = a->lite ? OUT_INDICATION : OUT_CHECK,
		.dst = s->remote,
		.local = s->local,
		.old = s->old,
		.prev = s->prev,
		.controlling = a->controlling};

	ice_draw(a, o.txid, sizeof(o.txid));
	o.priority = ice_local_priority(a, s->local, ICE_PRFLX);
	s->next_ns = a->lite ? a->now_ns + ICE_KEEPALIVE_NS : ice_draw_around(a, ICE_CONSENT_NS);
	if (!ice_push(a, &o) || a->lite)
		return;
	memcpy(s->txid[s->tx_at], o.txid, STUN_TXID_LEN);
	s->tx_at = (uint8_t)((s->tx_at + 1) % ICE_CONSENTS);
	if (s->tx_count < ICE_CONSENTS)
		s->tx_count++;
}

/* The peer did not answer for 30 s: another valid pair with fresher consent takes over. The pair
 * stays nominated, in case a later check of the peer revives it. */
static void consent_expired(struct ice_agent *a, uint8_t component)
{
	struct selected *s = &a->selected[component - 1], none = {.set = false};
	struct pair *best = NULL;

	for (uint8_t i = 0; i < a->pair_count; i++) {
		struct pair *p = &a->pair[i];

		if (p->component != component || p->state != PAIR_SUCCEEDED)
			continue;
		if (p->ok_ns + ICE_EXPIRY_NS <= a->now_ns) {
			p->state = PAIR_FAILED;
			p->open = p->nominating = p->triggered = false;
		} else if (!best || p->priority > best->priority) {
			best = p;
		}
	}
	for (uint8_t i = 0; i < a->pair_count; i++) { /* the expired pair itself */
		struct pair *p = &a->pair[i];

		if (!s->old && p != best && p->local == s->local &&
			endpoint_eq(&a->remote[p->remote].addr, &s->remote))
			p->state = PAIR_FAILED;
	}
	ice_select(a, component, &none);
	a->valid_ns[component - 1] = best ? a->now_ns : 0;
	if (best)
		ice_select_pair(a, best, !a->controlling && best->wanted);
	a->lost = a->lost || !best;
}

/* The selected pair is silent. Checks all other pairs of its component, including those paused
 * since nomination. A pair that succeeds takes over when consent expires. */
static void seek(struct ice_agent *a, struct selected *s, uint8_t component)
{
	if (a->lite || s->old || a->now_ns < s->seek_ns || a->now_ns - s->ok_ns < ICE_SILENT_NS)
		return;
	s->seek_ns = a->now_ns + ICE_SEEK_NS;
	for (uint8_t i = 0; i < a->pair_count; i++) {
		struct pair *p = &a->pair[i];

		if (p->component != component || p->open ||
			(p->local == s->local &&
				endpoint_eq(&a->remote[p->remote].addr, &s->remote)))
			continue;
		p->triggered = true;
		if (p->state == PAIR_FAILED)
			p->state = PAIR_WAITING;
	}
}

static void consent(struct ice_agent *a)
{
	for (uint8_t c = 1; c <= a->components; c++) {
		struct selected *s = &a->selected[c - 1];

		if (!s->set)
			continue;
		seek(a, s, c);
		if (ice_may_expire(a, s) && s->ok_ns + ICE_EXPIRY_NS <= a->now_ns)
			consent_expired(a, c);
		else if (s->next_ns <= a->now_ns)
			consent_send(a, s);
	}
}

/* --- Giving up (RFC 8863) --------------------------------------------------------------------- */

static bool waits_for_pairs(const struct ice_agent *a)
{
	for (uint8_t c = 0; c < a->components; c++)
		if (a->cur.has_remote && !a->failed && (!a->selected[c].set || a->selected[c].old))
			return true;
	return false;
}

static void give_up(struct ice_agent *a)
{
	if (!waits_for_pairs(a) || a->now_ns < a->start_ns + ICE_PATIENCE_NS)
		return;
	for (uint8_t i = 0; i < a->pair_count && !a->lite; i++)
		if (a->pair[i].state < PAIR_SUCCEEDED)
			return;
	a->failed = true;
}

void ice_tick(struct ice_agent *a, uint64_t now_ns)
{
	ice_advance(a, now_ns);
	retransmit(a);
	nominate(a);
	pace(a);
	consent(a);
	give_up(a);
	ice_update(a);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t ice_deadline(const struct ice_agent *a)
{
	uint64_t next = ICE_NEVER;

	for (uint8_t i = 0; i < a->pair_count; i++)
		if (a->pair[i].open)
			next = earlier(next, a->pair[i].due_ns);
	if (a->cur.has_remote && !a->lite && ice_pair_next(a) >= 0)
		next = earlier(next, a->pace_next_ns);
	if (a->cur.has_remote && !a->lite && a->now_ns < a->yield_ns)
		next = earlier(next, a->yield_ns);
	next = earlier(next, ice_nominate_ns(a));
	for (uint8_t c = 0; c < a->components; c++) {
		const struct selected *s = &a->selected[c];

		if (!s->set)
			continue;
		next = earlier(next, s->next_ns);
		if (ice_may_expire(a, s))
			next = earlier(next, s->ok_ns + ICE_EXPIRY_NS);
	}
	/* Later than that, the pairs under way have deadlines of their own. */
	if (waits_for_pairs(a) && (a->now_ns < a->start_ns + ICE_PATIENCE_NS || next == ICE_NEVER))
		next = earlier(next, a->start_ns + ICE_PATIENCE_NS);
	return next;
}
