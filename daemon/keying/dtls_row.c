/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DTLS-SRTP in offers and answers (RFC 5763, RFC 8842): fingerprints, roles, and when a new
 * association is needed. The keys come later, from the association itself (call/session.h); until
 * then the leg's parameters wait, and nothing is sent or accepted. Pure. */
#include "base/hash.h"
#include "base/secmem.h"
#include "keying/preauth_policy.h"
#include "keying/rows.h"

/* DTLS=NENA: profiles with AES-256. */
#define NENA_SUITES  (1u << SUITE_AEAD_AES_256_GCM)
#define TLS_ID_BYTES 20u /* 160 bits, as 40 hexadecimal digits (RFC 8842 4: at least 120) */

/* --- The terminal's SDP ----------------------------------------------------------------------- */

static uint64_t hash_of(struct str text)
{
	static const uint8_t no_secret[16];

	return text.len ? hash_siphash(no_secret, text.s, text.len) : 0;
}

static bool read_said(
	struct keying_dtls_said *out, const struct sdp_media *m, const struct keying_in *in)
{
	struct sdp_dtls d;

	*out = (struct keying_dtls_said){0};
	if (!in->host->dtls || !m->dtls)
		return false;
	sdp_dtls_read(&d, in->sdp, m);
	if (!in->host->sha1)
		for (uint32_t i = d.prints.count; i-- > 0;)
			if (d.prints.f[i].hash == DTLS_SHA1)
				d.prints.f[i] = d.prints.f[--d.prints.count];
	out->given = d.prints.count;
	out->prints = d.prints;
	out->setup = (uint8_t)d.setup;
	out->tls = sdp_proto_is_dtls(m->proto);
	out->tls_id = hash_of(d.tls_id);
	out->preauth = keying_preauth_read(in, m);
	/* c=0.0.0.0 is an old way to hold a call (RFC 2543), and says nothing of the transport. */
	if (!m->ice && !endpoint_is_unspecified(&m->conn.addr))
		out->transport =
			hash_siphash((const uint8_t[16]){0}, &m->conn.addr, sizeof(m->conn.addr)) +
			m->port;
	return out->given;
}

/* The certificate that our SDP names is not that of the association: it was renewed or loaded
 * again, or we were restarted. */
static bool have_new_certificate(const struct keying_dtls *s, uint64_t cert)
{
	return s->our_cert && s->our_cert != cert;
}

/* Whether what the terminal says now, or the certificate that our SDP names, needs a new
 * association (RFC 8842 5.1). With a=tls-id it decides. */
static bool is_new(
	const struct keying_state *state, const struct keying_dtls_said *now, uint64_t cert)
{
	const struct keying_dtls *s = &state->dtls;
	const struct keying_dtls_said *before = &s->in_force;

	if (state->in_force != KEYING_DTLS || !s->role || !before->given || s->announced ||
		have_new_certificate(s, cert) ||
		!sdp_fingerprints_eq(&before->prints, &now->prints))
		return true;
	if (before->tls_id && now->tls_id)
		return before->tls_id != now->tls_id;
	/* Old-style hold names no address: nothing moved. */
	return before->transport && now->transport && before->transport != now->transport;
}

/* --- Our SDP ---------------------------------------------------------------------------------- */

static bool add(struct keying_lines *to, struct str text)
{
	if (!text.s || to->n == KEYING_LINES)
		return false;
	to->line[to->n++] = text;
	return true;
}

static bool draw_id(struct keying_dtls *s, const struct keying_in *in)
{
	static const char digit[] = "0123456789abcdef";
	uint8_t b[TLS_ID_BYTES];

	if (!keying_draw(in->random, b, sizeof(b)))
		return false;
	for (uint32_t i = 0; i < TLS_ID_BYTES; i++) {
		s->our_id[2 * i] = digit[b[i] >> 4];
		s->our_id[2 * i + 1] = digit[b[i] & 15];
	}
	return true;
}

/* preauth: as keying_preauth_read(). */
static bool write_lines(struct keying_lines *to, const struct keying_dtls *s, enum dtls_setup setup,
	uint8_t preauth, const struct keying_in *in)
{
	struct sbuf b;
	bool ok;

	sbuf_init(&b, 0);
	sbuf_str(&b, STR("fingerprint:"));
	sdp_fingerprint_write(&b, &in->host->print);
	ok = !b.err && add(to, pool_strdup(in->p, sbuf_view(&b)));
	sbuf_fini(&b);
	ok = ok && add(to, pool_printf(in->p, "setup:%s", dtls_setup_name(setup)));
	if (ok && !ng_flag(in->r, NG_FLAG_NO_TLS_ID))
		ok = add(to, pool_printf(in->p, "tls-id:%.*s", KEYING_TLS_ID, s->our_id));
	return ok && keying_preauth_write(to, preauth, in);
}

