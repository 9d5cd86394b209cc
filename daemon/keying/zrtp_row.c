/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ZRTP in offers and answers (RFC 6189 8). Two forms: where both terminals announce it, their
 * a=zrtp-hash passes and so do their packets (media/other.c). Otherwise the exchange may end here:
 * each terminal gets our a=zrtp-hash, and the keys come later, from the exchange in the media path
 * (side/session_zrtp.c). The profile of the m-line is that of RTP in clear. Pure. */
#include <stdio.h>

#include "base/hash.h"
#include "base/secmem.h"
#include "keying/preauth_policy.h"
#include "keying/rows.h"
#include "keying/zrtp_self.h"
#include "keying/zrtp_store.h"

/* --- Settings of request and operator --------------------------------------------------------- */

/* One of NG_ZRTP_MODES, towards the terminal of this state. A leg keeps what is in force. */
static uint32_t mode(const struct keying_state *s, const struct keying_in *in)
{
	static const uint32_t of[ZRTP_POLICY_COUNT] = {
		[ZRTP_POLICY_PASSTHROUGH] = NG_ZRTP_PASSTHROUGH,
		[ZRTP_POLICY_TERMINATE] = NG_ZRTP_TERMINATE,
		[ZRTP_POLICY_OFF] = NG_ZRTP_OFF};
	uint32_t asked = in->r->zrtp & NG_ZRTP_MODES;

	if (!asked && s->in_force == KEYING_ZRTP)
		return s->zrtp.flags & NG_ZRTP_REQUIRE ? NG_ZRTP_REQUIRE : NG_ZRTP_TERMINATE;
	return asked ? asked : of[in->host->zrtp_policy];
}

static bool ends_here(uint32_t mode)
{
	return mode & (NG_ZRTP_TERMINATE | NG_ZRTP_REQUIRE);
}

/* The request says so, or it is in force: the policy alone offers no terminal ZRTP. */
static bool is_ordered(const struct keying_state *s, const struct keying_in *in)
{
	return ends_here(mode(s, in)) &&
		(in->r->zrtp & NG_ZRTP_MODES || s->in_force == KEYING_ZRTP);
}

/* The flags of an exchange. Those that are not given stay. */
static uint32_t flags(const struct keying_state *s, const struct keying_in *in)
{
	uint32_t given = in->r->zrtp, out = given ? given : s->zrtp.flags;

	out = (out & ~NG_ZRTP_MODES) | mode(s, in);
	return in->r->sdes.require_given ? out | NG_ZRTP_REQUIRE : out;
}

static uint32_t suites_of(const struct keying_in *in)
{
	return in->r->sdes.require_given ? in->r->sdes.require : UINT32_MAX;
}

/* No media before the keys. other_encrypted: the other leg has keys, which RTP in clear on this one
 * would reveal. */
static bool holds(uint32_t flags, bool other_encrypted)
{
	if (flags & NG_ZRTP_REQUIRE || flags & NG_ZRTP_HOLD)
		return true;
	return !(flags & NG_ZRTP_CLEAR) && other_encrypted;
}

/* --- Lines ------------------------------------------------------------------------------------ */

static bool add_hash(struct keying_lines *to, const struct sdp_zrtp *z, const struct keying_in *in)
{
	struct str text;
	struct sbuf b;

	if (to->n == KEYING_LINES)
		return false;
	sbuf_init(&b, 0);
	sbuf_str(&b, STR("zrtp-hash:"));
	sdp_zrtp_write(&b, z);
	text = b.err ? STR_NONE : pool_strdup(in->p, sbuf_view(&b));
	sbuf_fini(&b);
	if (text.s)
		to->line[to->n++] = text;
	return text.s;
}

static bool add_ours(
	struct keying_lines *to, const struct keying_zrtp *s, const struct keying_in *in)
{
	const struct zrtp_self self = {.seed = s->seed, .zid = s->zid, .preshared = s->preshared};
	struct sdp_zrtp z = {.given = true};

	return zrtp_self_hash(z.hash, &self) == 0 && add_hash(to, &z, in);
}

static bool has_party(const struct keying_zrtp *s)
{
	static const uint8_t none[KEYING_ZRTP_ZID];

	return memcmp(s->party, none, sizeof(none)) != 0;
}

