/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts SRTP parameters into force. A key that stays keeps its slot, so its packet indexes continue;
 * apply.c takes slots for new keys. Pure. */
#include "call/in_force.h"
#include "call/past_keys.h"
#include "keying/keying.h"

static const struct srtp_params plain;

static bool has_slot(const uint32_t slot[SRTP_PARAMS_KEYS], uint32_t one)
{
	for (uint32_t i = 0; i < SRTP_PARAMS_KEYS; i++)
		if (slot[i] == one)
			return true;
	return false;
}

/* The slot of a former key, or SLOT_UNSET. */
static uint32_t past_slot(struct leg *leg, const struct srtp_master *k)
{
	for (uint32_t i = 0; i < RX_PAST; i++)
		if (leg->rx_past[i].slot && srtp_same_session(&leg->rx_past[i].master, k)) {
			uint32_t slot = leg->rx_past[i].slot;

			past_keys_remove(leg, slot);
			return slot;
		}
	return SLOT_UNSET;
}

/* The slot for the key of SRTP+ that follows from the new first key. */
static void set_preauth(
	uint32_t *slot, const struct srtp_params *old, const struct srtp_params *now)
{
	if (!now->preauth)
		*slot = 0;
	else if (now->preauth != old->preauth || !srtp_same_key(&now->key[0], &old->key[0]))
		*slot = SLOT_UNSET;
}

/* If one key stays, added and removed keys belong to the same crypto context, so indexes continue
 * (RFC 3711 3.3.1). */
void leg_set_rx(struct leg *leg, const struct srtp_params *p)
{
	uint32_t slot[SRTP_PARAMS_KEYS] = {0};
	enum key_life told[SRTP_PARAMS_KEYS] = {LIFE_LEFT};
	bool goes_on = false;

	p = p ? p : &plain;
	for (uint32_t i = 0; i < srtp_params_places(p); i++) {
		slot[i] = p->keys ? past_slot(leg, &p->key[i]) : 0;
		for (uint32_t j = 0; j < srtp_params_places(&leg->rx); j++) {
			goes_on |= srtp_same_key(&leg->rx.key[j], &p->key[i]);
			if (srtp_same_session(&leg->rx.key[j], &p->key[i])) {
				slot[i] = leg->rx_slot[j];
				told[i] = leg->rx_told[j];
			}
		}
	}
	for (uint32_t j = 0; j < srtp_params_places(&leg->rx); j++)
		if (!has_slot(slot, leg->rx_slot[j]))
			past_keys_push(leg, &leg->rx.key[j], leg->rx_slot[j]);
	leg->rx_new |= !goes_on;
	set_preauth(&leg->rx_preauth_slot, &leg->rx, p);
	memcpy(leg->rx_told, told, sizeof(told));
	leg->rx = *p;
	memcpy(leg->rx_slot, slot, sizeof(slot));
}

void leg_set_tx(struct leg *leg, const struct srtp_params *p)
{
	const struct keying_key *k;

	p = p ? p : &plain;
	if (!srtp_same_session(&leg->tx.key[0], &p->key[0])) {
		k = p->keys ? keying_ours(&leg->keying, &p->key[0]) : NULL;
		leg->tx_slot = !p->keys ? 0 : k && k->slot ? k->slot : SLOT_UNSET;
		leg->tx_told = LIFE_LEFT;
	}
	set_preauth(&leg->tx_preauth_slot, &leg->tx, p);
	leg->tx_new |= !srtp_same_key(&leg->tx.key[0], &p->key[0]);
	leg->tx = *p;
}

void side_share(struct side *s, uint32_t owner)
{
	const struct leg *o = s->leg[owner];

	for (uint32_t i = 0; i < s->legs; i++) {
		struct leg *l = s->leg[i];

		if (!l || l->via != owner + 1)
			continue;
		leg_set_rx(l, &o->rx);
		leg_set_tx(l, &o->tx);
		l->keyed = o->keyed;
		l->mux = o->mux;
		l->remote = o->remote;
		l->rtcp_remote = o->rtcp_remote;
		memcpy(l->ice.pair, o->ice.pair, sizeof(l->ice.pair));
	}
}

void side_unshare(struct side *s)
{
	static const struct srtp_params awaited = {.awaited = true};

	for (uint32_t i = 0; i < s->legs; i++) {
		struct leg *l = s->leg[i];

		if (!l || !l->via)
			continue;
		l->via = l->keyed = 0;
		keying_end(&l->keying);
		leg_set_rx(l, &awaited);
		leg_set_tx(l, &awaited);
		memset(l->ice.pair, 0, sizeof(l->ice.pair));
	}
}

void leg_set_plain(struct leg *leg)
{
	keying_end(&leg->keying);
	leg_set_rx(leg, NULL);
	leg_set_tx(leg, NULL);
}
