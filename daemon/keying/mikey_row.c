/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MIKEY in offers and answers (RFC 4567). A terminal's message is answered when its offer is read:
 * what does not verify is refused before the other party hears of the call. The response waits in
 * mikey_host.h until the answer. Messages of ours are at media level, one for each m-line.
 *
 * With SDES in the same offer, MIKEY goes first. SDES takes its place only where we have no key for
 * the peer or do not allow the mode. A message that fails to verify refuses the offer: else an
 * attacker could choose SDES by damaging it (RFC 4567 4.1.2, 4.1.4). */
#include <errno.h>

#include "base/hash.h"
#include "base/secmem.h"
#include "keying/mikey_host.h"
#include "keying/rows.h"
#include "proto/base64.h"
#include "proto/sdp_keymgmt.h"

#define PROTOCOL STR("mikey")
#define KEPT     1u /* keying_mikey.offered: the message in force, whose exchange was forgotten */

#define GONE 2u /* offered, asked: its keys were forgotten, and must not return */

static const uint8_t no_secret[16];

static struct mikey_env env_of(const struct mikey_host *h)
{
	return (struct mikey_env){.now_ntp = mikey_ntp(h->now_ns())};
}

static struct str failure_text(struct pool *p, enum mikey_failure f, const struct mikey_run *run)
{
	if (f == MIKEY_FAIL_REFUSED)
		return pool_printf(
			p, "the terminal reports: %s", mikey_error_text(run->peer_error));
	return str_from(mikey_failure_text(f));
}

static struct keying_error error_of(struct str detail)
{
	return (struct keying_error){.reason = NGE_MIKEY, .detail = detail};
}

/* --- What terminals say ----------------------------------------------------------------------- */

struct said {
	struct sdp_keymgmt_lines lines;
	struct str text;    /* the line's base64 */
	struct str message; /* in the request's pool */
};

/* False: no line of MIKEY, or media that it has no keys for. A line that is no base64 leaves the
 * message empty. */
static bool read_said(struct said *out, const struct sdp_media *m, const struct keying_in *in)
{
	const struct sdp_keymgmt *line;
	uint8_t *buf;
	int n;

	*out = (struct said){0};
	if (!in->host->mikey || !sdp_proto_is_secure(m->proto) || sdp_proto_is_dtls(m->proto))
		return false;
	sdp_keymgmt_read(&out->lines, in->sdp, m);
	line = sdp_keymgmt_find(&out->lines, PROTOCOL);
	if (!line)
		return false;
	out->text = line->data;
	buf = pool_alloc(in->p, MIKEY_MESSAGE_MAX);
	n = buf ? base64_decode(buf, MIKEY_MESSAGE_MAX, line->data) : 0;
	if (n > 0)
		out->message = (struct str){(const char *)buf, (size_t)n};
	return true;
}

static uint64_t hash_of(struct str text)
{
	return hash_siphash(no_secret, text.s, text.len) | 1;
}

/* The same message in the same dialog is the same offer: repeated, forked, or another of its
 * m-lines. In another dialog it is a replay, and in the same one after the call has ended. */
static uint64_t number_of(struct str message, const struct keying_in *in)
{
	struct str text = pool_printf(in->p, "%zu " STR_FMT " " STR_FMT " %llx", in->r->call_id.len,
		STR_ARG(in->r->call_id), STR_ARG(in->r->from_tag),
		(unsigned long long)hash_of(message));

	return text.s ? hash_of(text) : 0;
}

/* The list of protocols inside the message must be that of the SDP (RFC 4567 7). Without a list,
 * MIKEY may be the only one. */
static bool list_fits(const struct said *said, struct pool *p)
{
	static struct str nothing = STR_NONE;
	struct str offered = sdp_keymgmt_ids(&said->lines, p), inside = nothing;
	struct mikey_message *m = pool_alloc(p, sizeof(*m));
	size_t at;

	if (!m || mikey_parse(m, said->message, &at))
		return false;
	for (uint32_t i = 0; i < m->payloads; i++)
		if (m->payload[i].type == MIKEY_P_EXT && m->payload[i].kind == MIKEY_EXT_SDP_IDS)
			inside = m->payload[i].data;
	return str_eq(inside.len ? inside : PROTOCOL, offered);
}