static struct keying_error nomem(void)
{
	return (struct keying_error){NGE_NOMEM, STR("keys")};
}

/* The request demands suites, and DTLS may agree on none of them. */
static struct keying_error no_profile(void)
{
	return (struct keying_error){
		NGE_SUITE, STR("--dtls-profiles has no profile that the request allows")};
}

/* --- Offers ----------------------------------------------------------------------------------- */

/* Towards the terminal that gets the SDP. What the other one offers is its own matter. */
static bool is_off(const struct keying_in *in)
{
	return !in->host->dtls || in->r->dtls == NG_DTLS_OFF;
}

static bool could_accept(
	const struct keying_leg *l, const struct sdp_media *m, const struct keying_in *in)
{
	struct keying_dtls_said said;

	(void)l;
	return read_said(&said, m, in) && said.setup != DTLS_SETUP_HOLDCONN;
}

static bool read_offer(const struct keying_leg *l, const struct sdp_media *m, uint32_t suites,
	const struct keying_in *in, struct keying_error *why)
{
	struct keying_dtls *s = &l->state->dtls;

	s->offered = (struct keying_dtls_said){0};
	if (!in->host->dtls || !m->dtls)
		return false;
	if (!read_said(&s->offered, m, in)) {
		*why = (struct keying_error){
			NGE_FINGERPRINT, STR("no fingerprint of a hash that is accepted")};
		return false;
	}
	if (s->offered.setup == DTLS_SETUP_HOLDCONN) {
		s->offered.given = false;
		*why = (struct keying_error){
			NGE_SETUP, str_from(dtls_role_err_text(DTLS_ROLE_ERR_HOLDCONN))};
		return false;
	}
	s->suites = suites & in->host->profiles;
	if (!s->suites) {
		s->offered.given = false;
		*why = no_profile();
		return false;
	}
	if (in->r->dtls == NG_DTLS_PASSIVE || in->r->dtls == NG_DTLS_ACTIVE)
		s->passive = in->r->dtls == NG_DTLS_PASSIVE;
	return true;
}

/* One of the fingerprints was offered before. */
static bool is_same_offer(
	const struct keying_state *state, const struct sdp *sdp, const struct sdp_media *m)
{
	const struct keying_dtls_said *said = &state->dtls.offered;
	struct sdp_dtls now;
	bool found = false;

	if (!said->given)
		return true;
	sdp_dtls_read(&now, sdp, m);
	for (uint32_t i = 0; i < now.prints.count && !found; i++)
		for (uint32_t k = 0; k < said->prints.count && !found; k++)
			found = sdp_fingerprint_eq(&now.prints.f[i], &said->prints.f[k]);
	return found;
}

static enum keying_result write_offer(struct keying_offer *o, const struct keying_in *in)
{
	struct keying_dtls *s = &o->to.state->dtls;

	if (is_off(in) || !sdp_proto_is_dtls(o->proto))
		return KEYING_PASSES;
	/* A new association has a new a=tls-id (RFC 8842 5.2). */
	if (!s->our_id[0] || o->to.state->in_force != KEYING_DTLS ||
		have_new_certificate(s, in->host->cert)) {
		if (!draw_id(s, in)) {
			o->error = nomem();
			return KEYING_REFUSES;
		}
		s->announced = true;
	}
	s->asked_setup = (uint8_t)dtls_setup_offer((enum dtls_role)s->role, false);
	s->asked = true;
	s->asked_cert = in->host->cert;
	s->asked_preauth = keying_preauth_offers(
		in, o->to.state->in_force == KEYING_DTLS ? s->in_force.preauth : 0);
	s->nena = in->r->nena || (s->nena && o->to.state->in_force == KEYING_DTLS);
	s->suites = in->host->profiles & (s->nena ? NENA_SUITES : UINT32_MAX);
	if (!s->suites) {
		o->error = no_profile();
		return KEYING_REFUSES;
	}
	if (o->to.state->in_force != KEYING_DTLS)
		s->association++;
	if (!write_lines(o->lines, s, (enum dtls_setup)s->asked_setup, s->asked_preauth, in)) {
		o->error = nomem();
		return KEYING_REFUSES;
	}
	return s->nena ? KEYING_AGREES : KEYING_ADDS;
}

