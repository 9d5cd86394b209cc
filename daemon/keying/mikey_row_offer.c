/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our message in an offer. If all m-lines have MIKEY, one message at session level serves them,
 * which costs one exchange instead of many. Otherwise, and for a single m-line, it is at media
 * level. */
#include "keying/mikey_row_int.h"

#include <errno.h>

#include "base/secmem.h"
#include "keying/preauth_policy.h"

/* The use of MIKEY that the request wants, or else the operator. A leg that has MIKEY keeps it. */
static enum mikey_use use_of(const struct keying_state *to, const struct keying_in *in)
{
	static const uint8_t ordered[] = {[NG_MIKEY_OFF] = MIKEY_USE_OFF,
		[NG_MIKEY_OFFER] = MIKEY_USE_OFFER,
		[NG_MIKEY_REQUIRE] = MIKEY_USE_REQUIRE};

	if (!in->host->mikey)
		return MIKEY_USE_OFF;
	if (in->r->mikey != NG_MIKEY_DEFAULT)
		return (enum mikey_use)ordered[in->r->mikey];
	if (in->host->mikey->use == MIKEY_USE_ACCEPT && to->in_force == KEYING_MIKEY)
		return MIKEY_USE_OFFER;
	return in->host->mikey->use;
}

/* Identity of the terminal: as the request names it, or as it was proven before. */
static int party_of(
	struct mikey_party *out, const struct keying_state *to, const struct keying_in *in)
{
	struct mikey_id id = {0};
	struct str name = in->r->mikey_peer;

	if (!name.len)
		name = (struct str){
			to->mikey.peer, strnlen(to->mikey.peer, sizeof(to->mikey.peer) - 1)};
	if (!name.len || mikey_id_from_text(&id, name))
		return -ENOENT;
	return mikey_config_find(in->host->mikey->config, out, &id);
}

/* The first mode of the request that the peer is allowed, else the first of the peer. */
static bool mode_of(enum mikey_mode *out, const struct mikey_party *p, const struct ng_request *r)
{
	if (!p->may_respond || !p->modes)
		return false;
	*out = (enum mikey_mode)p->mode[0];
	if (!r->mikey_mode[0])
		return true;
	for (uint32_t n = 0; n < NG_MIKEY_MODES && r->mikey_mode[n]; n++)
		for (uint32_t i = 0; i < p->modes; i++)
			if (p->mode[i] == r->mikey_mode[n] - 1) {
				*out = (enum mikey_mode)p->mode[i];
				return true;
			}
	return false;
}

static uint64_t draw_number(const struct keying_in *in)
{
	uint64_t n;

	return keying_draw(in->random, &n, sizeof(n)) ? n | 4 : 0;
}

/* The parties and the mode for an m-line. Wipe it. */
struct wish {
	struct mikey_party party;
	enum mikey_mode mode;
};

/* False: why. */
static bool wish_of(
	struct wish *w, const struct keying_state *to, const struct keying_in *in, struct str *why)
{
	if (party_of(&w->party, to, in)) {
		mikey_host_count(in->host->mikey, MIKEY_MODE_COUNT, true, MIKEY_FAIL_IDENTITY);
		*why = in->r->mikey_peer.len || to->mikey.peer[0]
			? STR("no section for MIKEY-peer")
			: STR("MIKEY-peer is missing in the request");
		return false;
	}
	if (mode_of(&w->mode, &w->party, in->r))
		return true;
	secmem_wipe(w, sizeof(*w));
	*why = STR("the peer allows no such mode");
	return false;
}

struct made { /* a message of ours */
	uint64_t id;
	struct str line;
};

static enum mikey_failure say(struct mikey_talk *t, struct made *m, const struct wish *w,
	uint32_t media, const struct keying_in *in)
{
	const struct ng_sdes *flags = &in->r->sdes;
	struct mikey_offer offer = {.media = (uint8_t)media, .sdp_ids = MIKEY_PROTOCOL};
	const struct mikey_start start = {.mode = w->mode,
		.mine = &w->party.mine,
		.peer = &w->party.peer,
		.offer = &offer,
		.env = mikey_row_env(in->host->mikey)};
	struct mikey_out out = {
		.buf = pool_alloc(in->p, MIKEY_MESSAGE_MAX), .cap = MIKEY_MESSAGE_MAX};
	enum mikey_failure f;

	offer.suites = mikey_row_suites(
		offer.suite, in->policy->accept & (flags->only ? flags->only : ~flags->no), in);
	f = out.buf ? mikey_initiate(&t->run, &start, &out) : MIKEY_FAIL_INTERNAL;
	if (f)
		return f;
	m->line = sdp_keymgmt_write(
		in->p, MIKEY_PROTOCOL, (struct str){(const char *)out.buf, out.len});
	return m->line.s ? MIKEY_OK : MIKEY_FAIL_INTERNAL;
}

static enum mikey_failure initiate(
	struct made *m, const struct wish *w, uint32_t media, const struct keying_in *in)
{
	struct mikey_host *h = in->host->mikey;
	enum mikey_failure f = MIKEY_FAIL_INTERNAL;
	struct mikey_talk *t = NULL;