/* --- Answering a message ---------------------------------------------------------------------- */

struct looked_up {
	const struct mikey_host *host;
	struct mikey_party party;
};

/* mikey_store.find */
static int find_party(void *arg, const struct mikey_ask *ask, struct mikey_identity *mine,
	struct mikey_peer *peer)
{
	struct looked_up *l = arg;
	bool allowed = false;

	if (mikey_config_find(l->host->config, &l->party, &ask->from))
		return -ENOENT;
	if (ask->to.len && !mikey_id_eq(&ask->to, &l->party.mine.id))
		return -ENOENT;
	for (uint32_t i = 0; i < l->party.modes; i++)
		allowed |= l->party.mode[i] == ask->mode;
	*mine = l->party.mine;
	*peer = l->party.peer;
	return allowed && l->party.may_initiate ? 0 : -EACCES;
}

/* In the order of --sdes-offer, then the others. */
static uint8_t suites_of(
	uint8_t out[MIKEY_SUITES_MAX], uint32_t allowed, const struct keying_in *in)
{
	uint32_t n = 0;

	allowed &= ~(1u << SUITE_PLAIN);
	for (uint32_t i = 0; i < SUITE_COUNT && in->policy->offer[i] != SUITE_PLAIN; i++) {
		uint8_t s = in->policy->offer[i];

		if (allowed >> s & 1 && mikey_suite_known((enum srtp_suite_id)s) &&
			n < MIKEY_SUITES_MAX)
			out[n++] = s;
		allowed &= ~(1u << s);
	}
	for (uint8_t s = 0; s < SUITE_COUNT; s++)
		if (allowed >> s & 1 && mikey_suite_known((enum srtp_suite_id)s) &&
			n < MIKEY_SUITES_MAX)
			out[n++] = s;
	return (uint8_t)n;
}

static enum mikey_failure respond(struct mikey_talk *t, struct mikey_out *out,
	const struct said *said, uint32_t suites, const struct keying_in *in)
{
	struct mikey_host *h = in->host->mikey;
	const struct mikey_limits *limits = mikey_config_limits(h->config);
	struct looked_up up = {.host = h};
	const struct mikey_store store = {find_party, &up};
	struct mikey_accept accept = {.modes = (1u << MIKEY_MODE_COUNT) - 1,
		.media = (uint8_t)said->lines.places,
		.null_key_encryption = limits->null_key_encryption,
		.weak_dh = limits->weak_dh,
		.skew_s = limits->skew_s};
	const struct mikey_answer answer = {
		.store = &store, .accept = &accept, .replay = h->replay, .env = env_of(h)};
	enum mikey_failure f;

	accept.suites = suites_of(accept.suite, in->policy->accept & suites, in);
	if (!said->lines.places || said->lines.places > MIKEY_MEDIA_MAX)
		return MIKEY_FAIL_SESSIONS;
	f = mikey_respond(&t->run, &answer, said->message, out, &t->keys);
	secmem_wipe(&up, sizeof(up));
	return !f && !list_fits(said, in->p) ? MIKEY_FAIL_SDP_IDS : f;
}

/* Where we have no key for the peer, or do not allow the mode, another keying may serve. Everything
 * else refuses the offer. */
static struct keying_error explained(const struct keying_error *before, enum mikey_failure f,
	const struct mikey_run *run, const struct keying_in *in)
{
	struct str text = failure_text(in->p, f, run);

	if (f != MIKEY_FAIL_IDENTITY && f != MIKEY_FAIL_FORBIDDEN && f != MIKEY_FAIL_MODE &&
		f != MIKEY_FAIL_TYPE)
		return error_of(text);
	return (struct keying_error){
		before->reason, pool_printf(in->p, "MIKEY: " STR_FMT, STR_ARG(text))};
}

