/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The I_MESSAGE of each mode (RFC 3830 3, RFC 4650 3.1, RFC 4738 3.2). */
#include "base/secmem.h"
#include "keying/mikey_int.h"

static bool by_psk(enum mikey_mode m)
{
	return m == MIKEY_PSK || m == MIKEY_DHHMAC;
}

static bool by_dh(enum mikey_mode m)
{
	return m == MIKEY_DH || m == MIKEY_DHHMAC;
}

static enum mikey_type type_of(enum mikey_mode m)
{
	switch (m) {
#define X(id, name, type, rfc) \
	case MIKEY_##id:       \
		return MIKEY_TYPE_##type;
		MIKEY_MODES(X)
#undef X
	default:
		return MIKEY_TYPE_ERROR;
	}
}

/* Checks that both parties have the credentials of the mode. */
static enum mikey_failure check(const struct mikey_start *s)
{
	if (s->mode >= MIKEY_MODE_COUNT)
		return MIKEY_FAIL_MODE;
	if (by_psk(s->mode) &&
		(s->peer->psk.len < MIKEY_PSK_MIN || s->peer->psk.len > MIKEY_PSK_MAX))
		return MIKEY_FAIL_IDENTITY;
	if (!by_psk(s->mode) && !mikey_cert_is_private(s->mine->cert))
		return MIKEY_FAIL_CERT;
	if (s->mode == MIKEY_PKE && !s->peer->cert)
		return MIKEY_FAIL_CERT;
	if (by_dh(s->mode) && !mikey_dh_len(s->offer->dh_group))
		return MIKEY_FAIL_DH_GROUP;
	if (!s->offer->media || s->offer->media > MIKEY_MEDIA_MAX)
		return MIKEY_FAIL_SESSIONS;
	return s->mode == MIKEY_PKE
		? mikey_trust_pinned(s->peer->trust, s->peer->cert, mikey_unix_s(s->env.now_ntp))
		: MIKEY_OK;
}

static enum mikey_failure suites(struct mikey_run *r, const struct mikey_offer *o)
{
	for (uint32_t i = 0; i < o->suites && i < MIKEY_SUITES_MAX; i++)
		if (mikey_suite_known(o->suite[i]))
			r->suite[r->suites++] = o->suite[i];
	if (!r->suites)
		return MIKEY_FAIL_POLICY;
	if (r->mode != MIKEY_RSAR)
		r->suites = 1;
	return MIKEY_OK;
}

static void sessions(struct mikey_run *r, const struct mikey_offer *o)
{
	r->media = o->media;
	r->sessions = (uint8_t)(2 * o->media);
	for (uint32_t i = 0; i < o->media; i++) {
		r->cs[2 * i].ssrc = o->stream[i].ssrc;
		r->cs[2 * i].roc = o->stream[i].roc;
	}
	for (uint32_t i = 0; i < r->sessions; i++)
		r->cs_suite[i] = r->suite[0];
}

static bool draw(struct mikey_run *r, const struct mikey_env *e)
{
	uint8_t csb[4];

	if (!mikey_random(e, csb, sizeof(csb)) || !mikey_random(e, r->rand, MIKEY_RAND_MIN))
		return false;
	r->csb_id = be32(csb);
	r->rand_len = MIKEY_RAND_MIN;
	return true;
}

/* Identities as the messages have them. */
static void names(struct mikey_run *r, const struct mikey_start *s)
{
	r->mine = s->mine->id;
	if (!r->mine.len && s->mine->cert)
		(void)mikey_cert_name(s->mine->cert, &r->mine);
	r->peer = s->peer->id;
	r->idi = r->mine;
	r->idr = s->peer->id;
}

static enum mikey_failure begin(struct mikey_run *r, const struct mikey_start *s)
{
	enum mikey_failure f = check(s);

	memset(r, 0, sizeof(*r));
	r->layout = MIKEY_RUN_LAYOUT;
	r->mode = (uint8_t)s->mode;
	r->initiator = true;
	if (f)
		return f;
	/* RSA-R demands the bit (RFC 4738 3.4); the Diffie-Hellman modes always have a response. */
	r->verify = s->mode == MIKEY_RSAR ||
		((s->mode == MIKEY_PSK || s->mode == MIKEY_PKE) && !s->offer->no_verify);
	r->time = s->env.now_ntp;
	r->ts_type = MIKEY_TS_NTP_UTC;
	f = suites(r, s->offer);
	if (f)
		return f;
	sessions(r, s->offer);
	names(r, s);
	return draw(r, &s->env) ? MIKEY_OK : MIKEY_FAIL_INTERNAL;
}

