/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SDES: which a=crypto lines we write and accept (RFC 4568 5.1, 7). Our keys: sdes_keys.c. Pure. */
#include "base/secmem.h"
#include "keying/preauth_policy.h"
#include "keying/rows.h"
#include "keying/sdes_keys.h"
#include "keying/sdes_lines.h"

/* --- The terminal's SDP ----------------------------------------------------------------------- */

static uint32_t params_of_key(const struct sdes_key *k)
{
	return (k->unencrypted_srtp ? NG_SDES_UNENCRYPTED_SRTP : 0) |
		(k->unencrypted_srtcp ? NG_SDES_UNENCRYPTED_SRTCP : 0) |
		(k->key.master.no_rtp_auth ? NG_SDES_UNAUTHENTICATED_SRTP : 0);
}

/* Bit of the suite, and NG_SDES_UN*, that a leg speaks by now: what a script once allowed stays
 * good for re-INVITEs. */
static uint32_t suite_in_force(const struct keying_leg *l)
{
	return l->state && l->active && l->rx->keys ? 1u << srtp_params_suite(l->rx) : 0;
}

static uint32_t params_in_force(const struct keying_leg *l)
{
	if (!l->state || !l->active)
		return 0;
	return (l->rx->unencrypted_srtp ? NG_SDES_UNENCRYPTED_SRTP : 0) |
		(l->rx->unencrypted_srtcp ? NG_SDES_UNENCRYPTED_SRTCP : 0) |
		(l->rx->key[0].no_rtp_auth ? NG_SDES_UNAUTHENTICATED_SRTP : 0);
}

/* Names the refused line, and the reason. */
static void explain(struct keying_error *e, const struct sdes_refused *r, struct pool *p)
{
	if (r->line)
		e->detail = pool_printf(p, "crypto line %u: %s", (unsigned)r->line, r->why);
}

static bool read_offer(const struct keying_leg *l, const struct sdp_media *m, uint32_t suites,
	const struct keying_in *in, struct keying_error *why)
{
	const struct sdes_rules rules = {
		.suites = (in->policy->accept | suite_in_force(l)) & suites,
		.params = in->policy->params | params_in_force(l)};
	struct keying_sdes *s = &l->state->sdes;
	struct sdes_refused refused;

	s->lines = sdes_lines(s->line, &s->bag, m, &rules, in, &refused);
	/* Unknown schemes are ignored: RFC 4568 6.3.7. */
	for (uint32_t i = 0; i < s->lines; i++)
		s->line[i].preauth = keying_preauth_accepts(in)
			? keying_preauth_fits(s->line[i].preauth, &s->line[i].master,
				  s->line[i].unencrypted_srtp)
			: 0;
	if (s->lines)
		return true;
	if (!sdp_attr(m->lines, STR("crypto")) && m->dtls)
		*why = in->host->dtls ? *why
				      : (struct keying_error){NGE_DTLS, STR("no crypto line")};
	else
		explain(why, &refused, in->p);
	return false;
}

static bool could_accept(
	const struct keying_leg *l, const struct sdp_media *m, const struct keying_in *in)
{
	const struct sdes_rules rules = {.suites = in->policy->accept | suite_in_force(l),
		.params = in->policy->params | params_in_force(l)};
	struct sdes line[SDES_MAX_LINES];
	struct sdes_refused refused;
	struct sdes_bag bag = {0};
	uint32_t n = sdes_lines(line, &bag, m, &rules, in, &refused);

	secmem_wipe(line, sizeof(line));
	secmem_wipe(&bag, sizeof(bag));
	return n;
}

/* One of the media's keys was offered before. */
static bool is_same_offer(
	const struct keying_state *state, const struct sdp *sdp, const struct sdp_media *m)
{
	const struct keying_sdes *k = &state->sdes;
	bool found = k->lines == 0;

	(void)sdp;
	for (const struct sdp_line *line = sdp_attr(m->lines, STR("crypto")); line && !found;
		line = sdp_attr(line->next, STR("crypto"))) {
		struct sdes_bag bag = {0};
		struct sdes s = {0};

		if (sdes_parse(&s, &bag, line->arg) == SDES_OK)
			for (uint32_t i = 0; i < k->lines && !found; i++)
				found = srtp_same_key(&k->line[i].master, &s.master);
		secmem_wipe(&s, sizeof(s));
		secmem_wipe(&bag, sizeof(bag));
	}
	return found;
}