/* The answer to a message, made now or before. NULL: see *why. */
static struct mikey_talk *talk_of(const struct said *said, uint32_t suites, uint64_t id,
	const struct keying_in *in, struct keying_error *why)
{
	struct mikey_host *h = in->host->mikey;
	struct mikey_talk *made = mikey_talk_find(h, id), *t = NULL;
	struct mikey_out out = {
		.buf = pool_alloc(in->p, MIKEY_MESSAGE_MAX), .cap = MIKEY_MESSAGE_MAX};
	enum mikey_failure f;

	if (made)
		return made;
	made = secmem_alloc(sizeof(*made));
	if (!made || !out.buf || !id) {
		secmem_free(made, sizeof(*made));
		*why = (struct keying_error){NGE_NOMEM, STR("keys")};
		return NULL;
	}
	f = respond(made, &out, said, suites, in);
	mikey_host_count(
		h, f == MIKEY_FAIL_MALFORMED ? MIKEY_MODE_COUNT : made->run.mode, false, f);
	if (!f) {
		t = mikey_talk_add(h, id, in->r->call_id, out.len);
		f = t ? MIKEY_OK : MIKEY_FAIL_INTERNAL;
	}
	if (t) {
		t->responder = true;
		t->media = made->keys.media;
		t->run = made->run;
		t->keys = made->keys;
		memcpy(t->response, out.buf, out.len);
	} else {
		*why = explained(why, f, &made->run, in);
	}
	secmem_free(made, sizeof(*made));
	return t;
}

/* --- Offers ----------------------------------------------------------------------------------- */

static bool could_accept(
	const struct keying_leg *l, const struct sdp_media *m, const struct keying_in *in)
{
	struct said said;

	(void)l;
	return read_said(&said, m, in) && said.message.len;
}

static void forget_offered(struct keying_mikey *s)
{
	s->offered = s->offered_hash = 0;
	s->offered_place = 0;
	s->offered_session = false;
}

/* Keys are for one m-line: two would encrypt with the same key, and their senders choose SSRCs. */
static bool takes_place(
	struct mikey_talk *t, uint32_t place, const struct sdp_media *m, const struct keying_in *in)
{
	uint8_t line = (uint8_t)(m - in->sdp->media + 1);

	if (place >= t->media || (t->line[place] && t->line[place] != line))
		return false;
	t->line[place] = line;
	return true;
}

static bool read_offer(const struct keying_leg *l, const struct sdp_media *m, uint32_t suites,
	const struct keying_in *in, struct keying_error *why)
{
	struct keying_mikey *s = &l->state->mikey;
	struct mikey_talk *t;
	struct said said;
	uint64_t id;

	forget_offered(s);
	if (in->r->mikey == NG_MIKEY_OFF || !read_said(&said, m, in))
		return false;
	if (!said.message.len || said.lines.malformed) {
		*why = error_of(STR("malformed a=key-mgmt line"));
		return false;
	}
	id = number_of(said.message, in);
	s->offered_hash = hash_of(said.text);
	s->offered_place = (uint8_t)said.lines.place;
	s->offered_session = said.lines.session;
	if (l->state->in_force == KEYING_MIKEY && s->used_hash == s->offered_hash &&
		!mikey_talk_find(in->host->mikey, id)) {
		s->offered = KEPT;
		return true;
	}
	t = talk_of(&said, suites, id, in, why);
	if (!t)
		return false;
	/* The call ended since: packet indexes would begin again under the same keys. */
	if (t->answered_ns && s->used != id) {
		*why = error_of(str_from(mikey_failure_text(MIKEY_FAIL_REPLAY)));
		return false;
	}
	if (!takes_place(t, said.lines.place, m, in)) {
		*why = error_of(str_from(mikey_failure_text(MIKEY_FAIL_SESSIONS)));
		return false;
	}
	s->offered = id;
	return true;
}

static bool is_same_offer(
	const struct keying_state *state, const struct sdp *sdp, const struct sdp_media *m)
{
	const struct keying_mikey *s = &state->mikey;
	struct sdp_keymgmt_lines lines;
	const struct sdp_keymgmt *line;

	if (!s->offered_hash)
		return true;
	if (!sdp)
		return false;
	sdp_keymgmt_read(&lines, sdp, m);
	line = sdp_keymgmt_find(&lines, PROTOCOL);
	return line && hash_of(line->data) == s->offered_hash;
}

/* What the request wants, or the operator. A leg that has MIKEY keeps it. */
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

	if (in->random->len < sizeof(n))
		return 0;
	memcpy(&n, in->random->at, sizeof(n));
	in->random->at += sizeof(n);
	in->random->len -= sizeof(n);
	return n | 1;
}

