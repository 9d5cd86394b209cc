/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connectivity checks that we send, and what their responses mean (RFC 8445 7.2). Consent checks
 * (RFC 7675) are the same on the wire. */
#include "ice/agent_int.h"

#include "base/secmem.h"

/* RFC 8445 14.3: many checks at a time get more patience. */
static uint64_t rto(const struct ice_agent *a)
{
	uint64_t n = 0;

	for (uint8_t i = 0; i < a->pair_count; i++)
		n += a->pair[i].state == PAIR_WAITING || a->pair[i].state == PAIR_PROGRESS;
	return n * a->pace_ns > ICE_RTO_NS ? n * a->pace_ns : ICE_RTO_NS;
}

/* A full queue loses the packet; the retransmission follows. */
static void transmit(struct ice_agent *a, const struct pair *p)
{
	struct waiting_out o = {.kind = OUT_CHECK,
		.dst = a->remote[p->remote].addr,
		.local = p->local,
		.controlling = a->controlling,
		.prev = p->prev,
		.use_candidate = p->nominating};

	o.priority = ice_local_priority(a, p->local, ICE_PRFLX);
	memcpy(o.txid, p->txid, sizeof(o.txid));
	ice_push(a, &o);
}

void ice_check_start(struct ice_agent *a, struct pair *p)
{
	ice_draw(a, p->txid, sizeof(p->txid));
	p->open = true;
	p->triggered = false;
	p->tries = 1;
	p->due_ns = a->now_ns + rto(a);
	if (p->state != PAIR_SUCCEEDED)
		p->state = PAIR_PROGRESS;
	transmit(a, p);
}

/* The interval doubles after each try; the last one waits Rm times the RTO (RFC 8489 6.2.1). */
void ice_check_again(struct ice_agent *a, struct pair *p)
{
	if (p->tries == ICE_TRIES) {
		p->open = p->nominating = false;
		p->state = PAIR_FAILED;
		return;
	}
	p->tries++;
	p->due_ns =
		a->now_ns + rto(a) * (p->tries == ICE_TRIES ? ICE_LAST_WAIT : 1u << (p->tries - 1));
	transmit(a, p);
}

/* Checks under way carry the old role: they begin again. */
void ice_check_switch(struct ice_agent *a, bool controlling)
{
	if (a->controlling == controlling)
		return;
	a->controlling = controlling;
	a->changes++;
	ice_pairs_reprioritise(a);
	for (uint8_t i = 0; i < a->pair_count; i++) {
		struct pair *p = &a->pair[i];

		p->triggered = p->triggered || (p->open && p->state != PAIR_SUCCEEDED);
		p->open = p->nominating = p->wanted = false;
	}
}

static void succeeded(struct ice_agent *a, struct pair *p)
{
	bool nominated = a->controlling ? p->nominating : p->wanted;

	p->open = p->nominating = false;
	p->state = PAIR_SUCCEEDED;
	p->ok_ns = a->now_ns;
	if (!a->valid_ns[p->component - 1])
		a->valid_ns[p->component - 1] = a->now_ns;
	ice_pairs_unfreeze(a, p);
	ice_select_pair(a, p, nominated);
}

static void refused(struct ice_agent *a, struct pair *p, uint16_t error)
{
	p->open = p->nominating = false;
	if (error == STUN_ROLE_CONFLICT && !a->remote_lite) {
		ice_check_switch(a, !a->controlling);
		p->triggered = true;
		return;
	}
	p->state = PAIR_FAILED;
}

static bool from_pair(
	const struct ice_agent *a, const struct pair *p, uint8_t local, const struct endpoint *src)
{
	return p->local == local && endpoint_eq(&a->remote[p->remote].addr, src);
}

static bool take_check(struct ice_agent *a, uint8_t local, const struct endpoint *src,
	const struct stun_msg *m, const uint8_t *packet)
{
	for (uint8_t i = 0; i < a->pair_count; i++) {
		struct pair *p = &a->pair[i];

		if (!p->open || memcmp(p->txid, m->txid, sizeof(p->txid)) != 0)
			continue;
		if (!from_pair(a, p, local, src) || !stun_verify(m, packet, &a->cur.remote_key))
			return false;
		if (m->cls == STUN_SUCCESS && m->has_mapped)
			succeeded(a, p);
		else if (m->cls == STUN_ERROR)
			refused(a, p, m->error);
		else
			return false;
		return true;
	}
	return false;
}

/* Only a success response renews consent (RFC 7675 5.1). */
static bool take_consent(struct ice_agent *a, uint8_t local, const struct endpoint *src,
	const struct stun_msg *m, const uint8_t *packet)
{
	for (uint8_t c = 0; c < a->components; c++) {
		struct selected *s = &a->selected[c];

		if (!s->set || s->local != local || !endpoint_eq(&s->remote, src))
			continue;
		for (uint8_t i = 0; i < s->tx_count; i++) {
			if (memcmp(s->txid[i], m->txid, STUN_TXID_LEN) != 0)
				continue;
			if (m->cls != STUN_SUCCESS ||
				!stun_verify(m, packet,
					s->old ? &a->old->remote_key : &a->cur.remote_key))
				return false;
			s->ok_ns = a->now_ns;
			s->tx_count = s->tx_at = 0;
			return true;
		}
	}
	return false;
}

void ice_check_response(struct ice_agent *a, uint8_t local, const struct endpoint *src,
	const struct stun_msg *m, const uint8_t *packet)
{
	bool ok = (a->cur.has_remote && take_check(a, local, src, m, packet)) ||
		take_consent(a, local, src, m, packet);

	a->count[ok ? ICE_COUNT_RESPONSES : ICE_COUNT_STRAY]++;
}