static bool draw_seed(struct keying_zrtp *s, const struct keying_in *in)
{
	if (!keying_draw(in->random, s->seed, sizeof(s->seed)) ||
		(!has_party(s) && !keying_draw(in->random, s->party, sizeof(s->party))))
		return false;
	memcpy(s->zid, in->host->zid ? in->host->zid : s->party, sizeof(s->zid));
	s->preshared = in->host->zid && in->host->zrtp_preshared;
	s->unused = true;
	return true;
}

void keying_share_party(struct keying_state *s, const struct keying_state *other)
{
	if (!has_party(&s->zrtp))
		memcpy(s->zrtp.party, other->zrtp.party, sizeof(s->zrtp.party));
}

static struct keying_error nomem(void)
{
	return (struct keying_error){NGE_NOMEM, STR("keys")};
}

/* --- Offers ----------------------------------------------------------------------------------- */

static bool could_accept(
	const struct keying_leg *l, const struct sdp_media *m, const struct keying_in *in)
{
	(void)l;
	(void)m;
	(void)in;
	return false; /* this chooses between two m-lines by keys in SDP, and ZRTP has none there */
}

/* An m-line with a=zrtp-hash is one of RTP all the same. */
static bool read_offer(const struct keying_leg *l, const struct sdp_media *m, uint32_t suites,
	const struct keying_in *in, struct keying_error *why)
{
	(void)suites;
	(void)why;
	if (!sdp_proto_is_secure(m->proto)) {
		sdp_zrtp_read(&l->state->zrtp.offered, in->sdp, m);
		l->state->zrtp.preauth.offered = keying_preauth_read(in, m);
	}
	return false;
}

static bool is_same_offer(
	const struct keying_state *s, const struct sdp *sdp, const struct sdp_media *m)
{
	struct sdp_zrtp now;

	if (!s->zrtp.offered.given)
		return true;
	sdp_zrtp_read(&now, sdp, m);
	return sdp_zrtp_eq(&now, &s->zrtp.offered);
}

/* The offerer's own line is kept if nothing else is wanted. */
static enum keying_result pass_on(struct keying_offer *o, const struct keying_in *in)
{
	const struct keying_state *from = o->from.state;
	struct keying_state *to = o->to.state;

	if (o->ours_only || o->wanted || !from->zrtp.offered.given ||
		from->in_force == KEYING_ZRTP || mode(to, in) == NG_ZRTP_OFF)
		return KEYING_PASSES;
	if (!add_hash(o->lines, &from->zrtp.offered, in)) {
		o->error = nomem();
		return KEYING_REFUSES;
	}
	to->zrtp.passed = true;
	return KEYING_ADDS;
}

static enum keying_result write_offer(struct keying_offer *o, const struct keying_in *in)
{
	struct keying_state *to = o->to.state;
	struct keying_zrtp *s = &to->zrtp;

	if (sdp_proto_is_secure(o->proto))
		return KEYING_PASSES;
	if (!in->host->zrtp || !is_ordered(to, in))
		return pass_on(o, in);
	if (to->in_force != KEYING_ZRTP && !s->unused) {
		if (!draw_seed(s, in)) {
			o->error = nomem();
			return KEYING_REFUSES;
		}
		s->exchange++;
	}
	s->preauth.asked =
		keying_preauth_offers(in, to->in_force == KEYING_ZRTP ? s->preauth.agreed : 0);
	if (!add_ours(o->lines, s, in) || !keying_preauth_write(o->lines, s->preauth.asked, in)) {
		o->error = nomem();
		return KEYING_REFUSES;
	}
	s->flags = flags(to, in);
	s->asked = true;
	return KEYING_ADDS;
}

/* --- Answers ---------------------------------------------------------------------------------- */

static uint64_t transport_of(const struct sdp_media *m)
{
	if (m->ice || endpoint_is_unspecified(&m->conn.addr))
		return 0;
	return hash_siphash((const uint8_t[16]){0}, &m->conn.addr, sizeof(m->conn.addr)) + m->port;
}

/* Whether what the terminal says needs another exchange. */
static bool is_new(const struct keying_state *state, const struct sdp_zrtp *now, uint64_t transport)
{
	const struct keying_zrtp *s = &state->zrtp;

	if (state->in_force != KEYING_ZRTP || !sdp_zrtp_eq(&s->theirs, now))
		return true;
	return !now->given && s->transport && transport && s->transport != transport;
}

