/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which a=crypto lines we write and accept (RFC 4568 5.1, 7). Pure. Our keys are always our own:
 * one is never copied from the other side. A key stays as long as suite and tag stay. One that was
 * in force and no longer is, is never used again, except by a terminal that answers a second time:
 * then its packet indexes continue (past_keys.c). */
#include "keying/crypto.h"
#include "base/secmem.h"
#include "call/call.h"
#include "call/past_keys.h"
#include "call/plan.h"
#include "keying/reflect.h"

/* --- What terminals say ----------------------------------------------------------------------- */

static uint32_t params_of(const struct sdes *s)
{
	return (s->unencrypted_srtp ? NG_SDES_UNENCRYPTED_SRTP : 0) |
		(s->unencrypted_srtcp ? NG_SDES_UNENCRYPTED_SRTCP : 0) |
		(s->master.no_rtp_auth ? NG_SDES_UNAUTHENTICATED_SRTP : 0);
}

uint32_t crypto_in_force(const struct leg *leg)
{
	return leg->active ? 1u << leg->rx.master.suite & ~(1u << SUITE_PLAIN) : 0;
}

uint32_t crypto_params_in_force(const struct leg *leg)
{
	return leg->active ? params_of(&leg->rx) : 0;
}

/* NULL, or why a well-formed line cannot be taken. */
static const char *refusal(const struct sdes *s, uint32_t suites, uint32_t params)
{
	uint32_t unwanted = params_of(s) & ~params;

	if (!(suites >> s->master.suite & 1))
		return "suite is not accepted";
	if (unwanted & NG_SDES_UNENCRYPTED_SRTP)
		return "UNENCRYPTED_SRTP is not accepted";
	if (unwanted & NG_SDES_UNENCRYPTED_SRTCP)
		return "UNENCRYPTED_SRTCP is not accepted";
	if (unwanted)
		return "UNAUTHENTICATED_SRTP is not accepted";
	return NULL;
}

uint32_t crypto_lines(struct sdes out[LEG_MAX_LINES], struct sdes_bag *bag,
	const struct sdp_media *m, const struct crypto_rules *rules, struct crypto_refused *refused)
{
	uint32_t n = 0, number = 0;

	*refused = (struct crypto_refused){0};
	secmem_wipe(bag, sizeof(*bag));
	for (const struct sdp_line *l = sdp_attr(m->lines, STR("crypto")); l && n < LEG_MAX_LINES;
		l = sdp_attr(l->next, STR("crypto"))) {
		struct sdes s = {0};
		uint32_t keys = bag->n;
		enum sdes_err err = sdes_parse(&s, bag, l->arg);
		const char *why =
			err ? sdes_err_text(err) : refusal(&s, rules->suites, rules->params);

		if (!why)
			why = reflect_refusal(rules->in, &s, &bag->master[s.more_at]);
		number++;
		if (!why)
			out[n++] = s;
		else if (!refused->line)
			*refused = (struct crypto_refused){.line = number, .why = why};
		if (why)
			bag->n = keys; /* the next line's keys go there */
		secmem_wipe(&s, sizeof(s));
	}
	return n;
}

/* UNENCRYPTED and UNAUTHENTICATED are negotiated: an answer says exactly what the offer said (RFC
 * 4568 6.3). */
bool crypto_accepted(struct sdes *out, struct sdes_bag *bag, struct our_key **ours, struct leg *leg,
	const struct sdp_media *m, const struct neg_in *in, struct crypto_refused *refused)
{
	struct crypto_rules rules = {.params = UINT32_MAX, .in = in};
	struct sdes line[LEG_MAX_LINES];
	bool found = false;
	uint32_t n;

	for (uint32_t k = 0; k < leg->asked.suites; k++)
		rules.suites |= 1u << leg->asked.suite[k];
	n = crypto_lines(line, bag, m, &rules, refused);
	for (uint32_t i = 0; i < n && !found; i++) {
		*ours = crypto_ours(leg, line[i].master.suite);
		found = *ours && (*ours)->s.tag == line[i].tag &&
			params_of(&(*ours)->s) == params_of(&line[i]);
		*out = line[i];
	}
	secmem_wipe(line, sizeof(line));
	if (!found && n)
		*refused = (struct crypto_refused){
			.line = 1, .why = "tag, suite and parameters must be those of the offer"};
	return found;
}

/* Where the policy ranks a suite: the lower the better. */
static uint32_t rank(const struct sdes_policy *policy, enum srtp_suite_id suite)
{
	uint32_t i = 0;

	while (i < SUITE_COUNT && policy->offer[i] != SUITE_PLAIN && policy->offer[i] != suite)
		i++;
	/* What is not in its list comes behind that, in the order of the table, which is by
	 * strength. */
	return i < SUITE_COUNT && policy->offer[i] == suite ? i : SUITE_COUNT + suite;
}