/* --- Answers of terminals --------------------------------------------------------------------- */

/* UNENCRYPTED and UNAUTHENTICATED are negotiated: an answer says exactly what the offer said (RFC
 * 4568 6.3). An answer without SRTP+ declines it. */
static struct sdes_key *fits(struct keying_sdes *s, const struct sdes *line)
{
	struct sdes_key *k = sdes_key_of(s, line->master.suite);

	return k && k->tag == line->tag && params_of_key(k) == sdes_params_of(line) &&
			(!line->preauth || line->preauth == k->preauth)
		? k
		: NULL;
}

static enum keying_result read_answer(struct keying_answer *a, const struct keying_in *in)
{
	struct keying_sdes *s = &a->answerer.state->sdes;
	struct sdes_rules rules = {.params = UINT32_MAX};
	enum keying_result result = KEYING_PASSES;
	struct sdes line[SDES_MAX_LINES];
	struct sdes_refused refused;
	struct sdes_bag bag = {0};
	uint32_t n;

	for (uint32_t i = 0; i < s->suites; i++)
		rules.suites |= 1u << s->suite[i];
	if (!s->suites)
		return KEYING_PASSES;
	n = sdes_lines(line, &bag, a->media, &rules, in, &refused);
	for (uint32_t i = 0; i < n && result == KEYING_PASSES; i++) {
		struct sdes_key *k = fits(s, &line[i]);

		if (!k)
			continue;
		result = KEYING_AGREES;
		a->answerer.state->in_force = KEYING_SDES;
		sdes_rx(&a->rx, &line[i], &bag);
		sdes_tx(&a->tx, k);
		a->tx.preauth = a->rx.preauth;
		sdes_in_force(s, &line[i], k);
	}
	secmem_wipe(line, sizeof(line));
	secmem_wipe(&bag, sizeof(bag));
	if (result == KEYING_PASSES && n)
		refused = (struct sdes_refused){
			.line = 1, .why = "tag, suite and parameters must be those of the offer"};
	if (result == KEYING_PASSES)
		explain(&a->error, &refused, in->p);
	return result;
}

/* --- Answers of ours -------------------------------------------------------------------------- */

/* Rank of a suite in the policy, lowest first. */
static uint32_t rank(const struct sdes_policy *policy, enum srtp_suite_id suite)
{
	uint32_t i = 0;

	while (i < SUITE_COUNT && policy->offer[i] != SUITE_PLAIN && policy->offer[i] != suite)
		i++;
	/* Suites that are not in the list rank last, in the table's order, which is by strength. */
	return i < SUITE_COUNT && policy->offer[i] == suite ? i : SUITE_COUNT + suite;
}

static const struct sdes *choose_from(const struct keying_leg *l, enum srtp_suite_id prefer,
	uint32_t allowed, const struct sdes_policy *policy)
{
	const struct keying_sdes *o = &l->state->sdes;
	const struct sdes *best = NULL;
	uint32_t best_rank = UINT32_MAX;

	for (uint32_t i = 0; i < o->lines; i++) {
		const struct sdes *s = &o->line[i];
		uint32_t r;

		if (!(allowed >> s->master.suite & 1))
			continue;
		/* A line in force stays in force while it is offered. */
		if (l->active && s->master.suite == srtp_params_suite(l->tx) && s->tag == o->tx_tag)
			return s;
		r = s->master.suite == prefer ? 0 : 1 + rank(policy, s->master.suite);
		if (r < best_rank) {
			best = s;
			best_rank = r;
		}
	}
	return best;
}

/* The line of the offer to answer: the one in force; else prefer, the suite that the other side
 * accepted; else the first in the policy's order, which is the strongest. Flags of the answer,
 * only- and no-, choose among the lines (as long as they leave any: flags meant for the other side
 * must not end the call). NULL if there is none. */
static const struct sdes *choose(
	const struct keying_leg *l, enum srtp_suite_id prefer, const struct keying_in *in)
{
	const struct ng_sdes *flags = &in->r->sdes;
	const struct sdes *s =
		choose_from(l, prefer, flags->only ? flags->only : ~flags->no, in->policy);

	return s ? s : choose_from(l, prefer, UINT32_MAX, in->policy);
}