static void forget_said(struct keying_zrtp *s)
{
	s->sas[0] = 0;
	s->verified = s->mismatched = s->enrolled = s->proven = s->cleared = false;
	s->discloses = false;
	memset(s->sas_hash, 0, sizeof(s->sas_hash));
	memset(s->peer_zid, 0, sizeof(s->peer_zid));
	secmem_wipe(&s->secret, sizeof(s->secret));
	secmem_wipe(&s->later, sizeof(s->later));
}

/* A new exchange comes into force; the keys of the one before stay until it has some. */
static void begin(struct keying_state *state)
{
	struct keying_zrtp *s = &state->zrtp;

	if (!s->unused)
		s->exchange++;
	s->unused = false;
	forget_said(s);
}

static void agree(struct keying_answer *a, const struct keying_leg *l,
	const struct sdp_zrtp *theirs, uint64_t transport, bool other_encrypted)
{
	struct keying_zrtp *s = &l->state->zrtp;
	bool had_one = l->state->in_force == KEYING_ZRTP, held = holds(s->flags, other_encrypted);

	if (is_new(l->state, theirs, transport))
		begin(l->state);
	if (had_one && l->rx->keys) {
		a->rx = *l->rx;
		a->tx = *l->tx;
		/* A new exchange brings its tags with its keys. */
		if (s->keyed == s->exchange)
			a->rx.preauth = a->tx.preauth =
				keying_preauth_fits(s->preauth.agreed, &l->rx->key[0], false);
	} else {
		a->rx = a->tx = (struct srtp_params){.awaited = held};
		if (!held)
			a->warning = STR("is sent and accepted in clear until ZRTP has keys");
	}
	s->theirs = *theirs;
	s->transport = transport ? transport : s->transport;
	l->state->in_force = KEYING_ZRTP;
}

static bool is_encrypted(const struct keying_leg *l)
{
	return l->rx && (!srtp_params_are_plain(l->rx) || !srtp_params_are_plain(l->tx));
}

static enum keying_result passed(
	struct keying_answer *a, const struct sdp_zrtp *theirs, const struct keying_in *in)
{
	if (!theirs->given || !a->offerer.state || mode(a->offerer.state, in) == NG_ZRTP_OFF)
		return KEYING_PASSES;
	a->joint = true;
	a->row = &keying_zrtp;
	a->answerer.state->in_force = KEYING_NONE;
	return KEYING_AGREES;
}

/* The terminal was offered RTP, and announces ZRTP on its own. The flags of an answer are about the
 * offerer, so only the policy counts. */
static bool announces_alone(
	const struct keying_state *s, const struct sdp_zrtp *theirs, const struct keying_in *in)
{
	return theirs->given && in->host->zrtp &&
		(s->in_force == KEYING_ZRTP || s->in_force == KEYING_NONE) &&
		in->host->zrtp_policy == ZRTP_POLICY_TERMINATE;
}

/* Our Hello was not announced to it, which RFC 6189 8.1 leaves to each party. */
static bool take_up(struct keying_state *s, const struct keying_in *in)
{
	if (s->in_force == KEYING_ZRTP)
		return true; /* the same answer again, as in 183 and 200 */
	if (!s->zrtp.unused) {
		if (!draw_seed(&s->zrtp, in))
			return false;
		s->zrtp.exchange++;
	}
	s->zrtp.flags = NG_ZRTP_TERMINATE;
	return true;
}

static enum keying_result read_answer(struct keying_answer *a, const struct keying_in *in)
{
	struct keying_state *s = a->answerer.state;
	const struct sdp_media *m = a->media;
	struct sdp_zrtp theirs;

