/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which a=crypto lines we write and accept (RFC 4568 5.1, 7). Pure. Our keys are always our own: one is never copied from
 * the other side. A key stays as long as suite and tag stay; one that was in force and is no more is never used again,
 * except by a terminal that answers a second time, and then its packet indexes go on. */
#include "base/secmem.h"
#include "call/negotiate.h"

static bool same_master(const struct srtp_master *a, const struct srtp_master *b)
{
	const struct srtp_suite *s = srtp_suite_get(a->suite);

	if (a->suite != b->suite || a->mki_len != b->mki_len)
		return false;
	return secmem_equal(a->key, b->key, s->key_len) &&
		secmem_equal(a->salt, b->salt, s->salt_len) &&
		memcmp(a->mki, b->mki, a->mki_len) == 0;
}

/* --- What terminals say ----------------------------------------------------------------------------------------- */

uint32_t crypto_lines(
	struct sdes out[LEG_MAX_LINES], const struct sdp_media *m, uint32_t suites, bool *skipped)
{
	uint32_t n = 0;

	*skipped = false;
	for (const struct sdp_line *l = sdp_attr(m->lines, STR("crypto")); l && n < LEG_MAX_LINES;
		l = sdp_attr(l->next, STR("crypto"))) {
		struct sdes s;

		/* A rate of key derivation, or no authentication: nothing here can do that. */
		if (sdes_parse(&s, l->arg) != SDES_OK || s.kdr || s.unauthenticated_srtp ||
			!(suites >> s.master.suite & 1))
			*skipped = true;
		else
			out[n++] = s;
		secmem_wipe(&s, sizeof(s));
	}
	return n;
}

static const struct sdes *choose(const struct leg *leg, enum srtp_suite_id prefer, uint32_t allowed)
{
	const struct leg_said *o = &leg->said;
	const struct sdes *best = NULL;

	for (uint32_t i = 0; i < o->lines; i++) {
		const struct sdes *s = &o->line[i];

		if (!(allowed >> s->master.suite & 1))
			continue;
		/* What is in force stays in force while it is offered. */
		if (leg->active && s->master.suite == leg->tx.master.suite && s->tag == leg->tx.tag)
			return s;
		if (!best || (s->master.suite == prefer && best->master.suite != prefer))
			best = s;
	}
	return best;
}

const struct sdes *crypto_choose(
	const struct leg *leg, enum srtp_suite_id prefer, const struct ng_sdes *flags)
{
	const struct sdes *s = choose(leg, prefer, flags->only ? flags->only : ~flags->no);

	return s ? s : choose(leg, prefer, UINT32_MAX);
}

/* --- Our keys --------------------------------------------------------------------------------------------------- */

struct our_key *crypto_ours(struct leg *leg, enum srtp_suite_id suite)
{
	for (uint32_t i = 0; i < leg->ours_n; i++)
		if (leg->ours[i].s.master.suite == suite)
			return &leg->ours[i];
	return NULL;
}

static bool in_force(const struct leg *leg, const struct our_key *k)
{
	return leg->tx.master.suite != SUITE_PLAIN && same_master(&leg->tx.master, &k->s.master);
}

static bool may_stay(const struct leg *leg, const struct our_key *k)
{
	return !k->used || in_force(leg, k);
}

static bool draw(void *out, size_t len, struct neg_in *in)
{
	if (in->random_len < len)
		return false;
	memcpy(out, in->random, len);
	secmem_wipe(in->random, len);
	in->random += len;
	in->random_len -= len;
	return true;
}

/* A fresh key in the place of the one of this suite, or in a new place. */
static struct our_key *fresh(
	struct leg *leg, enum srtp_suite_id suite, uint32_t tag, struct neg_in *in)
{
	const struct srtp_suite *row = srtp_suite_get(suite);
	struct our_key *k = crypto_ours(leg, suite);

	if (!k && leg->ours_n == ARRAY_LEN(leg->ours))
		return NULL;
	if (!k)
		k = &leg->ours[leg->ours_n++];
	secmem_wipe(k, sizeof(*k));
	k->s.tag = tag;
	k->s.master.suite = suite;
	if (!draw(k->s.master.key, row->key_len, in) || !draw(k->s.master.salt, row->salt_len, in))
		return NULL;
	return k;
}

static uint32_t free_tag(const struct leg *leg)
{
	uint32_t tag = 1;

	for (uint32_t i = 0; i < leg->ours_n; i++)
		if (leg->ours[i].s.tag == tag) {
			tag++;
			i = UINT32_MAX; /* from the start */
		}
	return tag;
}

