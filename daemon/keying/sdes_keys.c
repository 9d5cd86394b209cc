/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our keys are random, and never copied from the other side. A key stays as long as suite and tag
 * stay. A key that went out of force is never used again, unless the terminal answers a second
 * time: then its packet indexes continue (call/past_keys.c). Pure. RFC 4568 5.1, 6.1. */
#include "keying/sdes_keys.h"
#include "base/secmem.h"

struct sdes_key *sdes_key_of(struct keying_sdes *s, enum srtp_suite_id suite)
{
	for (uint32_t i = 0; i < s->ours_n; i++)
		if (s->ours[i].key.master.suite == suite)
			return &s->ours[i];
	return NULL;
}

static bool in_force(const struct keying_leg *l, const struct sdes_key *k)
{
	return l->tx->keys && srtp_same_key(&l->tx->key[0], &k->key.master);
}

/* A key that protected packets keeps its session parameters: with others it would get another slot,
 * which does not know its indexes. */
static bool may_stay(
	const struct keying_leg *l, const struct sdes_key *k, uint8_t kdr, bool no_rtp_auth)
{
	return !k->key.used ||
		(in_force(l, k) && k->key.master.kdr == kdr &&
			k->key.master.no_rtp_auth == no_rtp_auth);
}

/* A fresh key in the place of the one of this suite, or in a new place. */
static struct sdes_key *fresh(
	struct keying_sdes *s, enum srtp_suite_id suite, uint32_t tag, const struct keying_in *in)
{
	const struct srtp_suite *row = srtp_suite_get(suite);
	struct sdes_key *k = sdes_key_of(s, suite);

	if (!k && s->ours_n == ARRAY_LEN(s->ours))
		return NULL;
	if (!k)
		k = &s->ours[s->ours_n++];
	secmem_wipe(k, sizeof(*k));
	k->tag = tag;
	k->key.master.suite = suite;
	if (!keying_draw(in->random, k->key.master.key, row->key_len) ||
		!keying_draw(in->random, k->key.master.salt, row->salt_len))
		return NULL;
	return k;
}

static uint32_t free_tag(const struct keying_sdes *s)
{
	uint32_t tag = 1;

	for (uint32_t i = 0; i < s->ours_n; i++)
		if (s->ours[i].tag == tag) {
			tag++;
			i = UINT32_MAX; /* from the start */
		}
	return tag;
}

static void forget_tag(struct keying_sdes *s, uint32_t tag, const struct sdes_key *but)
{
	for (uint32_t i = 0; i < s->ours_n; i++)
		if (s->ours[i].tag == tag && &s->ours[i] != but)
			s->ours[i].tag = 0; /* gets another one when it is offered */
}

struct sdes_key *sdes_key_answer(
	const struct keying_leg *l, const struct sdes *line, const struct keying_in *in)
{
	struct keying_sdes *s = &l->state->sdes;
	struct sdes_key *k = sdes_key_of(s, line->master.suite);

	if (!k || k->tag != line->tag ||
		!may_stay(l, k, line->master.kdr, line->master.no_rtp_auth))
		k = fresh(s, line->master.suite, line->tag, in);
	if (!k)
		return NULL;
	forget_tag(s, line->tag, k);
	k->unencrypted_srtp = line->unencrypted_srtp;
	k->unencrypted_srtcp = line->unencrypted_srtcp;
	k->old_name = line->old_name;
	k->preauth = line->preauth;
	k->key.master.no_rtp_auth = line->master.no_rtp_auth;
	k->key.master.kdr = line->master.kdr; /* ours is its sender's too */
	return k;
}

struct sdes_key *sdes_key_offer(const struct keying_leg *l, enum srtp_suite_id suite,
	bool no_rtp_auth, const struct keying_in *in)
{
	struct keying_sdes *s = &l->state->sdes;
	struct sdes_key *k = sdes_key_of(s, suite);

	if (!k || !may_stay(l, k, 0, no_rtp_auth))
		k = fresh(s, suite, k ? k->tag : free_tag(s), in);
	if (k && k->tag == 0)
		k->tag = free_tag(s);
	return k;
}

bool sdes_key_write(struct keying_lines *to, const struct sdes_key *k, const struct keying_in *in)
{
	struct sdes line = {.tag = k->tag,
		.master = k->key.master,
		.unencrypted_srtp = k->unencrypted_srtp,
		.unencrypted_srtcp = k->unencrypted_srtcp,
		.old_name = k->old_name,
		.preauth = k->preauth};
	struct str text = STR_NONE;
	struct sbuf b;

	sbuf_init(&b, 0);
	sbuf_str(&b, STR("crypto:"));
	/* Unpadded base64 breaks phones. */
	sdes_write(&b, &line, NULL, true, in->r->sdes.flags & NG_SDES_LIFETIME);
	secmem_wipe(&line, sizeof(line));
	if (!b.err && to->n < KEYING_LINES)
		text = pool_strdup(in->p, sbuf_view(&b));
	sbuf_fini(&b);
	if (text.s)
		to->line[to->n++] = text;
	return text.s;
}
