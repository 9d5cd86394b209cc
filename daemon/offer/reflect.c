/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys that a terminal must not send under. If a terminal used a key of the relay, the relay's own
 * packets would be authentic when an attacker reflects them. And two senders under one key may
 * repeat a keystream (RFC 3711 9.1; by RFC 4568 6.1 a key belongs to one sender). The same holds
 * for the key of the other terminal, unless media pass through under the terminals' keys. The key
 * of another media or suite of the same terminal is allowed: phones do that, and only they send
 * under it. In MIKEY a terminal also chooses keys for us, and the same rules hold for these. Pure;
 * keys are compared in constant time. */
#include "offer/reflect.h"
#include "base/secmem.h"
#include "call/plan.h"

static bool is_zero(const struct srtp_master *k)
{
	static const struct srtp_master zero;

	return secmem_equal(k->key, zero.key, srtp_suite_get(k->suite)->key_len);
}

static bool is_ours(const struct leg *l, const struct srtp_master *k)
{
	const struct keying_key *ours;

	for (uint32_t i = 0; (ours = keying_our_key(&l->keying, i)); i++)
		if (srtp_shares_key(&ours->master, k))
			return true;
	return srtp_shares_key(&l->tx.key[0], k);
}

static bool is_theirs(const struct leg *l, const struct srtp_master *k)
{
	if (l->rx.pass || l->tx.pass || keying_asks_end_to_end(&l->keying))
		return false;
	for (uint32_t i = 0; i < l->rx.keys; i++)
		if (srtp_shares_key(&l->rx.key[i], k))
			return true;
	return keying_is_theirs(&l->keying, k);
}

const char *reflect_refusal(const void *arg, const struct srtp_master *k, bool end_to_end)
{
	const struct neg_in *in = arg;
	const struct call *c = in->call;

	if (is_zero(k))
		return "key is all zeroes";
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++) {
			const struct leg *l = c->side[s]->leg[i];

			if (l && is_ours(l, k))
				return "key is one of ours";
			if (l && s == in->other && !end_to_end && is_theirs(l, k))
				return "key is the other terminal's";
		}
	return NULL;
}

const char *reflect_tx_refusal(
	const void *arg, const struct srtp_master *k, const struct keying_state *leg)
{
	const struct neg_in *in = arg;
	const struct call *c = in->call;

	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++) {
			const struct leg *l = c->side[s]->leg[i];

			if (l && &l->keying != leg && is_ours(l, k))
				return "key is one of ours for another m-line";
			if (l && is_theirs(l, k))
				return "key is one of a terminal";
		}
	return NULL;
}