static const struct sdes *choose(const struct leg *leg, enum srtp_suite_id prefer, uint32_t allowed,
	const struct sdes_policy *policy)
{
	const struct leg_said *o = &leg->said;
	const struct sdes *best = NULL;
	uint32_t best_rank = UINT32_MAX;

	for (uint32_t i = 0; i < o->lines; i++) {
		const struct sdes *s = &o->line[i];
		uint32_t r;

		if (!(allowed >> s->master.suite & 1))
			continue;
		/* What is in force stays in force while it is offered. */
		if (leg->active && s->master.suite == leg->tx.master.suite && s->tag == leg->tx.tag)
			return s;
		r = s->master.suite == prefer ? 0 : 1 + rank(policy, s->master.suite);
		if (r < best_rank) {
			best = s;
			best_rank = r;
		}
	}
	return best;
}

const struct sdes *crypto_choose(
	const struct leg *leg, enum srtp_suite_id prefer, const struct neg_in *in)
{
	const struct ng_sdes *flags = &in->r->sdes;
	const struct sdes_policy *policy = &in->policy->sdes;
	const struct sdes *s = choose(leg, prefer, flags->only ? flags->only : ~flags->no, policy);

	return s ? s : choose(leg, prefer, UINT32_MAX, policy);
}

/* --- Our keys --------------------------------------------------------------------------------- */

struct our_key *crypto_ours(struct leg *leg, enum srtp_suite_id suite)
{
	for (uint32_t i = 0; i < leg->ours_n; i++)
		if (leg->ours[i].s.master.suite == suite)
			return &leg->ours[i];
	return NULL;
}

static bool in_force(const struct leg *leg, const struct our_key *k)
{
	return leg->tx.master.suite != SUITE_PLAIN &&
		crypto_same_key(&leg->tx.master, &k->s.master);
}

/* A key that protected packets keeps its session parameters: with others it would get another slot,
 * which does not know its indexes. */
static bool may_stay(const struct leg *leg, const struct our_key *k, uint8_t kdr, bool no_rtp_auth)
{
	return !k->used ||
		(in_force(leg, k) && k->s.master.kdr == kdr &&
			k->s.master.no_rtp_auth == no_rtp_auth);
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

	if (!k || k->s.tag != line->tag ||
		!may_stay(leg, k, line->master.kdr, line->master.no_rtp_auth))
		k = fresh(leg, line->master.suite, line->tag, in);
	if (!k)
		return NULL;
	forget_tag(leg, line->tag, k);
	k->s.unencrypted_srtp = line->unencrypted_srtp;
	k->s.unencrypted_srtcp = line->unencrypted_srtcp;
	k->s.old_name = line->old_name;
	k->s.master.no_rtp_auth = line->master.no_rtp_auth;
	k->s.master.kdr = line->master.kdr; /* ours is its sender's too */
	return k;
}

/* --- Offers of ours --------------------------------------------------------------------------- */

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

static uint32_t offered(const struct sdes_policy *policy)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < SUITE_COUNT && policy->offer[i] != SUITE_PLAIN; i++)
		mask |= 1u << policy->offer[i];
	return mask;
}

static void wish_for(struct wish *w, const struct leg *leg, const struct leg_said *offerer,
	const struct neg_in *in)
{
	const struct ng_sdes *flags = &in->r->sdes;

	w->allowed = flags->only ? flags->only
				 : (offered(&in->policy->sdes) | crypto_in_force(leg)) & ~flags->no;
	if (leg->active)
		add(w, leg->tx.master.suite);
	for (uint32_t i = 0; i < offerer->lines; i++)
		add(w, offerer->line[i].master.suite);
	if (!(flags->flags & NG_SDES_NONEW) || !offerer->lines) {
		add_list(w, flags->offerer_pref);
		add_list(w, in->policy->sdes.offer);
		for (uint32_t s = SUITE_PLAIN + 1; s < SUITE_COUNT; s++)
			add(w, s); /* only- may name what the policy's list does not */
	}
	sort(w, flags->order);
}

