/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which suites, tags and keys (RFC 4568 5.1, 7.1): every side gets keys of our own, no key is ever copied from one side to
 * the other. A key of ours stays as long as the other end stays with the suite and the tag it was given for, so that a
 * re-INVITE does not reset an index. Pure: random bytes come in. */
#include "call/negotiate.h"

#include "base/secmem.h"

#define NO_COMMON "No common crypto suite"

bool nego_same_key(const struct srtp_master *a, const struct srtp_master *b)
{
	return a->suite == b->suite && a->mki_len == b->mki_len &&
		secmem_equal(a->key, b->key, sizeof(a->key)) &&
		secmem_equal(a->salt, b->salt, sizeof(a->salt)) &&
		memcmp(a->mki, b->mki, sizeof(a->mki)) == 0;
}

static bool in_set(uint32_t set, enum srtp_suite_id id)
{
	return id != SUITE_PLAIN && set >> id & 1;
}

static uint32_t allowed(const struct nego_in *in)
{
	const struct ng_sdes *s = &in->r->sdes;

	return in->policy->suites & (s->only ? s->only : ~s->no);
}

static bool weak(const struct sdes *s)
{
	return s->unencrypted_srtp || s->unauthenticated_srtp;
}

/* A line we cannot use is skipped (RFC 4568 6.1): the terminal offered others. */
const char *keying_read(struct nego_end *e, const struct sdp_media *m)
{
	secmem_wipe(e->theirs, sizeof(e->theirs));
	e->theirs_n = 0;
	for (const struct sdp_line *l = sdp_attr(m->lines, STR("crypto"));
		l && e->theirs_n < NEGO_MAX_LINES; l = sdp_attr(l->next, STR("crypto"))) {
		if (sdes_parse(&e->theirs[e->theirs_n], l->arg) == SDES_OK)
			e->theirs_n++;
	}
	return NULL;
}

bool keying_usable(const struct nego_end *e, uint32_t suites)
{
	for (uint32_t i = 0; i < e->theirs_n; i++)
		if (in_set(suites, e->theirs[i].master.suite))
			return true;
	return false;
}

static void fresh(struct sdes *s, enum srtp_suite_id id, const uint8_t *random)
{
	const struct srtp_suite *suite = srtp_suite_get(id);

	*s = (struct sdes){.master.suite = id};
	memcpy(s->master.key, random, suite->key_len);
	memcpy(s->master.salt, random + SRTP_MAX_KEY_LEN, suite->salt_len);
}

/* --- Offers ---------------------------------------------------------------------------------------------------- */

struct suite_list {
	uint8_t id[SUITE_COUNT];
	uint32_t n;
	uint32_t set;
};

static void add(struct suite_list *l, uint32_t set, uint8_t id)
{
	if (!in_set(set, id) || in_set(l->set, id))
		return;
	l->id[l->n++] = id;
	l->set |= 1u << id;
}

/* The offerer's suites first, in its order, then ours; what the script asked to order goes before both. */
static void list_suites(struct suite_list *l, const struct nego_end *from, const struct nego_in *in)
{
	const struct ng_sdes *s = &in->r->sdes;
	uint32_t set = allowed(in), theirs = 0;

	for (uint32_t i = 0; i < from->theirs_n; i++)
		theirs |= 1u << from->theirs[i].master.suite;
	if (s->flags & NG_SDES_NONEW && theirs)
		set &= theirs;
	for (uint32_t i = 0; i < SUITE_COUNT && s->order[i] != SUITE_PLAIN; i++)
		add(l, set, s->order[i]);
	for (uint32_t i = 0; i < from->theirs_n; i++)
		add(l, set, from->theirs[i].master.suite);
	for (uint32_t i = 0; i < SUITE_COUNT && s->offerer_pref[i] != SUITE_PLAIN; i++)
		add(l, set, s->offerer_pref[i]);
	for (uint8_t id = SUITE_PLAIN + 1; id < SUITE_COUNT; id++)
		add(l, set, id);
}

static const struct sdes *find_suite(const struct sdes *s, uint32_t n, enum srtp_suite_id id)
{
	for (uint32_t i = 0; i < n; i++)
		if (s[i].master.suite == id)
			return &s[i];
	return NULL;
}

static uint32_t free_tag(const struct sdes *s, uint32_t n)
{
	uint32_t tag = 1;

	for (uint32_t i = 0; i < n; i++)
		if (s[i].tag == tag) {
			tag++;
			i = UINT32_MAX; /* from the start again */
		}
	return tag;
}

static void write_lines(
	struct nego_end *to, const struct suite_list *l, uint32_t flags, const uint8_t *random)
{
	struct sdes line[SUITE_COUNT] = {0};