/* A message of ours as a line; the failure otherwise. */
static enum mikey_failure initiate(struct keying_offer *o, const struct mikey_party *party,
	enum mikey_mode mode, const struct keying_in *in)
{
	struct mikey_host *h = in->host->mikey;
	const struct ng_sdes *flags = &in->r->sdes;
	struct mikey_offer offer = {.media = 1, .sdp_ids = PROTOCOL};
	const struct mikey_start start = {.mode = mode,
		.mine = &party->mine,
		.peer = &party->peer,
		.offer = &offer,
		.env = env_of(h)};
	struct mikey_out out = {
		.buf = pool_alloc(in->p, MIKEY_MESSAGE_MAX), .cap = MIKEY_MESSAGE_MAX};
	uint64_t id = draw_number(in);
	struct mikey_talk *t = out.buf && id ? mikey_talk_add(h, id, in->r->call_id, 0) : NULL;
	enum mikey_failure f;
	struct str line;

	offer.suites = suites_of(
		offer.suite, in->policy->accept & (flags->only ? flags->only : ~flags->no), in);
	if (!t)
		return MIKEY_FAIL_INTERNAL;
	f = mikey_initiate(&t->run, &start, &out);
	if (f)
		return f;
	line = sdp_keymgmt_write(in->p, PROTOCOL, (struct str){(const char *)out.buf, out.len});
	if (!line.s || o->lines->n == KEYING_LINES)
		return MIKEY_FAIL_INTERNAL;
	o->lines->line[o->lines->n++] = line;
	o->to.state->mikey.asked = id;
	return MIKEY_OK;
}

/* Where MIKEY is only wished for, a warning says why there is none. */
static enum keying_result no_message(
	struct keying_offer *o, enum mikey_use use, struct str why, const struct keying_in *in)
{
	if (use == MIKEY_USE_REQUIRE) {
		o->error = error_of(why);
		return KEYING_REFUSES;
	}
	o->warning = pool_printf(in->p, "MIKEY not offered: " STR_FMT, STR_ARG(why));
	o->weaker = true;
	return KEYING_PASSES;
}

static enum keying_result write_offer(struct keying_offer *o, const struct keying_in *in)
{
	enum mikey_use use = use_of(o->to.state, in);
	struct mikey_party party;
	enum mikey_mode mode;
	enum mikey_failure f;
	struct str why;

	if (use < MIKEY_USE_OFFER || !sdp_proto_is_secure(o->proto) || sdp_proto_is_dtls(o->proto))
		return KEYING_PASSES;
	if (party_of(&party, o->to.state, in)) {
		/* The operator's default is for those who have a section. */
		if (in->r->mikey == NG_MIKEY_DEFAULT)
			return KEYING_PASSES;
		mikey_host_count(in->host->mikey, MIKEY_MODE_COUNT, true, MIKEY_FAIL_IDENTITY);
		return no_message(o, use, STR("no section for MIKEY-peer"), in);
	}
	if (!mode_of(&mode, &party, in->r)) {
		secmem_wipe(&party, sizeof(party));
		return no_message(o, use, STR("the peer allows no such mode"), in);
	}
	f = initiate(o, &party, mode, in);
	secmem_wipe(&party, sizeof(party));
	if (f) {
		mikey_host_count(in->host->mikey, mode, true, f);
		why = str_from(mikey_failure_text(f));
		return no_message(o, use, why, in);
	}
	o->to.state->mikey.asked_only = use == MIKEY_USE_REQUIRE;
	return use == MIKEY_USE_REQUIRE ? KEYING_AGREES : KEYING_ADDS;
}

/* --- Keys that may return --------------------------------------------------------------------- */

/* Indexes go on when a key returns, so it is noted before its first use. A place is free again when
 * its exchange can no longer be answered. */
static bool note_key(struct keying_mikey *s, const struct srtp_master *key, uint64_t of)
{
	uint32_t i = 0;

	while (i < s->ours_n && !srtp_same_key(&s->ours[i].key.master, key))
		i++;
	if (i < s->ours_n)
		return true;
	for (i = 0; i < s->ours_n; i++)
		if (s->ours[i].of != s->offered && s->ours[i].of != s->asked)
			break;
	if (i == KEYING_MIKEY_KEYS)
		return false;
	s->ours_n += i == s->ours_n;
	s->ours[i] = (struct mikey_key){.key.master = *key, .of = of};
	return true;
}

