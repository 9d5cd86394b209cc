/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slots of keys that are not in force, but may return: several answers to one offer choose
 * different keys, a terminal returns to a former key, a rejected m-line is offered again. The
 * worker stores the indexes of a key with its slot (media/ledger.c), so the slot is held while the
 * call may use the key again. Of our keys these are all that a terminal knows (leg.ours), of a
 * terminal's keys the last few. An older key of a terminal starts again without a record of
 * received packets. Pure. */
#include "call/past_keys.h"
#include "base/secmem.h"
#include "call/model.h"

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
	for (uint32_t i = 0; i <= l->rx.more && i < SDES_MAX_KEYS; i++) {
		past_keys_push(l, i ? &l->rx_more[i - 1] : &l->rx.master, l->rx_slot[i]);
		l->rx_slot[i] = 0;
	}
}

void past_keys_ours(struct leg *l, const struct srtp_master *m, uint32_t slot)
{
	for (uint32_t i = 0; i < l->ours_n; i++)
		if (slot_is_held(slot) && crypto_same_key(&l->ours[i].s.master, m))
			l->ours[i].slot = slot;
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
	uint32_t n = 0;

	for (uint32_t i = 0; i < SDES_MAX_KEYS; i++)
		add(out, &n, l->rx_slot[i]);
	for (uint32_t i = 0; i < ARRAY_LEN(l->rx_past); i++)
		add(out, &n, l->rx_past[i].slot);
	add(out, &n, l->tx_slot);
	for (uint32_t i = 0; i < l->ours_n; i++)
		add(out, &n, l->ours[i].slot);
	return n;
}

bool crypto_same_key(const struct srtp_master *a, const struct srtp_master *b)
{
	const struct srtp_suite *s = srtp_suite_get(a->suite);

	if (a->suite != b->suite || a->mki_len != b->mki_len)
		return false;
	return secmem_equal(a->key, b->key, s->key_len) &&
		secmem_equal(a->salt, b->salt, s->salt_len) &&
		memcmp(a->mki, b->mki, srtp_mki_kept(a->mki_len)) == 0;
}