	for (uint32_t i = 0; i < l->n; i++) {
		const struct sdes *old = find_suite(to->ours, to->ours_n, l->id[i]);

		if (old) {
			line[i] = *old;
		} else if (to->tx.master.suite == l->id[i]) { /* what we answered it with */
			line[i] = (struct sdes){.master = to->tx.master};
		} else {
			fresh(&line[i], l->id[i], random + (size_t)l->id[i] * NEGO_KEY_LEN);
		}
		line[i].unencrypted_srtp = flags & NG_SDES_UNENCRYPTED_SRTP;
		line[i].unencrypted_srtcp = flags & NG_SDES_UNENCRYPTED_SRTCP;
		line[i].unauthenticated_srtp = flags & NG_SDES_UNAUTHENTICATED_SRTP;
	}
	for (uint32_t i = 0; i < l->n; i++)
		if (line[i].tag == 0)
			line[i].tag = free_tag(line, l->n);
	memcpy(to->ours, line, sizeof(to->ours));
	to->ours_n = l->n;
	secmem_wipe(line, sizeof(line));
}

const char *keying_offer(struct nego_end *to, const struct nego_end *from, const struct nego_in *in,
	const uint8_t *random)
{
	bool secure = sdp_proto_is_secure(to->proto);
	bool off = in->r->sdes.flags & NG_SDES_OFF;
	struct suite_list list = {0};

	if (!secure && (off || !(in->r->osrtp & NG_OSRTP_OFFER))) {
		secmem_wipe(to->ours, sizeof(to->ours));
		to->ours_n = 0;
		return NULL;
	}
	if (off)
		return "SDES is off and there is no other way to agree on keys";
	list_suites(&list, from, in);
	if (list.n == 0 && secure)
		return NO_COMMON;
	write_lines(to, &list, in->r->sdes.flags, random);
	return NULL;
}

/* --- Answers --------------------------------------------------------------------------------------------------- */

static void set_plain(struct nego_end *e)
{
	secmem_wipe(&e->rx, sizeof(e->rx));
	secmem_wipe(&e->tx, sizeof(e->tx));
}

/* The answerer must have taken one of our lines: tag and suite agree, and it added no weakness of its own. */
static const char *take_answer(struct nego_end *b)
{
	for (uint32_t i = 0; i < b->theirs_n; i++)
		for (uint32_t k = 0; k < b->ours_n; k++) {
			const struct sdes *t = &b->theirs[i], *o = &b->ours[k];

			if (t->tag != o->tag || t->master.suite != o->master.suite ||
				(t->unencrypted_srtp && !o->unencrypted_srtp) ||
				(t->unencrypted_srtcp && !o->unencrypted_srtcp) ||
				(t->unauthenticated_srtp && !o->unauthenticated_srtp))
				continue;
			b->rx = *t;
			b->tx = *t; /* session parameters are those of the answer */
			b->tx.master = o->master;
			return NULL;
		}
	return NO_COMMON;
}

static const struct sdes *choose(const struct nego_end *a, uint32_t set, enum srtp_suite_id same)
{
	const struct sdes *first = NULL;

	for (int pass = 0; pass < 2;
		pass++) /* lines that weaken SRTP only if there are no others */
		for (uint32_t i = 0; i < a->theirs_n; i++) {
			const struct sdes *s = &a->theirs[i];

			if (!in_set(set, s->master.suite) || weak(s) != (pass == 1))
				continue;
			if (s->master.suite == same)
				return s;
			if (!first)
				first = s;
		}
	return first;
}

const char *keying_answer(struct nego_end *a, struct nego_end *b, const struct nego_in *in,
	const struct sdp_media *m, const uint8_t *random)
{
	const struct sdes *s;
	const char *err;
	bool keep;

	err = keying_read(b, m);
	if (!err && b->ours_n && (b->theirs_n || sdp_proto_is_secure(b->proto)))
		err = take_answer(b);
	else
		set_plain(b);
	if (err)
		return err;
	if (!sdp_proto_is_secure(a->proto) && !(a->osrtp_accept && a->theirs_n)) {
		set_plain(a);
		return NULL;
	}
	s = choose(a, allowed(in), b->rx.master.suite);
	if (!s)
		return sdp_proto_is_secure(a->proto) ? NO_COMMON : (set_plain(a), NULL);
	keep = a->tx.master.suite == s->master.suite && a->tx.tag == s->tag;
	if (!keep)
		fresh(&a->tx, s->master.suite, random);
	a->rx = *s;
	a->tx.tag = s->tag;
	a->tx.unencrypted_srtp = s->unencrypted_srtp;
	a->tx.unencrypted_srtcp = s->unencrypted_srtcp;
	a->tx.unauthenticated_srtp = s->unauthenticated_srtp;
	return NULL;
}