static bool psk_keys(struct mikey_run *r, const struct mikey_psk *psk, struct mikey_transport *t)
{
	if (!mikey_transport_keys(t, mikey_bytes(psk->key, psk->len), r->csb_id,
		    mikey_bytes(r->rand, r->rand_len)))
		return false;
	memcpy(r->auth_key, t->auth, sizeof(r->auth_key));
	return true;
}

static bool put_psk(struct mikey_writer *w, struct mikey_run *r, const struct mikey_start *s)
{
	uint8_t data[MIKEY_KEMAC_MAX];
	struct mikey_transport t;
	size_t len = 0;
	bool ok = psk_keys(r, &s->peer->psk, &t) && mikey_new_tgk(r, &s->env);

	if (ok)
		len = mikey_tgk_data(data, r, NULL);
	ok = len && mikey_transport_crypt(&t, r->csb_id, r->time, data, len);
	if (ok)
		mikey_write_kemac(
			w, MIKEY_KEMAC_AES_CM_128, mikey_bytes(data, len), MIKEY_MAC_HMAC_SHA1);
	secmem_wipe(data, sizeof(data));
	secmem_wipe(&t, sizeof(t));
	return ok;
}

static bool put_dh(struct mikey_writer *w, struct mikey_run *r, const struct mikey_start *s)
{
	r->dh_group = s->offer->dh_group;
	r->secret_len = MIKEY_DH_SECRET_LEN;
	r->tgk_len = (uint8_t)mikey_dh_len(r->dh_group);
	if (!mikey_random(&s->env, r->secret, r->secret_len) ||
		mikey_dh_public(r->dh_group, mikey_bytes(r->secret, r->secret_len), r->tgk))
		return false;
	mikey_write_dh(w, r->dh_group, mikey_bytes(r->tgk, r->tgk_len));
	return true;
}

static bool put_dhhmac(struct mikey_writer *w, struct mikey_run *r, const struct mikey_start *s)
{
	struct mikey_transport t;
	bool ok = psk_keys(r, &s->peer->psk, &t) && put_dh(w, r, s);

	secmem_wipe(&t, sizeof(t));
	mikey_write_kemac(w, MIKEY_KEMAC_NULL, STR_NONE, MIKEY_MAC_HMAC_SHA1);
	return ok;
}

static bool put_keys(struct mikey_writer *w, struct mikey_run *r, const struct mikey_start *s)
{
	struct mikey_envelope e = {
		.to = s->peer->cert, .id = &r->mine, .oaep = s->offer->oaep, .chash = true};

	switch (s->mode) {
	case MIKEY_PSK:
		return put_psk(w, r, s);
	case MIKEY_PKE:
		return mikey_put_envelope(w, r, &s->env, &e);
	case MIKEY_DH:
		return put_dh(w, r, s);
	case MIKEY_DHHMAC:
		return put_dhhmac(w, r, s);
	default:
		return true;
	}
}

static enum mikey_failure write_message(
	struct mikey_run *r, const struct mikey_start *s, struct mikey_out *out)
{
	struct mikey_writer w;

	mikey_put_header(&w, out, r, type_of(s->mode));
	mikey_put_time(&w, r);
	mikey_write_rand(&w, mikey_bytes(r->rand, r->rand_len));
	mikey_put_id(&w, &r->idi);
	if (!by_psk(s->mode))
		mikey_put_certs(&w, s->mine->cert);
	mikey_put_id(&w, &r->idr);
	if (s->offer->sdp_ids.len)
		mikey_write_ext(&w, MIKEY_EXT_SDP_IDS, s->offer->sdp_ids);
	for (uint8_t i = 0; i < r->suites; i++)
		mikey_put_policy(&w, i, r->suite[i]);
	if (!put_keys(&w, r, s))
		return MIKEY_FAIL_INTERNAL;
	return by_psk(s->mode) ? mikey_end_mac(&w, out, r, false)
			       : mikey_end_sign(&w, out, s->mine->cert, NULL);
}

enum mikey_failure mikey_initiate(
	struct mikey_run *run, const struct mikey_start *s, struct mikey_out *out)
{
	enum mikey_failure f;

	out->len = 0;
	f = begin(run, s);
	if (!f)
		f = write_message(run, s, out);
	if (f) {
		secmem_wipe(run, sizeof(*run));
		run->layout = MIKEY_RUN_LAYOUT;
	}
	run->failure = (uint8_t)f;
	run->state = f ? MIKEY_FAILED : MIKEY_SENT;
	return f;
}
