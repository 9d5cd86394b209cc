/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP that is passed through (ng's passthrough): each side's crypto lines reach the other as they
 * are, and media leave as they came. Only lines that we could take ourselves are handed on: so the
 * keys are known, and recordings, listeners and a later re-encryption have what they need. Where it
 * cannot be done media are re-encrypted and the reply says why. Pure. RFC 4568, RFC 3711 3.3.1. */
#include "call/past_keys.h"
#include "call/plan.h"
#include "keying/crypto.h"
#include "keying/pass.h"

static void refuse(struct plan *plan, const struct neg_in *in, uint32_t i, const char *why)
{
	plan_warn(plan, in->p,
		pool_printf(in->p, "media %u is re-encrypted, not passed through: %s",
			(unsigned)i + 1, why));
}

/* The receiver of a key that it did not have takes the first packet's ROC for zero. */
static bool is_in_mid_stream(const struct leg *l, const struct sdes *line)
{
	return l->active && l->rx_roc && crypto_same_key(&l->rx.master, &line->master);
}

/* The line as we took it from the offer, by tag and suite; NULL: we did not. */
static const struct sdes *taken(const struct sdp_line *l, const struct leg_said *said)
{
	const struct sdes *found = NULL;
	struct sdes_bag bag = {0};
	struct sdes s = {0};

	if (sdes_parse(&s, &bag, l->arg) == SDES_OK)
		for (uint32_t i = 0; i < said->lines && !found; i++)
			if (said->line[i].tag == s.tag &&
				said->line[i].master.suite == s.master.suite)
				found = &said->line[i];
	explicit_bzero(&s, sizeof(s));
	explicit_bzero(&bag, sizeof(bag));
	return found;
}

/* Lines to be handed on; NULL, or why none can be. */
static const char *hand_on(struct plan_media *pm, const struct leg *from, bool paired,
	const struct sdp_media *m, const struct neg_in *in)
{
	const struct ng_sdes *flags = &in->r->sdes;
	uint32_t allowed = flags->only ? flags->only : ~flags->no;
	struct str *text = pool_alloc(in->p, LEG_MAX_LINES * sizeof(*text));
	uint32_t n = 0;

	for (const struct sdp_line *l = sdp_attr(m->lines, STR("crypto"));
		l && text && n < LEG_MAX_LINES; l = sdp_attr(l->next, STR("crypto"))) {
		const struct sdes *s = taken(l, &from->said);

		if (!s || !(allowed >> s->master.suite & 1))
			continue;
		if (!(from->pass_rx && paired) && is_in_mid_stream(from, s))
			return "the key is in use, and only xcipherd knows its packet index";
		text[n++] = l->arg;
	}
	pm->pass = text;
	pm->passes = n;
	return n ? NULL : "no crypto suite that may be offered";
}

bool pass_offer(struct plan *plan, const struct leg *from, struct leg *to, bool paired,
	const struct sdp_media *m, uint32_t i, const struct neg_in *in)
{
	struct plan_media *pm = &plan->media[i];
	const char *why = NULL;

	to->asked.pass = false;
	if (!ng_flag(in->r, NG_FLAG_PASSTHROUGH) || ng_flag(in->r, NG_FLAG_RECRYPT))
		return false;
	if (!sdp_proto_is_secure(m->proto) && !sdp_proto_is_secure(pm->proto))
		return false; /* there is nothing to decipher */
	if (in->r->echo)
		why = "they are echoed";
	else if (!sdp_proto_is_secure(m->proto) || !sdp_proto_is_secure(pm->proto))
		why = "one side speaks RTP";
	else
		why = hand_on(pm, from, paired && to->active && to->pass_tx, m, in);
	if (why) {
		pm->passes = 0;
		refuse(plan, in, i, why);
		return false;
	}
	to->asked.pass = true;
	return true;
}

/* The answerer's key is one that the offerer cannot join: that way is re-encrypted, the other is
 * passed through. */
static void half_way(struct plan *plan, struct leg *from, struct leg *to, const struct sdes *line,
	uint32_t i, struct neg_in *in)
{
	struct plan_media *pm = &plan->media[i];
	struct our_key *ours = crypto_answer(to, line, in);

	if (!ours) {
		plan_fail(plan, NGE_NOMEM, plan_media_name(in->p, i, "keys"));
		return;
	}
	refuse(plan, in, i, "the answerer's key is in use (this way only)");
	pm->line[pm->lines++] = ours->s;
	pm->passes = 0;
	crypto_set_tx(to, ours);
	from->pass_rx = to->pass_tx = false;
}

void pass_answer(struct plan *plan, struct leg *from, struct leg *to, bool paired,
	const struct sdp_media *m, uint32_t i, struct neg_in *in)
{
	bool went_on = from->active && from->pass_rx && to->pass_tx && paired;
	struct plan_media *pm = &plan->media[i];
	struct str *text = pool_alloc(in->p, sizeof(*text));
	struct sdes line[LEG_MAX_LINES] = {0};
	struct crypto_refused refused;
	const struct sdes *offered = NULL;
	struct sdes_bag bag = {0};
	struct neg_in alone = *in; /* both may send under one key: that is theirs to decide */
	struct crypto_rules rules = {.suites = UINT32_MAX, .params = UINT32_MAX, .in = &alone};
	uint32_t n, at = 0;

	alone.other = SIDE_NONE;
	n = crypto_lines(line, &bag, m, &rules, &refused);
	for (const struct sdp_line *l = sdp_attr(m->lines, STR("crypto")); l && text && !offered;
		l = sdp_attr(l->next, STR("crypto"))) {
		offered = taken(l, &to->said);
		*text = l->arg;
	}
	while (offered && at < n && line[at].tag != offered->tag)
		at++;
	if (!offered || at == n) {
		plan_fail(plan, text ? NGE_CRYPTO_LINE : NGE_NOMEM,
			plan_media_name(in->p, i, "it was offered to be passed through"));
		goto out;
	}
	pm->pass = text;
	pm->passes = 1;
	to->pass_rx = from->pass_tx = from->pass_rx = to->pass_tx = true;
	if (!went_on && is_in_mid_stream(from, &line[at]))
		half_way(plan, from, to, offered, i, in);
	else
		crypto_set_tx(to, NULL);
	crypto_set_rx(from, &line[at], &bag);
	crypto_set_tx(from, NULL);
	crypto_set_rx(to, offered, &to->said.bag);
out:
	explicit_bzero(line, sizeof(line));
	explicit_bzero(&bag, sizeof(bag));
}