/* The terminal wrote this suite under its old name, and may know no other. */
static bool uses_old_name(const struct leg *leg, enum srtp_suite_id suite)
{
	for (uint32_t i = 0; i < leg->said.lines; i++)
		if (leg->said.line[i].master.suite == suite)
			return leg->said.line[i].old_name;
	return leg->rx.master.suite == suite && leg->rx.old_name;
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
		uint32_t params = flags->flags;
		bool no_rtp_auth;

		if (crypto_in_force(leg) >> w.suite[i] & 1)
			params |= crypto_params_in_force(leg);
		no_rtp_auth = params & NG_SDES_UNAUTHENTICATED_SRTP &&
			srtp_suite_get(w.suite[i])->auth != XC_AUTH_GCM;
		if (!k || !may_stay(leg, k, 0, no_rtp_auth))
			k = fresh(leg, w.suite[i], k ? k->s.tag : free_tag(leg), in);
		if (!k)
			return;
		if (k->s.tag == 0)
			k->s.tag = free_tag(leg);
		k->s.unencrypted_srtp = params & NG_SDES_UNENCRYPTED_SRTP;
		k->s.unencrypted_srtcp = params & NG_SDES_UNENCRYPTED_SRTCP;
		k->s.old_name = uses_old_name(leg, w.suite[i]);
		k->s.master.kdr = 0;
		k->s.master.no_rtp_auth = no_rtp_auth;
		a->suite[a->suites++] = w.suite[i];
	}
}

/* --- Into force ------------------------------------------------------------------------------- */

static const struct sdes plain;

/* Session keys that were derived for one serve the other. */
static bool same_session(const struct srtp_master *a, const struct srtp_master *b)
{
	return crypto_same_key(a, b) && a->lifetime == b->lifetime && a->kdr == b->kdr &&
		a->no_rtp_auth == b->no_rtp_auth;
}

static bool has_slot(const uint32_t slot[SDES_MAX_KEYS], uint32_t one)
{
	for (uint32_t i = 0; i < SDES_MAX_KEYS; i++)
		if (slot[i] == one)
			return true;
	return false;
}

/* The slot of a key that was in force before, or one that is to be taken. */
static uint32_t past_slot(struct leg *leg, const struct srtp_master *k)
{
	for (uint32_t i = 0; i < RX_PAST; i++)
		if (leg->rx_past[i].slot && same_session(&leg->rx_past[i].master, k)) {
			uint32_t slot = leg->rx_past[i].slot;

			past_keys_remove(leg, slot);
			return slot;
		}
	return SLOT_UNSET;
}

/* Keys that come and go beside one that stays are of the same crypto context: indexes go on (RFC
 * 3711 3.3.1). */
void crypto_set_rx(struct leg *leg, const struct sdes *s, const struct sdes_bag *bag)
{
	struct srtp_master more[SDES_MAX_KEYS - 1] = {0};
	uint32_t slot[SDES_MAX_KEYS] = {0};
	enum key_life told[SDES_MAX_KEYS] = {LIFE_LEFT};
	bool goes_on = false;

	s = s ? s : &plain;
	if (s->more)
		memcpy(more, &bag->master[s->more_at], s->more * sizeof(*more));
	for (uint32_t i = 0; i <= s->more; i++) {
		const struct srtp_master *k = i ? &more[i - 1] : &s->master;

		slot[i] = s->master.suite == SUITE_PLAIN ? 0 : past_slot(leg, k);
		for (uint32_t j = 0; j <= leg->rx.more; j++) {
			const struct srtp_master *old = j ? &leg->rx_more[j - 1] : &leg->rx.master;

			goes_on |= crypto_same_key(old, k);
			if (same_session(old, k)) {
				slot[i] = leg->rx_slot[j];
				told[i] = leg->rx_told[j];
			}
		}
	}
	for (uint32_t j = 0; j <= leg->rx.more; j++)
		if (!has_slot(slot, leg->rx_slot[j]))
			past_keys_push(
				leg, j ? &leg->rx_more[j - 1] : &leg->rx.master, leg->rx_slot[j]);
	leg->rx_new |= !goes_on;
	memcpy(leg->rx_told, told, sizeof(told));
	leg->rx = *s;
	memcpy(leg->rx_more, more, sizeof(more));
	memcpy(leg->rx_slot, slot, sizeof(slot));
	secmem_wipe(more, sizeof(more));
}

void crypto_set_tx(struct leg *leg, struct our_key *k)
{
	const struct sdes *s = k ? &k->s : &plain;

	if (!same_session(&leg->tx.master, &s->master)) {
		leg->tx_slot = s->master.suite == SUITE_PLAIN ? 0
			: k && k->slot                        ? k->slot
							      : SLOT_UNSET;
		leg->tx_told = LIFE_LEFT;
	}
	leg->tx_new |= !crypto_same_key(&leg->tx.master, &s->master);
	leg->tx = *s;
	if (k)
		k->used = true;
}
