/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP that is passed through (ng's passthrough): each side's crypto lines reach the other as they
 * are, and media leave as they came. Only lines that we could take ourselves are handed on: so the
 * keys are known, and recordings, listeners and a later re-encryption have what they need. Where it
 * cannot be done media are re-encrypted and the reply says why. SDES reads the lines of an offer.
 * Pure. RFC 4568, RFC 3711 3.3.1. */
#include "base/secmem.h"
#include "keying/rows.h"
#include "keying/sdes_keys.h"
#include "keying/sdes_lines.h"

static struct str refuse(const struct keying_in *in, const char *why)
{
	return pool_printf(in->p, "is re-encrypted, not passed through: %s", why);
}

/* The receiver of a key that it did not have takes the first packet's ROC for zero. */
static bool is_in_mid_stream(const struct keying_leg *l, const struct sdes *line)
{
	return l->in_mid_stream && srtp_same_key(&l->rx->key[0], &line->master);
}

/* The line as we took it from the offer, by tag and suite; NULL: we did not. */
static const struct sdes *taken(const struct sdp_line *l, const struct keying_sdes *offered)
{
	const struct sdes *found = NULL;
	struct sdes_bag bag = {0};
	struct sdes s = {0};

	if (sdes_parse(&s, &bag, l->arg) == SDES_OK)
		for (uint32_t i = 0; i < offered->lines && !found; i++)
			if (offered->line[i].tag == s.tag &&
				offered->line[i].master.suite == s.master.suite)
				found = &offered->line[i];
	secmem_wipe(&s, sizeof(s));
	secmem_wipe(&bag, sizeof(bag));
	return found;
}

/* Hands a line on, without SRTP+: its sender offers that to us, not to the other terminal. */
static bool add_line(struct keying_lines *to, const struct sdp_line *l, const struct keying_in *in)
{
	const struct str plus = STR(SDES_PREAUTH "=");
	struct str text = STR_NONE, rest = l->arg, word;
	struct sbuf b;

	sbuf_init(&b, 0);
	sbuf_str(&b, STR("crypto"));
	for (char sep = ':'; (word = str_word(&rest)).len; sep = ' ') {
		if (word.len >= plus.len && str_eq_nocase((struct str){word.s, plus.len}, plus))
			continue;
		sbuf_put(&b, &sep, 1);
		sbuf_str(&b, word);
	}
	if (!b.err)
		text = pool_strdup(in->p, sbuf_view(&b));
	sbuf_fini(&b);
	if (!text.s || to->n == KEYING_LINES)
		return false;
	to->line[to->n++] = text;
	return true;
}

/* Lines to be handed on; NULL, or why none can be. */
static const char *hand_on(struct keying_offer *o, const struct keying_in *in)
{
	const struct ng_sdes *flags = &in->r->sdes;
	uint32_t allowed = flags->only ? flags->only : ~flags->no;
	bool went_on = o->paired && o->from.rx->pass && o->to.active && o->to.tx->pass;

	for (const struct sdp_line *l = sdp_attr(o->media->lines, STR("crypto")); l;
		l = sdp_attr(l->next, STR("crypto"))) {
		const struct sdes *s = taken(l, &o->from.state->sdes);

		if (!s || !(allowed >> s->master.suite & 1))
			continue;
		if (!went_on && is_in_mid_stream(&o->from, s))
			return "the key is in use, and only xcipherd knows its packet index";
		if (!add_line(o->lines, l, in))
			break;
	}
	return o->lines->n ? NULL : "no crypto suite that may be offered";
}

static enum keying_result write_offer(struct keying_offer *o, const struct keying_in *in)
{
	bool from = sdp_proto_is_secure(o->media->proto), to = sdp_proto_is_secure(o->proto);
	const char *why = NULL;

	if (o->ours_only || !ng_flag(in->r, NG_FLAG_PASSTHROUGH) || ng_flag(in->r, NG_FLAG_RECRYPT))
		return KEYING_PASSES;
	if (!from && !to)
		return KEYING_PASSES; /* there is nothing to decipher */
	if (in->r->echo)
		why = "they are echoed";
	else if (!from || !to)
		why = "one side speaks RTP";
	else
		why = hand_on(o, in);
	if (why) {
		o->lines->n = 0;
		o->warning = refuse(in, why);
		return KEYING_PASSES;
	}
	o->to.state->pass.asked = true;
	return KEYING_AGREES;
}

/* The first line of the answer with the tag and suite of an offered line, and that offered line. */
static const struct sdp_line *answered(const struct keying_answer *a, const struct sdes **offered)
{
	const struct sdp_line *l = sdp_attr(a->media->lines, STR("crypto"));

	while (l && !(*offered = taken(l, &a->offerer.state->sdes)))
		l = sdp_attr(l->next, STR("crypto"));
	return l;
}

static enum keying_result fail(struct keying_answer *a, const char *reason)
{
	a->error = (struct keying_error){reason, STR("it was offered to be passed through")};
	return KEYING_REFUSES;
}

/* A direction is re-encrypted if the answerer's key is one that the offerer cannot join. The other
 * direction is passed through. */
static enum keying_result read_answer(struct keying_answer *a, const struct keying_in *in)
{
	/* Both may send under one key: that is theirs to decide. */
	static const struct sdes_rules rules = {
		.suites = UINT32_MAX, .params = UINT32_MAX, .end_to_end = true};
	struct keying_state *s = a->answerer.state;
	struct sdes line[SDES_MAX_LINES];
	const struct sdes *offered = NULL;
	struct sdes_refused refused;
	struct sdes_bag bag = {0};
	bool half;
	uint32_t n, at = 0;

	if (!s->pass.asked || !a->offerer.state)
		return KEYING_PASSES;
	n = sdes_lines(line, &bag, a->media, &rules, in, &refused);
	if (answered(a, &offered))
		while (at < n && line[at].tag != offered->tag)
			at++;
	if (offered && at < n) {
		half = !(a->answerer.active && a->answerer.rx->pass && a->offerer.tx->pass &&
			       a->paired) &&
			is_in_mid_stream(&a->answerer, &line[at]);
		a->joint = true;
		a->row = &keying_pass;
		s->in_force = half ? KEYING_SDES : KEYING_PASS;
		sdes_rx(&a->rx, &line[at], &bag);
		a->rx.pass = !half;
		a->rx.preauth = 0;
		a->tx = (struct srtp_params){.pass = true};
		sdes_in_force(&s->sdes, &line[at], NULL);
	}
	secmem_wipe(line, sizeof(line));
	secmem_wipe(&bag, sizeof(bag));
	return a->joint ? KEYING_AGREES : fail(a, NGE_CRYPTO_LINE);
}

static enum keying_result write_answer(struct keying_answer *a, const struct keying_in *in)
{
	struct keying_state *s = a->offerer.state;
	const struct sdes *offered = NULL;
	const struct sdp_line *l;
	struct sdes_key *ours = NULL;

	if (!a->joint)
		return KEYING_PASSES;
	l = answered(a, &offered);
	if (a->answerer.state->in_force == KEYING_SDES) { /* half way */
		ours = sdes_key_answer(&a->offerer, offered, in);
		if (ours)
			ours->preauth = 0;
		if (!ours || !sdes_key_write(a->lines, ours, in)) {
			a->error = (struct keying_error){NGE_NOMEM, STR("keys")};
			return KEYING_REFUSES;
		}
		a->warning = refuse(in, "the answerer's key is in use (this way only)");
		sdes_tx(&a->tx, ours);
	} else {
		if (!l || !add_line(a->lines, l, in))
			return fail(a, NGE_NOMEM);
		a->tx = (struct srtp_params){.pass = true};
	}
	s->in_force = KEYING_PASS;
	sdes_rx(&a->rx, offered, &s->sdes.bag);
	a->rx.pass = true;
	a->rx.preauth = 0;
	sdes_in_force(&s->sdes, offered, ours);
	return KEYING_AGREES;
}

/* --- State ------------------------------------------------------------------------------------ */

/* SDES reads the lines, and knows them. */
static bool read_offer(const struct keying_leg *l, const struct sdp_media *m, uint32_t suites,
	const struct keying_in *in, struct keying_error *why)
{
	(void)l;
	(void)m;
	(void)suites;
	(void)in;
	(void)why;
	return false;
}

static bool could_accept(
	const struct keying_leg *l, const struct sdp_media *m, const struct keying_in *in)
{
	(void)l;
	(void)m;
	(void)in;
	return false;
}

static bool is_same_offer(
	const struct keying_state *s, const struct sdp *sdp, const struct sdp_media *m)
{
	(void)s;
	(void)sdp;
	(void)m;
	return true;
}

static bool was_offered(const struct keying_state *s)
{
	(void)s;
	return false;
}

static void drop_offered(struct keying_state *s)
{
	(void)s;
}

static bool asks(const struct keying_state *s)
{
	return s->pass.asked;
}

static void drop_asked(struct keying_state *s)
{
	s->pass.asked = false;
}

static void end(struct keying_state *s)
{
	(void)s;
}

static bool is_of(const struct srtp_params *rx, uint32_t suites)
{
	(void)rx;
	(void)suites;
	return true; /* the terminals chose */
}

static void describe(const struct keying_state *s, struct sbuf *b)
{
	if (s->pass.asked)
		sbuf_printf(b, " with the offerer's own keys");
}

static bool is_sound(const struct keying_state *s)
{
	(void)s;
	return true;
}

static const char *const *flags(const struct keying_state *s)
{
	static const char *const names[] = {"SDES", NULL};

	(void)s;
	return names;
}

const struct keying_ops keying_pass = {.id = KEYING_PASS,
	.name = "SDES end-to-end",
	.end_to_end = true,
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
	.is_sound = is_sound};