/* The offerer gets one line: its own tag, our key. */
static enum keying_result write_answer(struct keying_answer *a, const struct keying_in *in)
{
	const struct sdes *line = choose(&a->offerer, a->prefer, in);
	struct keying_state *s = a->offerer.state;
	struct sdes_key *k;

	if (!line)
		return KEYING_PASSES;
	k = sdes_key_answer(&a->offerer, line, in);
	if (k && !keying_preauth_accepts(in))
		k->preauth = 0;
	if (!k || !sdes_key_write(a->lines, k, in)) {
		a->error = (struct keying_error){NGE_NOMEM, STR("keys")};
		return KEYING_REFUSES;
	}
	s->in_force = KEYING_SDES;
	sdes_rx(&a->rx, line, &s->sdes.bag);
	sdes_tx(&a->tx, k);
	a->rx.preauth = k->preauth;
	sdes_in_force(&s->sdes, line, k);
	return KEYING_AGREES;
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

static void wish_for(struct wish *w, const struct keying_leg *l, const struct keying_sdes *offerer,
	const struct keying_in *in)
{
	const struct ng_sdes *flags = &in->r->sdes;

	w->allowed =
		flags->only ? flags->only : (offered(in->policy) | suite_in_force(l)) & ~flags->no;
	if (l->active)
		add(w, srtp_params_suite(l->tx));
	for (uint32_t i = 0; i < offerer->lines; i++)
		add(w, offerer->line[i].master.suite);
	if (!(flags->flags & NG_SDES_NONEW) || !offerer->lines) {
		add_list(w, flags->offerer_pref);
		add_list(w, in->policy->offer);
		for (uint32_t s = SUITE_PLAIN + 1; s < SUITE_COUNT; s++)
			add(w, s); /* only- may name what the policy's list does not */
	}
	sort(w, flags->order);
}

/* The terminal wrote this suite under its old name, and may know no other. */
static bool uses_old_name(const struct keying_leg *l, enum srtp_suite_id suite)
{
	const struct keying_sdes *s = &l->state->sdes;

	for (uint32_t i = 0; i < s->lines; i++)
		if (s->line[i].master.suite == suite)
			return s->line[i].old_name;
	return srtp_params_suite(l->rx) == suite && s->rx_old_name;
}

/* SRTP+ in force stays, also where the policy only accepts it. */
static uint8_t preauth_offered(const struct keying_leg *to, const struct sdes_key *k,
	bool no_rtp_auth, const struct keying_in *in)
{
	struct srtp_master m = {.suite = k->key.master.suite, .no_rtp_auth = no_rtp_auth};
	uint8_t now = to->active && to->rx->keys ? to->rx->preauth : 0;

	return keying_preauth_fits(keying_preauth_offers(in, now), &m, k->unencrypted_srtp);
}

/* Suites of the offerer go first. */
static enum keying_result write_offer(struct keying_offer *o, const struct keying_in *in)
{
	const struct ng_sdes *flags = &in->r->sdes;
	struct keying_sdes *s = &o->to.state->sdes;
	struct wish w = {0};