	if (sdp_proto_is_secure(m->proto))
		return KEYING_PASSES;
	sdp_zrtp_read(&theirs, in->sdp, m);
	if (!s->zrtp.asked && !s->zrtp.passed && !announces_alone(s, &theirs, in))
		return KEYING_PASSES;
	if (!s->zrtp.asked && !s->zrtp.passed && !take_up(s, in)) {
		a->error = nomem();
		return KEYING_REFUSES;
	}
	if (s->zrtp.passed)
		return passed(a, &theirs, in);
	if (!theirs.given && s->sdes.suites && sdp_attr(m->lines, STR("crypto")))
		return KEYING_PASSES; /* the offer had SDES, too, and the terminal chose SDES */
	/* The answer must repeat the scheme of our offer. */
	s->zrtp.preauth.agreed = keying_preauth_read(in, m);
	if (s->zrtp.preauth.agreed != s->zrtp.preauth.asked)
		s->zrtp.preauth.agreed = 0;
	s->zrtp.suites = suites_of(in);
	s->zrtp.flags |= in->r->sdes.require_given ? NG_ZRTP_REQUIRE : 0;
	/* Without a=zrtp-hash the terminal is asked in the media path. */
	agree(a, &a->answerer, &theirs, transport_of(m),
		is_encrypted(&a->offerer) || keying_was_offered(a->offerer.state));
	return KEYING_AGREES;
}

static enum keying_result hand_back(struct keying_answer *a, const struct keying_in *in)
{
	struct sdp_zrtp theirs;

	sdp_zrtp_read(&theirs, in->sdp, a->media);
	if (!add_hash(a->lines, &theirs, in)) {
		a->error = nomem();
		return KEYING_REFUSES;
	}
	a->offerer.state->in_force = KEYING_NONE;
	a->rx = a->tx = (struct srtp_params){0};
	return KEYING_AGREES;
}

static enum keying_result write_answer(struct keying_answer *a, const struct keying_in *in)
{
	struct keying_state *state = a->offerer.state;
	struct keying_zrtp *s = &state->zrtp;
	uint32_t ordered = in->r->zrtp & (NG_ZRTP_TERMINATE | NG_ZRTP_REQUIRE);

	if (a->joint)
		return hand_back(a, in);
	if (!in->host->zrtp || !s->offered.given || !ends_here(mode(state, in)))
		return KEYING_PASSES;
	if (state->sdes.lines && !a->in_band_only && !ordered && state->in_force != KEYING_ZRTP)
		return KEYING_PASSES; /* the offer has SDES, too */
	if (is_new(state, &s->offered, 0) && !draw_seed(s, in)) {
		a->error = nomem();
		return KEYING_REFUSES;
	}
	if (s->unused)
		s->exchange++;
	s->preauth.agreed = keying_preauth_accepts(in) ? s->preauth.offered : 0;
	if (!add_ours(a->lines, s, in) || !keying_preauth_write(a->lines, s->preauth.agreed, in)) {
		a->error = nomem();
		return KEYING_REFUSES;
	}
	s->flags = flags(state, in);
	s->suites = suites_of(in);
	agree(a, &a->offerer, &s->offered, 0, is_encrypted(&a->answerer));
	return KEYING_AGREES;
}

/* --- State ------------------------------------------------------------------------------------ */

/* Its m-line counts as RTP in clear: keying_is_announced(). */
static bool was_offered(const struct keying_state *s)
{
	(void)s;
	return false;
}

static bool asks(const struct keying_state *s)
{
	return s->zrtp.asked;
}

static void drop_offered(struct keying_state *s)
{
	s->zrtp.offered = (struct sdp_zrtp){0};
	s->zrtp.preauth.offered = 0;
}

static void drop_asked(struct keying_state *s)
{
	s->zrtp.asked = s->zrtp.passed = false;
	s->zrtp.preauth.asked = 0;
}

static void end(struct keying_state *s)
{
	s->zrtp.theirs = (struct sdp_zrtp){0};
	s->zrtp.transport = 0;
	s->zrtp.keyed = 0;
	s->zrtp.preauth.agreed = 0;
	forget_said(&s->zrtp);
}

static bool is_of(const struct srtp_params *rx, uint32_t suites)
{
	return rx->awaited || suites >> srtp_params_suite(rx) & 1;
}

static void describe(const struct keying_state *s, struct sbuf *b)
{
	if (s->zrtp.asked)
		sbuf_printf(b, " with ZRTP");
	if (s->zrtp.passed)
		sbuf_printf(b, " with the offerer's own ZRTP");
}

static bool is_sound(const struct keying_state *s)
{
	return memchr(s->zrtp.sas, 0, sizeof(s->zrtp.sas)) && s->zrtp.sas_kind < ZRTP_SAS_N;
}

/* --- The exchange that the leg needs ---------------------------------------------------------- */

