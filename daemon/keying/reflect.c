/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys that a terminal must not send under. If a terminal used a key of the relay, the relay's own
 * packets would be authentic when an attacker reflects them. And two senders under one key may
 * repeat a keystream (RFC 3711 9.1; by RFC 4568 6.1 a key belongs to one sender). The same holds
 * for the key of the other terminal, unless media pass through under the terminals' keys. The key
 * of another media or suite of the same terminal is allowed: phones do that, and only they send
 * under it. Pure; keys are compared in constant time. */
#include "keying/reflect.h"
#include "base/secmem.h"
#include "call/plan.h"

/* Compares master keys only, without salt and suite. Of keys of different length the common part is
 * compared. */
static bool same_bytes(const struct srtp_master *a, const struct srtp_master *b)
{
	uint32_t len =
		min_u32(srtp_suite_get(a->suite)->key_len, srtp_suite_get(b->suite)->key_len);

	return len && secmem_equal(a->key, b->key, len);
}

static bool is_zero(const struct srtp_master *k)
{
	static const struct srtp_master zero;

	return secmem_equal(k->key, zero.key, srtp_suite_get(k->suite)->key_len);
}

static bool is_ours(const struct leg *l, const struct srtp_master *k)
{
	for (uint32_t i = 0; i < l->ours_n; i++)
		if (same_bytes(&l->ours[i].s.master, k))
			return true;
	return same_bytes(&l->tx.master, k);
}

static bool is_theirs(const struct leg *l, const struct srtp_master *k)
{
	if (l->pass_rx || l->pass_tx || l->asked.pass)
		return false;
	if (same_bytes(&l->rx.master, k))
		return true;
	for (uint32_t i = 0; i < l->rx.more; i++)
		if (same_bytes(&l->rx_more[i], k))
			return true;
	for (uint32_t i = 0; i < l->said.lines; i++)
		if (same_bytes(&l->said.line[i].master, k))
			return true;
	return false;
}

static const char *key_refusal(const struct neg_in *in, const struct srtp_master *k)
{
	const struct call *c = in->call;

	if (is_zero(k))
		return "key is all zeroes";
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++) {
			const struct leg *l = c->side[s]->leg[i];

			if (l && is_ours(l, k))
				return "key is one of ours";
			if (l && s == in->other && is_theirs(l, k))
				return "key is the other terminal's";
		}
	return NULL;
}

const char *reflect_refusal(
	const struct neg_in *in, const struct sdes *line, const struct srtp_master *more)
{
	const char *why = key_refusal(in, &line->master);

	for (uint32_t i = 0; i < line->more && !why; i++)
		why = key_refusal(in, &more[i]);
	return why;
}