/* --- Answers ---------------------------------------------------------------------------------- */

/* The certificate that our SDP to this leg names: after an offer of ours, the one of then. */
static uint64_t named_cert(
	const struct keying_answer *a, const struct keying_leg *l, const struct keying_in *in)
{
	const struct keying_dtls *s = &l->state->dtls;

	return l == &a->answerer && s->asked_cert ? s->asked_cert : in->host->cert;
}

/* Puts the agreed parameters into force. An association's keys stay in use until the next
 * association has keys. */
static void agree(struct keying_answer *a, const struct keying_leg *l,
	const struct keying_dtls_said *said, enum dtls_role role, const struct keying_in *in)
{
	struct keying_dtls *s = &l->state->dtls;
	uint64_t cert = named_cert(a, l, in);
	bool fresh = is_new(l->state, said, cert) || s->role != role,
	     had_one = l->state->in_force == KEYING_DTLS;
	uint64_t transport = fresh || said->transport ? said->transport : s->in_force.transport;

	/* The first one of an offer of ours has its number from write_offer(). */
	if (fresh && (l == &a->offerer || s->role))
		s->association++;
	s->our_cert = cert;
	s->announced = false;
	if (had_one) {
		a->rx = *l->rx;
		a->tx = *l->tx;
		/* A new association brings its tags with its keys. */
		if (!fresh)
			a->rx.preauth = a->tx.preauth =
				keying_preauth_fits(said->preauth, &l->rx->key[0], false);
	} else {
		a->rx = a->tx = (struct srtp_params){.awaited = true};
	}
	s->in_force = *said;
	s->in_force.transport = transport;
	s->role = (uint8_t)role;
	s->may_clear = in->emergency && ng_flag(in->r, NG_FLAG_ALLOW_RTP_ANSWER) && !s->nena;
	l->state->in_force = KEYING_DTLS;
}

bool keying_may_do_without(const struct keying_state *s)
{
	return s->in_force == KEYING_DTLS && s->dtls.may_clear;
}

static enum keying_result refuse(struct keying_answer *a, enum dtls_role_err err)
{
	a->error = (struct keying_error){NGE_SETUP, str_from(dtls_role_err_text(err))};
	return KEYING_REFUSES;
}

/* Before there are keys, the profiles that we offer are what may be agreed on. */
static bool is_of(const struct srtp_params *rx, uint32_t suites)
{
	return rx->awaited || suites >> srtp_params_suite(rx) & 1;
}

static enum keying_result refuse_weak(struct keying_answer *a)
{
	a->error =
		(struct keying_error){NGE_SUITE, STR("DTLS=NENA demands DTLS-SRTP with AES-256")};
	return KEYING_REFUSES;
}

/* Keys in force of another suite, or none that is left. */
static bool is_too_weak(const struct keying_leg *l)
{
	const struct keying_dtls *s = &l->state->dtls;

	return !(s->suites & NENA_SUITES) ||
		(l->state->in_force == KEYING_DTLS && !is_of(l->rx, NENA_SUITES));
}

/* Our offer had a=crypto and a=fingerprint, and the answer has only a=crypto, in the profile of
 * the offer (RFC 3264 6). */
static bool took_sdes(const struct keying_answer *a)
{
	return a->answerer.state->sdes.suites && sdp_attr(a->media->lines, STR("crypto"));
}

static enum keying_result read_answer(struct keying_answer *a, const struct keying_in *in)
{
	struct keying_dtls *s = &a->answerer.state->dtls;
	struct keying_dtls_said said;
	enum dtls_role role;
	enum dtls_role_err err;

	if (!s->asked)
		return KEYING_PASSES;
	if (!read_said(&said, a->media, in)) {
		if (!a->media->dtls && (!sdp_proto_is_dtls(a->media->proto) || took_sdes(a)))
			return s->nena ? refuse_weak(a) : KEYING_PASSES;
		a->error = (struct keying_error){
			NGE_FINGERPRINT, STR("the answer has none that is accepted")};
		return KEYING_REFUSES;
	}
	err = dtls_setup_answered(
		&role, (enum dtls_setup)s->asked_setup, (enum dtls_setup)said.setup);
	if (err)
		return refuse(a, err);
	if (in->r->sdes.require_given)
		s->suites = in->r->sdes.require & in->host->profiles &
			(s->nena ? NENA_SUITES : UINT32_MAX);
	if (s->nena && is_too_weak(&a->answerer))
		return refuse_weak(a);
	if (!s->suites) {
		a->error = no_profile();
		return KEYING_REFUSES;
	}
	/* The answer must repeat the scheme of our offer. */
	if (said.preauth != s->asked_preauth)
		said.preauth = 0;
	agree(a, &a->answerer, &said, role, in);
	return KEYING_AGREES;
}