static const struct keying_key *our_key(const struct keying_state *s, uint32_t n)
{
	return n < s->mikey.ours_n ? &s->mikey.ours[n].key : NULL;
}

static void hold(struct keying_state *s, const struct srtp_master *key, uint32_t slot)
{
	for (uint32_t i = 0; i < s->mikey.ours_n; i++)
		if (srtp_same_key(&s->mikey.ours[i].key.master, key))
			s->mikey.ours[i].key.slot = slot;
}

static void forget_key(struct keying_mikey *s, const struct mikey_key *k)
{
	if (k->of == s->offered)
		s->offered = GONE;
	if (k->of == s->asked)
		s->asked = GONE;
}

static void keep_ours(struct keying_state *state,
	bool (*keep)(const void *arg, const struct keying_key *k), const void *arg)
{
	struct keying_mikey *s = &state->mikey;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->ours_n; i++)
		if (keep(arg, &s->ours[i].key))
			s->ours[n++] = s->ours[i];
		else
			forget_key(s, &s->ours[i]);
	secmem_wipe(&s->ours[n], (s->ours_n - n) * sizeof(*s->ours));
	s->ours_n = n;
}

/* Theirs are not known before the exchange. */
static bool is_theirs(const struct keying_state *s, const struct srtp_master *key)
{
	(void)s;
	(void)key;
	return false;
}

/* --- Answers ---------------------------------------------------------------------------------- */

static void into(struct keying_answer *a, const struct mikey_medium *m)
{
	a->rx = (struct srtp_params){.keys = 1};
	a->tx = a->rx;
	a->rx.key[0] = m->rx;
	a->tx.key[0] = m->tx;
}

static void in_force(struct keying_state *s, const struct mikey_run *run)
{

	s->in_force = KEYING_MIKEY;
	s->mikey.mode = run->mode;
	memset(s->mikey.peer, 0, sizeof(s->mikey.peer));
	memcpy(s->mikey.peer, run->peer.name, run->peer.len);
}

static enum keying_result refuse(struct keying_answer *a, struct str detail)
{
	a->error = error_of(detail);
	return KEYING_REFUSES;
}

/* The message that we sent stays as it is: answers may be repeated, and come of forks. */
static enum mikey_failure finish(struct keying_answer *a, struct mikey_talk *t,
	const struct said *said, const struct keying_in *in, struct str *why)
{
	struct mikey_host *h = in->host->mikey;
	struct mikey_party party = {0};
	struct mikey_run run = t->run;
	struct mikey_keys keys;
	enum mikey_failure f = MIKEY_FAIL_IDENTITY; /* a reload removed it */

	memset(&keys, 0, sizeof(keys));
	if (mikey_config_find(h->config, &party, &run.peer) == 0) {
		const struct mikey_end end = {.mine = &party.mine,
			.peer = &party.peer,
			.skew_s = mikey_config_limits(h->config)->skew_s,
			.env = env_of(h)};

		f = mikey_finish(&run, &end, said->message, &keys);
	}
	mikey_host_count(h, (enum mikey_mode)t->run.mode, true, f);
	if (!f && !note_key(&a->answerer.state->mikey, &keys.medium[0].tx, t->id))
		f = MIKEY_FAIL_STATE;
	if (!f && !t->answered_ns)
		t->answered_ns = h->now_ns();
	if (f) {
		*why = failure_text(in->p, f, &run);
	} else {
		in_force(a->answerer.state, &run);
		a->answerer.state->mikey.used = a->answerer.state->mikey.used_hash = 0;
		into(a, &keys.medium[0]);
	}
	secmem_wipe(&party, sizeof(party));
	secmem_wipe(&run, sizeof(run));
	secmem_wipe(&keys, sizeof(keys));
	return f;
}

static enum keying_result read_answer(struct keying_answer *a, const struct keying_in *in)
{
	const struct keying_mikey *s = &a->answerer.state->mikey;
	struct mikey_talk *t;
	struct said said;
	struct str why;

