/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slots of keys that are not in force, but may return: several answers to one offer choose
 * different keys, a terminal returns to a former key, a rejected m-line is offered again. The
 * worker stores the indexes of a key with its slot (media/ledger.c), so the slot is held while the
 * call may use the key again. Of our keys these are all that a terminal knows, of a
 * terminal's keys the last few. An older key of a terminal starts again without a record of
 * received packets. Pure. */
#include "call/past_keys.h"
#include "base/secmem.h"
#include "call/model.h"
#include "keying/keying.h"

static bool slot_is_held(uint32_t slot)
{
	return slot != 0 && slot != SLOT_UNSET;
}

void past_keys_push(struct leg *l, const struct srtp_master *m, uint32_t slot)
{
	if (!slot_is_held(slot))
		return;
	memmove(&l->rx_past[1], &l->rx_past[0], (ARRAY_LEN(l->rx_past) - 1) * sizeof(*l->rx_past));
	l->rx_past[0] = (struct past_key){.master = *m, .slot = slot};
}

void past_keys_remove(struct leg *l, uint32_t slot)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ARRAY_LEN(l->rx_past); i++)
		if (l->rx_past[i].slot != slot)
			l->rx_past[n++] = l->rx_past[i];
	secmem_wipe(&l->rx_past[n], (ARRAY_LEN(l->rx_past) - n) * sizeof(*l->rx_past));
}

void past_keys_push_all(struct leg *l)
{
	for (uint32_t i = 0; i < srtp_params_places(&l->rx); i++) {
		past_keys_push(l, &l->rx.key[i], l->rx_slot[i]);
		l->rx_slot[i] = 0;
	}
}

void past_keys_ours(struct leg *l, const struct srtp_master *m, uint32_t slot)
{
	if (slot_is_held(slot))
		keying_hold(&l->keying, m, slot);
}

static void add(uint32_t out[LEG_SLOTS_MAX], uint32_t *n, uint32_t slot)
{
	for (uint32_t i = 0; i < *n; i++)
		if (out[i] == slot)
			return;
	if (slot_is_held(slot))
		out[(*n)++] = slot;
}

uint32_t leg_slots(const struct leg *l, uint32_t out[LEG_SLOTS_MAX])
{
	const struct keying_key *k;
	uint32_t n = 0;

	for (uint32_t i = 0; i < SRTP_PARAMS_KEYS; i++)
		add(out, &n, l->rx_slot[i]);
	for (uint32_t i = 0; i < ARRAY_LEN(l->rx_past); i++)
		add(out, &n, l->rx_past[i].slot);
	add(out, &n, l->tx_slot);
	add(out, &n, l->rx_preauth_slot);
	add(out, &n, l->tx_preauth_slot);
	for (uint32_t i = 0; (k = keying_our_key(&l->keying, i)); i++)
		add(out, &n, k->slot);
	return n;
}