	if (!o->wanted || flags->flags & NG_SDES_OFF)
		return KEYING_PASSES;
	wish_for(&w, &o->to, &o->from.state->sdes, in);
	for (uint32_t i = 0; i < w.n; i++) {
		uint32_t params = flags->flags;
		struct sdes_key *k;
		bool no_rtp_auth;

		if (suite_in_force(&o->to) >> w.suite[i] & 1)
			params |= params_in_force(&o->to);
		no_rtp_auth = params & NG_SDES_UNAUTHENTICATED_SRTP &&
			srtp_suite_get(w.suite[i])->auth != XC_AUTH_GCM;
		k = sdes_key_offer(&o->to, w.suite[i], no_rtp_auth, in);
		if (!k)
			break;
		k->unencrypted_srtp = params & NG_SDES_UNENCRYPTED_SRTP;
		k->unencrypted_srtcp = params & NG_SDES_UNENCRYPTED_SRTCP;
		k->old_name = uses_old_name(&o->to, w.suite[i]);
		k->preauth = preauth_offered(&o->to, k, no_rtp_auth, in);
		k->key.master.kdr = 0;
		k->key.master.no_rtp_auth = no_rtp_auth;
		s->suite[s->suites++] = w.suite[i];
		if (!sdes_key_write(o->lines, k, in)) {
			o->error = (struct keying_error){NGE_NOMEM, STR_NONE};
			return KEYING_REFUSES;
		}
	}
	return KEYING_ADDS;
}

/* --- State ------------------------------------------------------------------------------------ */

static bool was_offered(const struct keying_state *s)
{
	return s->sdes.lines;
}

static bool asks(const struct keying_state *s)
{
	return s->sdes.suites;
}

static void drop_offered(struct keying_state *s)
{
	s->sdes.lines = 0;
	secmem_wipe(s->sdes.line, sizeof(s->sdes.line));
	secmem_wipe(&s->sdes.bag, sizeof(s->sdes.bag));
}

static void drop_asked(struct keying_state *s)
{
	s->sdes.suites = 0;
	memset(s->sdes.suite, 0, sizeof(s->sdes.suite));
}

static void end(struct keying_state *s)
{
	s->sdes.tx_tag = 0;
	s->sdes.rx_old_name = false;
}

static bool is_of(const struct srtp_params *rx, uint32_t suites)
{
	return suites >> srtp_params_suite(rx) & 1;
}

static void describe(const struct keying_state *s, struct sbuf *b)
{
	for (uint32_t i = 0; i < s->sdes.suites; i++) {
		const struct srtp_suite *row = srtp_suite_get(s->sdes.suite[i]);

		sbuf_printf(b, "%s%s", i ? ", " : " with ", row->name);
	}
}

static bool master_is_sound(const struct srtp_master *m)
{
	return !m->no_rtp_auth || m->suite == SUITE_PLAIN ||
		srtp_suite_get(m->suite)->auth != XC_AUTH_GCM;
}

static bool is_sound(const struct keying_state *state)
{
	const struct keying_sdes *s = &state->sdes;
	bool sound = true;

	for (uint32_t i = 0; i < s->ours_n && sound; i++)
		sound = master_is_sound(&s->ours[i].key.master) &&
			s->ours[i].key.master.suite != SUITE_PLAIN;
	for (uint32_t i = 0; i < s->lines && sound; i++) {
		const struct sdes *l = &s->line[i];

		sound = master_is_sound(&l->master) &&
			(!l->more ||
				(l->master.mki_len && (uint32_t)l->more_at + l->more <= s->bag.n));
	}
	for (uint32_t i = 0; i < s->suites && sound; i++)
		sound = s->suite[i] < SUITE_COUNT;
	return sound;
}

/* --- Retired keys ----------------------------------------------------------------------------- */

static const struct keying_key *our_key(const struct keying_state *s, uint32_t n)
{
	return n < s->sdes.ours_n ? &s->sdes.ours[n].key : NULL;
}

static void hold(struct keying_state *s, const struct srtp_master *key, uint32_t slot)
{
	for (uint32_t i = 0; i < s->sdes.ours_n; i++)
		if (srtp_same_key(&s->sdes.ours[i].key.master, key))
			s->sdes.ours[i].key.slot = slot;
}

static void keep_ours(struct keying_state *state,
	bool (*keep)(const void *arg, const struct keying_key *k), const void *arg)
{
	struct keying_sdes *s = &state->sdes;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->ours_n; i++)
		if (keep(arg, &s->ours[i].key))
			s->ours[n++] = s->ours[i];
	secmem_wipe(&s->ours[n], (s->ours_n - n) * sizeof(*s->ours));
	s->ours_n = n;
}

static bool is_theirs(const struct keying_state *s, const struct srtp_master *key)
{
	for (uint32_t i = 0; i < s->sdes.lines; i++)
		if (srtp_shares_key(&s->sdes.line[i].master, key))
			return true;
	return false;
}

static const struct keying_key_ops keys = {
	.ours = our_key, .hold = hold, .keep = keep_ours, .is_theirs = is_theirs};

static const char *const *flags(const struct keying_state *s)
{
	static const char *const names[] = {"SDES", NULL};

	(void)s;
	return names;
}

const struct keying_ops keying_sdes = {.id = KEYING_SDES,
	.name = "SDES",
	.read_offer = read_offer,
	.could_accept = could_accept,
	.is_same_offer = is_same_offer,
	.write_offer = write_offer,
	.read_answer = read_answer,
	.write_answer = write_answer,
	.was_offered = was_offered,
	.asks = asks,
	.drop_offered = drop_offered,
	.drop_asked = drop_asked,
	.end = end,
	.is_of = is_of,
	.flags = flags,
	.describe = describe,
	.is_sound = is_sound,
	.keys = &keys};