static void forget_tag(struct leg *leg, uint32_t tag, const struct our_key *but)
{
	for (uint32_t i = 0; i < leg->ours_n; i++)
		if (leg->ours[i].s.tag == tag && &leg->ours[i] != but)
			leg->ours[i].s.tag = 0; /* gets another one when it is offered */
}

struct our_key *crypto_answer(struct leg *leg, const struct sdes *line, struct neg_in *in)
{
	struct our_key *k = crypto_ours(leg, line->master.suite);

	if (!k || k->s.tag != line->tag || !may_stay(leg, k))
		k = fresh(leg, line->master.suite, line->tag, in);
	if (!k)
		return NULL;
	forget_tag(leg, line->tag, k);
	k->s.unencrypted_srtp = line->unencrypted_srtp;
	k->s.unencrypted_srtcp = line->unencrypted_srtcp;
	return k;
}

/* --- Offers of ours --------------------------------------------------------------------------------------------- */

struct wish { /* suites in the order in which they are to be written */
	uint8_t suite[SUITE_COUNT];
	uint32_t n, seen;
	uint32_t allowed;
};

static void add(struct wish *w, uint32_t suite)
{
	if (suite == SUITE_PLAIN || suite >= SUITE_COUNT || !(w->allowed >> suite & 1) ||
		w->seen >> suite & 1)
		return;
	w->seen |= 1u << suite;
	w->suite[w->n++] = (uint8_t)suite;
}

static void add_list(struct wish *w, const uint8_t list[SUITE_COUNT])
{
	for (uint32_t i = 0; i < SUITE_COUNT && list[i] != SUITE_PLAIN; i++)
		add(w, list[i]);
}

/* order:A;B; puts those of the list that it names first, in its order. */
static void sort(struct wish *w, const uint8_t order[SUITE_COUNT])
{
	struct wish sorted = {.allowed = w->seen};

	add_list(&sorted, order);
	for (uint32_t i = 0; i < w->n; i++)
		add(&sorted, w->suite[i]);
	memcpy(w->suite, sorted.suite, sizeof(w->suite));
}

static void wish_for(struct wish *w, const struct leg *leg, const struct leg_said *offerer,
	const struct neg_in *in)
{
	const struct ng_sdes *flags = &in->r->sdes;

	w->allowed = in->policy->suites & (flags->only ? flags->only : ~flags->no);
	if (leg->active)
		add(w, leg->tx.master.suite);
	for (uint32_t i = 0; i < offerer->lines; i++)
		add(w, offerer->line[i].master.suite);
	if (!(flags->flags & NG_SDES_NONEW) || !offerer->lines) {
		add_list(w, flags->offerer_pref);
		for (uint32_t s = SUITE_PLAIN + 1; s < SUITE_COUNT; s++)
			add(w, s);
	}
	sort(w, flags->order);
}

void crypto_offer(struct leg *leg, const struct leg_said *offerer, struct neg_in *in)
{
	const struct ng_sdes *flags = &in->r->sdes;
	struct leg_asked *a = &leg->asked;
	struct wish w = {0};

	wish_for(&w, leg, offerer, in);
	a->suites = 0;
	for (uint32_t i = 0; i < w.n; i++) {
		struct our_key *k = crypto_ours(leg, w.suite[i]);

		if (!k || !may_stay(leg, k))
			k = fresh(leg, w.suite[i], k ? k->s.tag : free_tag(leg), in);
		if (!k)
			return;
		if (k->s.tag == 0)
			k->s.tag = free_tag(leg);
		k->s.unencrypted_srtp = flags->flags & NG_SDES_UNENCRYPTED_SRTP;
		k->s.unencrypted_srtcp = flags->flags & NG_SDES_UNENCRYPTED_SRTCP;
		a->suite[a->suites++] = w.suite[i];
	}
}

/* --- Into force ------------------------------------------------------------------------------------------------- */

void crypto_set_rx(struct leg *leg, const struct sdes *s)
{
	static const struct sdes plain;

	s = s ? s : &plain;
	if (!same_master(&leg->rx.master, &s->master)) {
		leg->rx_slot = s->master.suite == SUITE_PLAIN ? 0 : SLOT_UNSET;
		leg->rx_new = true;
	}
	leg->rx = *s;
}

void crypto_set_tx(struct leg *leg, struct our_key *k)
{
	static const struct sdes plain;
	const struct sdes *s = k ? &k->s : &plain;

	if (!same_master(&leg->tx.master, &s->master)) {
		leg->tx_slot = s->master.suite == SUITE_PLAIN ? 0 : SLOT_UNSET;
		leg->tx_new = !k || !k->used;
	}
	leg->tx = *s;
	if (k)
		k->used = true;
}