static bool exchange(struct keying_exchange *out, const struct keying_state *state)
{
	const struct keying_zrtp *s = &state->zrtp;

	*out = (struct keying_exchange){0};
	if (state->in_force != KEYING_ZRTP)
		return false;
	*out = (struct keying_exchange){.number = s->exchange,
		.flags = s->flags,
		.suites = s->suites,
		.preauth = s->preauth.agreed,
		.seed = s->seed,
		.zid = s->zid,
		.preshared = s->preshared,
		.party = s->party,
		.keyed = s->keyed && s->keyed == s->exchange,
		.cleared = s->cleared,
		.theirs = &s->theirs,
		.secret = &s->secret,
		.later = &s->later};
	return true;
}

void keying_exchanged(struct keying_state *state, const struct session_event *e)
{
	const struct session_said *what = &e->said;
	struct keying_zrtp *s = &state->zrtp;

	s->keyed = s->exchange;
	snprintf(s->sas, sizeof(s->sas), "%s", what->sas);
	s->verified = what->verified;
	s->mismatched = what->mismatched;
	s->enrolled = what->enrolled;
	s->discloses = what->discloses;
	s->proven = what->proof.known;
	s->sas_kind = what->proof.kind;
	memcpy(s->sas_hash, what->proof.hash, sizeof(s->sas_hash));
	memcpy(s->peer_zid, what->zid, sizeof(s->peer_zid));
	s->secret = e->secret;
	s->later = e->later;
	s->cleared = false;
}

void keying_said(struct session_said *out, const struct keying_state *state)
{
	const struct keying_zrtp *s = &state->zrtp;

	*out = (struct session_said){.verified = s->verified,
		.mismatched = s->mismatched,
		.enrolled = s->enrolled,
		.discloses = s->discloses,
		.proof = {.known = s->proven, .kind = s->sas_kind}};
	snprintf(out->sas, sizeof(out->sas), "%s", s->sas);
	memcpy(out->proof.hash, s->sas_hash, sizeof(out->proof.hash));
	memcpy(out->zid, s->peer_zid, sizeof(out->zid));
}

bool keying_verify(struct keying_state *state, struct zrtp_store *store, bool verified)
{
	struct keying_zrtp *s = &state->zrtp;

	if (!keying_sas(state))
		return false;
	s->verified = verified;
	s->mismatched = s->mismatched && !verified;
	if (store)
		(void)zrtp_store_verify(store, s->peer_zid, s->sas_hash, verified);
	return true;
}

const struct keying_zrtp *keying_sas(const struct keying_state *s)
{
	return s->in_force == KEYING_ZRTP && s->zrtp.keyed && s->zrtp.sas[0] ? &s->zrtp : NULL;
}

bool keying_go_clear(struct keying_state *s, const struct session_event *e)
{
	if (s->in_force != KEYING_ZRTP || !(s->zrtp.flags & NG_ZRTP_GOCLEAR) ||
		s->zrtp.flags & NG_ZRTP_REQUIRE)
		return false;
	s->zrtp.cleared = true;
	s->zrtp.keyed = 0;
	/* The secret before would lead to the keys that ended (RFC 6189 4.7.2.1). */
	s->zrtp.secret = e->secret;
	s->zrtp.later = e->later;
	return true;
}

bool keying_falls_back(const struct keying_state *s)
{
	return s->in_force == KEYING_ZRTP && s->zrtp.flags & NG_ZRTP_FALLBACK;
}

/* A terminal that announced ZRTP in SDP speaks it. If its packets are missing, an attacker may drop
 * them. */
bool keying_may_clear(const struct keying_state *s)
{
	return keying_falls_back(s) ||
		(s->in_force == KEYING_ZRTP && !s->zrtp.theirs.given &&
			!(s->zrtp.flags & (NG_ZRTP_REQUIRE | NG_ZRTP_HOLD)));
}

static const char *const *words(const struct keying_state *s)
{
	static const char *const names[] = {"ZRTP", NULL};

	(void)s;
	return names;
}

const struct keying_ops keying_zrtp = {.id = KEYING_ZRTP,
	.name = "ZRTP",
	.awaited = "ZRTP, no keys yet",
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
	.flags = words,
	.describe = describe,
	.is_sound = is_sound,
	.exchange = exchange};