static enum keying_result write_answer(struct keying_answer *a, const struct keying_in *in)
{
	struct keying_dtls *s = &a->offerer.state->dtls;
	enum dtls_setup setup;
	enum dtls_role role;
	enum dtls_role_err err;
	bool fresh, nena = in->r->nena || s->nena;

	/* If the offer had both, the answer's profile decides. */
	if (!s->offered.given || is_off(in) ||
		(a->offerer.state->sdes.lines && !nena &&
			(in->r->sdes.flags & NG_SDES_PREFER || !s->offered.tls)))
		return KEYING_PASSES;
	s->nena = nena;
	s->suites &= nena ? NENA_SUITES : UINT32_MAX;
	if (nena && is_too_weak(&a->offerer))
		return refuse_weak(a);
	fresh = is_new(a->offerer.state, &s->offered, in->host->cert);
	err = dtls_setup_answer(&setup, &role, (enum dtls_setup)s->offered.setup,
		s->passive ? DTLS_ROLE_SERVER : DTLS_ROLE_CLIENT,
		fresh ? DTLS_ROLE_NONE : (enum dtls_role)s->role);
	if (err)
		return refuse(a, err);
	/* A new association has a new a=tls-id (RFC 8842 5.3). Another role needs one, too. */
	fresh |= role != s->role;
	if ((!s->our_id[0] || fresh) && !draw_id(s, in)) {
		a->error = nomem();
		return KEYING_REFUSES;
	}
	if (!write_lines(a->lines, s, setup, s->offered.preauth, in)) {
		a->error = nomem();
		return KEYING_REFUSES;
	}
	agree(a, &a->offerer, &s->offered, role, in);
	return KEYING_AGREES;
}

/* --- State ------------------------------------------------------------------------------------ */

static bool was_offered(const struct keying_state *s)
{
	return s->dtls.offered.given;
}

static bool asks(const struct keying_state *s)
{
	return s->dtls.asked;
}

static void drop_offered(struct keying_state *s)
{
	s->dtls.offered = (struct keying_dtls_said){0};
}

static void drop_asked(struct keying_state *s)
{
	s->dtls.asked = false;
}

static void end(struct keying_state *s)
{
	if (s->dtls.role) /* the next one has a number of its own, whoever answers */
		s->dtls.association++;
	s->dtls.role = DTLS_ROLE_NONE;
	s->dtls.in_force = (struct keying_dtls_said){0};
}

static void describe(const struct keying_state *s, struct sbuf *b)
{
	if (s->dtls.asked)
		sbuf_printf(b, " with DTLS");
}

static bool said_is_sound(const struct keying_dtls_said *s)
{
	bool sound = s->prints.count <= DTLS_FINGERPRINTS;

	for (uint32_t i = 0; sound && i < s->prints.count; i++)
		sound = s->prints.f[i].hash < DTLS_HASH_COUNT;
	return sound;
}

static bool is_sound(const struct keying_state *s)
{
	return said_is_sound(&s->dtls.offered) && said_is_sound(&s->dtls.in_force);
}

/* --- The association that the leg needs ------------------------------------------------------- */

static bool association(struct keying_association *out, const struct keying_state *state)
{
	const struct keying_dtls *s = &state->dtls;

	*out = (struct keying_association){0};
	if (state->in_force == KEYING_DTLS)
		*out = (struct keying_association){.number = s->association,
			.suites = s->suites,
			.role = s->role,
			.preauth = s->in_force.preauth,
			.cert = s->announced ? s->asked_cert : s->our_cert,
			.prints = &s->in_force.prints};
	else if (s->asked)
		*out = (struct keying_association){
			.number = s->association, .suites = s->suites, .cert = s->asked_cert};
	return state->in_force == KEYING_DTLS || s->asked;
}

static const char *const *flags(const struct keying_state *s)
{
	static const char *const client[] = {"DTLS-SRTP", "DTLS role active", NULL},
				 *const server[] = {"DTLS-SRTP", "DTLS role passive", NULL};

	return s->dtls.role == DTLS_ROLE_CLIENT ? client : server;
}

const struct keying_ops keying_dtls = {.id = KEYING_DTLS,
	.name = "DTLS-SRTP",
	.awaited = "DTLS-SRTP, no keys yet",
	.proof = "DTLS fingerprint verified",
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
	.association = association};