	if (!s->asked || !in->host->mikey)
		return KEYING_PASSES;
	if (!read_said(&said, a->media, in)) {
		if (!s->asked_only || !sdp_proto_is_secure(a->media->proto))
			return KEYING_PASSES;
		return refuse(a, STR("the answer has no a=key-mgmt line of MIKEY"));
	}
	t = mikey_talk_find(in->host->mikey, s->asked);
	if (!t)
		return refuse(a, STR("the offer is no longer known"));
	return finish(a, t, &said, in, &why) ? refuse(a, why) : KEYING_AGREES;
}

static bool write_response(
	struct keying_answer *a, const struct mikey_talk *t, const struct keying_in *in)
{
	const struct keying_mikey *s = &a->offerer.state->mikey;
	struct str line;

	if (!t->len)
		return true; /* none was asked for */
	line = sdp_keymgmt_write(in->p, PROTOCOL, (struct str){(const char *)t->response, t->len});
	if (!line.s)
		return false;
	if (s->offered_session)
		a->lines->session = line;
	else if (a->lines->n < KEYING_LINES)
		a->lines->line[a->lines->n++] = line;
	return true;
}

static enum keying_result write_answer(struct keying_answer *a, const struct keying_in *in)
{
	struct keying_mikey *s = &a->offerer.state->mikey;
	struct mikey_talk *t;

	if (!s->offered || !in->host->mikey || in->r->mikey == NG_MIKEY_OFF ||
		(a->offerer.state->sdes.lines && in->r->sdes.flags & NG_SDES_PREFER))
		return KEYING_PASSES;
	if (s->offered == KEPT) { /* there is no response any more, and nothing changes */
		a->rx = *a->offerer.rx;
		a->tx = *a->offerer.tx;
		return KEYING_AGREES;
	}
	t = mikey_talk_find(in->host->mikey, s->offered);
	if (!t || (t->spent && s->used != s->offered))
		return refuse(a, STR("the offer is no longer known"));
	if (!write_response(a, t, in)) {
		a->error = (struct keying_error){NGE_NOMEM, STR("keys")};
		return KEYING_REFUSES;
	}
	if (t->spent) {
		a->rx = *a->offerer.rx;
		a->tx = *a->offerer.tx;
		return KEYING_AGREES;
	}
	if (!note_key(s, &t->keys.medium[s->offered_place].tx, s->offered))
		return refuse(a, str_from(mikey_failure_text(MIKEY_FAIL_STATE)));
	in_force(a->offerer.state, &t->run);
	if (!t->answered_ns)
		t->answered_ns = in->host->mikey->now_ns();
	s->used = s->offered;
	s->used_hash = s->offered_hash;
	into(a, &t->keys.medium[s->offered_place]);
	return KEYING_AGREES;
}

/* --- State ------------------------------------------------------------------------------------ */

static bool was_offered(const struct keying_state *s)
{
	return s->mikey.offered;
}

static bool asks(const struct keying_state *s)
{
	return s->mikey.asked;
}

static void drop_offered(struct keying_state *s)
{
	forget_offered(&s->mikey);
}

static void drop_asked(struct keying_state *s)
{
	s->mikey.asked = 0;
	s->mikey.asked_only = false;
}

static void end(struct keying_state *s)
{
	s->mikey.used = s->mikey.used_hash = 0;
	s->mikey.mode = 0;
	memset(s->mikey.peer, 0, sizeof(s->mikey.peer));
}

static bool is_of(const struct srtp_params *rx, uint32_t suites)
{
	return suites >> srtp_params_suite(rx) & 1;
}

static void describe(const struct keying_state *s, struct sbuf *b)
{
	if (s->mikey.asked)
		sbuf_printf(b, " with MIKEY");
}

static bool is_sound(const struct keying_state *s)
{
	return s->mikey.mode < MIKEY_MODE_COUNT && !s->mikey.peer[sizeof(s->mikey.peer) - 1];
}

static const struct keying_key_ops keys = {
	.ours = our_key, .hold = hold, .keep = keep_ours, .is_theirs = is_theirs};

const struct keying_ops keying_mikey = {.id = KEYING_MIKEY,
	.name = "MIKEY",
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
	.describe = describe,
	.is_sound = is_sound,
	.keys = &keys};