	m->id = draw_number(in);
	if (m->id)
		f = mikey_talk_create(&t, h, in->r->call_id, 0);
	/* The answer is not limited again, because the callee already rings. */
	if (!f && w->mode != MIKEY_PSK && !mikey_host_afford(h, &w->party.peer, in->emergency))
		f = MIKEY_FAIL_RATE;
	f = f ? f : say(t, m, w, media, in);
	if (f)
		mikey_talk_destroy(t);
	else
		mikey_talk_add(h, t, m->id);
	return f;
}

/* If MIKEY is optional, a warning explains why it is missing. */
static void no_message(struct keying_written *w, struct str why, const struct keying_in *in)
{
	struct keying_mikey *s = &w->to->mikey;

	s->asked = 0;
	if (s->asked_only) {
		w->error = mikey_row_error(why);
		return;
	}
	w->warning = pool_printf(in->p, "MIKEY not offered: " STR_FMT, STR_ARG(why));
	if (!keying_asks(w->to))
		w->error = mikey_row_error(why);
}

/* Makes one message for n m-lines, at session level if there are several. */
static void write_message(
	struct keying_written *w, uint32_t n, const struct wish *wish, const struct keying_in *in)
{
	struct made m = {0};
	enum mikey_failure f = initiate(&m, wish, n, in);

	if (f)
		mikey_host_count(in->host->mikey, wish->mode, true, f);
	for (uint32_t i = 0; i < n; i++) {
		if (f || (n == 1 && w[i].lines->n == KEYING_LINES)) {
			no_message(&w[i], str_from(mikey_failure_text(f ? f : MIKEY_FAIL_INTERNAL)),
				in);
			continue;
		}
		if (n == 1)
			w[i].lines->line[w[i].lines->n++] = m.line;
		else
			w[i].lines->session = m.line;
		w[i].to->mikey.asked = m.id;
		w[i].to->mikey.asked_place = (uint8_t)i;
	}
}

static bool offer_tags(struct keying_offer *o, const struct keying_in *in)
{
	struct keying_mikey *s = &o->to.state->mikey;

	s->preauth.asked = keying_preauth_offers(
		in, o->to.state->in_force == KEYING_MIKEY ? s->preauth.agreed : 0);
	if (keying_preauth_write(o->lines, s->preauth.asked, in))
		return true;
	o->error = (struct keying_error){NGE_NOMEM, STR("keys")};
	return false;
}

enum keying_result mikey_row_write_offer(struct keying_offer *o, const struct keying_in *in)
{
	enum mikey_use use = use_of(o->to.state, in);
	struct keying_written w = {.to = o->to.state, .lines = o->lines};
	struct wish wish;
	struct str why;

	if (use < MIKEY_USE_OFFER || !sdp_proto_is_secure(o->proto) || sdp_proto_is_dtls(o->proto))
		return KEYING_PASSES;
	/* The operator's default applies only to peers with a section. */
	if (in->r->mikey == NG_MIKEY_DEFAULT && party_of(&wish.party, o->to.state, in))
		return KEYING_PASSES;
	w.to->mikey.asked = MIKEY_NEXT;
	w.to->mikey.asked_only = use == MIKEY_USE_REQUIRE;
	if (!wish_of(&wish, w.to, in, &why))
		no_message(&w, why, in);
	else if (!o->later)
		write_message(&w, 1, &wish, in);
	secmem_wipe(&wish, sizeof(wish));
	o->warning = w.warning;
	o->weaker = w.warning.s;
	if (w.to->mikey.asked && !offer_tags(o, in))
		return KEYING_REFUSES;
	if (w.to->mikey.asked)
		return w.to->mikey.asked_only ? KEYING_AGREES : KEYING_ADDS;
	if (!w.to->mikey.asked_only) /* another keying may have lines */
		return KEYING_PASSES;
	o->error = w.error;
	return KEYING_REFUSES;
}

/* RFC 4567 3.1: a line at session level applies to all m-lines. */
static bool all_wish(const struct keying_written *w, uint32_t n, const struct wish *first,
	const struct keying_in *in)
{
	bool same = n > 1 && n <= MIKEY_MEDIA_MAX;

	for (uint32_t i = 0; same && i < n; i++) {
		struct wish wish;
		struct str why;

		same = w[i].to->mikey.asked == MIKEY_NEXT && wish_of(&wish, w[i].to, in, &why) &&
			wish.mode == first->mode &&
			mikey_id_eq(&wish.party.peer.id, &first->party.peer.id);
		secmem_wipe(&wish, sizeof(wish));
	}
	return same;
}

void mikey_row_end_offer(
	struct keying_written *w, uint32_t n, bool whole, const struct keying_in *in)
{
	uint32_t step = 1;
	struct wish wish;
	struct str why;

	for (uint32_t i = 0; i < n; i += step) {
		if (w[i].to->mikey.asked != MIKEY_NEXT)
			continue;
		if (!wish_of(&wish, w[i].to, in, &why)) {
			no_message(&w[i], why, in);
			continue;
		}
		if (i == 0 && whole && all_wish(w, n, &wish, in))
			step = n;
		write_message(&w[i], step, &wish, in);
		secmem_wipe(&wish, sizeof(wish));
	}
}
