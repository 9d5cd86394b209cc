/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A received I_MESSAGE: form, identities, freshness, proof, policy, keys, in this order. Cheap
 * checks come first. The replay memory changes last, so a refused message may come again. */
#include <errno.h>

#include "base/secmem.h"
#include "keying/mikey_int.h"

/* State of a responder. */
struct work {
	struct mikey_run *run;
	const struct mikey_answer *a;
	struct mikey_in in;
	struct mikey_identity mine;
	struct mikey_peer peer;
	struct mikey_transport t; /* PSK, PKE, DHHMAC */
	struct mikey_key_list keys;
	uint8_t buf[MIKEY_KEMAC_MAX];
	uint8_t dh[MIKEY_TGK_MAX]; /* DH: our public value */
};

static bool by_psk(const struct mikey_run *r)
{
	return r->mode == MIKEY_PSK || r->mode == MIKEY_DHHMAC;
}

static enum mikey_mode mode_of(uint8_t type)
{
	switch (type) {
#define X(id, name, t, rfc)  \
	case MIKEY_TYPE_##t: \
		return MIKEY_##id;
		MIKEY_MODES(X)
#undef X
	default:
		return MIKEY_MODE_COUNT;
	}
}

/* --- Step 1: the form ------------------------------------------------------------------------*/

static bool complete(const struct work *w)
{
	const struct mikey_in *in = &w->in;
	const struct mikey_payload *last;

	if (!in->t || (!in->rand && w->run->mode != MIKEY_RSAR))
		return false;
	last = &in->m.payload[in->m.payloads - 1];
	switch (w->run->mode) {
	case MIKEY_PSK:
		return last == in->kemac;
	case MIKEY_PKE:
		return in->kemac && in->pke && in->sign;
	case MIKEY_DH:
		return in->dh[0] && !in->dh[1] && in->sign;
	case MIKEY_DHHMAC:
		return in->dh[0] && !in->dh[1] && last == in->kemac;
	default:
		return in->sign;
	}
}

static void take_header(struct mikey_run *r, const struct mikey_in *in)
{
	const struct mikey_header *h = &in->m.header;

	r->csb_id = h->csb_id;
	r->verify = h->verify;
	r->ts_type = in->t->kind;
	r->time = in->t->time;
	if (in->rand) {
		r->rand_len = (uint8_t)in->rand->data.len;
		memcpy(r->rand, in->rand->data.s, r->rand_len);
	}
}

static enum mikey_failure form(struct work *w, struct str message)
{
	struct mikey_run *r = w->run;
	enum mikey_failure f = mikey_in_read(&w->in, message);
	enum mikey_mode mode = mode_of(w->in.m.header.type);

	r->csb_id = w->in.m.header.csb_id;
	if (w->in.t && w->in.t->kind != MIKEY_TS_COUNTER) { /* refused below */
		r->ts_type = w->in.t->kind;
		r->time = w->in.t->time;
	}
	if (f)
		return f;
	if (mode == MIKEY_MODE_COUNT)
		return MIKEY_FAIL_TYPE;
	r->mode = (uint8_t)mode;
	if (!(w->a->accept->modes & 1u << mode))
		return MIKEY_FAIL_MODE;
	if (!complete(w))
		return MIKEY_FAIL_MISSING;
	if (w->in.t->kind == MIKEY_TS_COUNTER)
		return MIKEY_FAIL_TIME;
	take_header(r, &w->in);
	return MIKEY_OK;
}

/* --- Step 2: who -----------------------------------------------------------------------------*/

static enum mikey_failure parties(struct work *w)
{
	const struct mikey_store *s = w->a->store;
	struct mikey_ask ask = {.mode = w->run->mode, .from = w->in.idi, .to = w->in.idr};

	if (!ask.from.len && w->in.cert && mikey_cert_name(w->in.cert, &ask.from))
		return MIKEY_FAIL_CERT_NAME;
	switch (s->find(s->arg, &ask, &w->mine, &w->peer)) {
	case 0:
		break;
	case -EACCES:
		return MIKEY_FAIL_FORBIDDEN;
	default:
		return MIKEY_FAIL_IDENTITY;
	}
	if (by_psk(w->run) && (w->peer.psk.len < MIKEY_PSK_MIN || w->peer.psk.len > MIKEY_PSK_MAX))
		return MIKEY_FAIL_IDENTITY;
	if (!by_psk(w->run) && !mikey_cert_is_private(w->mine.cert))
		return MIKEY_FAIL_CERT;
	w->run->mine = w->mine.id.len ? w->mine.id : w->in.idr;
	if (!w->run->mine.len && w->mine.cert)
		(void)mikey_cert_name(w->mine.cert, &w->run->mine);
	w->run->peer = ask.from.len ? ask.from : w->peer.id;
	w->run->idi = w->in.idi;
	w->run->idr = w->in.idr;
	return MIKEY_OK;
}

/* --- Step 3: proof and freshness -------------------------------------------------------------*/

static struct mikey_stamp stamp(const struct work *w)
{
	return (struct mikey_stamp){
		.from = mikey_id_str(&w->run->peer),
		.to = mikey_id_str(&w->run->mine),
		.owner = mikey_id_str(w->peer.owner.len ? &w->peer.owner : &w->run->peer),
		.message = w->in.covered,
		.time = w->run->time,
		.skew_s = w->a->accept->skew_s,
		.now_ntp = w->a->env.now_ntp,
	};
}

static enum mikey_failure proof_by_psk(struct work *w)
{
	const struct mikey_run *r = w->run;

	if (!mikey_transport_keys(&w->t, mikey_bytes(w->peer.psk.key, w->peer.psk.len), r->csb_id,
		    mikey_bytes(r->rand, r->rand_len)))
		return MIKEY_FAIL_INTERNAL;
	return mikey_in_mac(&w->in, w->t.auth, NULL);
}

/* A chain is checked before a signature: no key of a stranger is used. */
static enum mikey_failure proof_by_cert(struct work *w)
{
	enum mikey_failure f = mikey_in_cert(&w->in, &w->peer, &w->in.idi, w->a->env.now_ntp);

	return f ? f : mikey_in_sign(&w->in, w->peer.cert, NULL);
}

/* After authentication, all modes except this one compute for milliseconds. */
static enum mikey_failure afford(const struct work *w)
{
	const struct mikey_store *s = w->a->store;
	bool ok = w->run->mode == MIKEY_PSK || !s->afford || s->afford(s->arg, &w->peer);

	return ok ? MIKEY_OK : MIKEY_FAIL_RATE;
}

static enum mikey_failure proof(struct work *w)
{
	struct mikey_stamp s = stamp(w);
	enum mikey_failure f = mikey_replay_check(w->a->replay, &s);

	if (f)
		return f;
	f = by_psk(w->run) ? proof_by_psk(w) : proof_by_cert(w);
	if (f)
		return f;
	/* With certificates, no common key can authenticate an Error message yet. */
	w->run->believed = by_psk(w->run);
	memcpy(w->run->auth_key, w->t.auth, sizeof(w->run->auth_key));
	return MIKEY_OK;
}

static enum mikey_failure remember(struct work *w)
{
	struct mikey_stamp s = stamp(w);

	return mikey_replay_add(w->a->replay, &s);
}

/* --- Step 4: policy --------------------------------------------------------------------------*/

/* The list of protocols is inside of what was proved: nobody removed a better one from the SDP.
 * Without a list, MIKEY may be the only one. */
static bool right_sdp_ids(const struct work *w)
{
	struct str want = w->a->accept->sdp_ids;
	const struct mikey_payload *p, *found = NULL;

	if (!want.s)
		return true;
	for (uint32_t i = 0; (p = mikey_payload_find(&w->in.m, MIKEY_P_EXT, i)); i++) {
		if (p->kind != MIKEY_EXT_SDP_IDS)
			continue;
		if (found)
			return false;
		found = p;
	}
	return str_eq(found ? found->data : MIKEY_PROTOCOL, want);
}

static bool accepted(const struct mikey_accept *a, enum srtp_suite_id suite)
{
	for (uint32_t i = 0; i < a->suites && i < MIKEY_SUITES_MAX; i++)
		if (a->suite[i] == suite && mikey_suite_known(suite))
			return true;
	return false;
}

/* RSA-R: our first suite that the initiator named, or our first one if it named none. */
static enum srtp_suite_id choose(const struct work *w)
{
	const struct mikey_accept *a = w->a->accept;
	bool any = mikey_payload_find(&w->in.m, MIKEY_P_SP, 0);
	const struct mikey_payload *sp;

	for (uint32_t i = 0; i < a->suites && i < MIKEY_SUITES_MAX; i++) {
		if (!any && mikey_suite_known(a->suite[i]))
			return a->suite[i];
		for (uint32_t n = 0; (sp = mikey_payload_find(&w->in.m, MIKEY_P_SP, n)); n++)
			if (mikey_policy_of(&w->in.m, sp->number) == a->suite[i])
				return a->suite[i];
	}
	return SUITE_PLAIN;
}

/* For an Error message, which names the suites that are accepted (RFC 3830 5.1.2). */
static void remember_suites(struct mikey_run *r, const struct mikey_accept *a)
{
	for (uint32_t i = 0; i < a->suites && i < MIKEY_SUITES_MAX; i++)
		if (mikey_suite_known(a->suite[i]))
			r->suite[r->suites++] = a->suite[i];
}

static enum mikey_failure policy(struct work *w)
{
	const struct mikey_header *h = &w->in.m.header;
	const struct mikey_accept *a = w->a->accept;
	struct mikey_run *r = w->run;
	enum srtp_suite_id chosen = r->mode == MIKEY_RSAR ? choose(w) : SUITE_PLAIN;

	remember_suites(r, a);
	if (!right_sdp_ids(w))
		return MIKEY_FAIL_SDP_IDS;
	if (h->map_type != MIKEY_MAP_SRTP_ID || !a->media || a->media > MIKEY_MEDIA_MAX ||
		h->sessions != 2 * a->media)
		return MIKEY_FAIL_SESSIONS;
	r->media = a->media;
	r->sessions = h->sessions;
	for (uint32_t i = 0; i < r->sessions; i++) {
		enum srtp_suite_id suite =
			r->mode == MIKEY_RSAR ? chosen : mikey_policy_of(&w->in.m, h->cs[i].policy);

		if (!accepted(a, suite))
			return MIKEY_FAIL_POLICY;
		r->cs[i] = h->cs[i];
		r->cs_suite[i] = suite;
		if (r->mode == MIKEY_RSAR)
			r->cs[i].policy = 0;
	}
	for (uint32_t i = 0; i < r->media; i++)
		if (a->stream[i].ssrc) {
			r->cs[2 * i + 1].ssrc = a->stream[i].ssrc;
			r->cs[2 * i + 1].roc = a->stream[i].roc;
		}
	return MIKEY_OK;
}

/* --- Step 5: keys ----------------------------------------------------------------------------*/

static enum mikey_failure keys_psk(struct work *w)
{
	struct mikey_open o = {
		.t = &w->t,
		.null_encryption = w->a->accept->null_key_encryption,
		.buf = w->buf,
	};

	return mikey_in_keys(&w->in, w->run, &o, &w->keys);
}

/* The certificate that the peer encrypted for. */
static bool right_chash(const struct work *w)
{
	const struct mikey_payload *p = mikey_payload_find(&w->in.m, MIKEY_P_CHASH, 0);
	struct str der = mikey_cert_der(w->mine.cert, 0);
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	if (!p)
		return true;
	return EVP_Digest(der.s, der.len, digest, &len,
		       p->kind == MIKEY_HASH_MD5 ? EVP_md5() : EVP_sha1(), NULL) == 1 &&
		str_eq(p->data, mikey_bytes(digest, len));
}

static enum mikey_failure keys_pke(struct work *w)
{
	struct mikey_open o = {.t = &w->t, .mac = true, .buf = w->buf};
	enum mikey_failure f;
	struct mikey_id id;

	if (!right_chash(w))
		return MIKEY_FAIL_CERT;
	if (!mikey_in_envelope(&w->in, w->mine.cert, &w->t, w->run))
		return MIKEY_FAIL_INTERNAL;
	f = mikey_in_keys(&w->in, w->run, &o, &w->keys);
	if (f)
		return f;
	/* The name in KEMAC is the identity that RFC 3830 3.2 binds to the keys. */
	if (mikey_id_set(&id, w->keys.id_type, w->keys.id) || !id.len ||
		(w->in.idi.len && !mikey_id_eq(&id, &w->in.idi)) ||
		!mikey_cert_has(w->in.cert ? w->in.cert : w->peer.cert, &id))
		return MIKEY_FAIL_CERT_NAME;
	w->run->idi = id;
	w->run->believed = true;
	memcpy(w->run->auth_key, w->t.auth, sizeof(w->run->auth_key));
	return MIKEY_OK;
}

static enum mikey_failure keys_dh(struct work *w)
{
	const struct mikey_payload *dh = w->in.dh[0];
	struct mikey_run *r = w->run;
	uint8_t x[MIKEY_DH_SECRET_LEN];
	struct str secret = mikey_bytes(x, sizeof(x));
	int err = -EIO;

	if (dh->kind != MIKEY_DH_OAKLEY5 && !w->a->accept->weak_dh)
		return MIKEY_FAIL_DH_GROUP;
	r->dh_group = dh->kind;
	r->tgk_len = (uint8_t)mikey_dh_len(dh->kind);
	if (mikey_random(&w->a->env, x, sizeof(x)))
		err = mikey_dh_public(dh->kind, secret, w->dh);
	if (!err)
		err = mikey_dh_shared(dh->kind, secret, dh->data, r->tgk);
	secmem_wipe(x, sizeof(x));
	if (err)
		return err == -ERANGE ? MIKEY_FAIL_DH_VALUE : MIKEY_FAIL_INTERNAL;
	w->keys.count = 1;
	w->keys.key[0] = (struct mikey_key_data){
		.type = MIKEY_KEY_TGK, .key = mikey_bytes(r->tgk, r->tgk_len), .kv = dh->kv};
	return MIKEY_OK;
}

/* Ours. They are drawn when the response is written. */
static enum mikey_failure keys_rsar(struct work *w)
{
	struct mikey_run *r = w->run;

	if (!r->rand_len) {
		if (!mikey_random(&w->a->env, r->rand, MIKEY_RAND_MIN))
			return MIKEY_FAIL_INTERNAL;
		r->rand_len = MIKEY_RAND_MIN;
	}
	w->keys.count = 1;
	return MIKEY_OK;
}

static enum mikey_failure take_keys(struct work *w)
{
	switch (w->run->mode) {
	case MIKEY_PSK:
		return keys_psk(w);
	case MIKEY_PKE:
		return keys_pke(w);
	case MIKEY_RSAR:
		return keys_rsar(w);
	default:
		return keys_dh(w);
	}
}

/* --- Step 6: the response --------------------------------------------------------------------*/

static enum mikey_failure verification(struct work *w, struct mikey_out *out)
{
	struct mikey_run *r = w->run;
	struct mikey_writer p;

	if (!r->verify)
		return MIKEY_OK;
	r->idr = r->mine.len ? r->mine : r->idr;
	mikey_put_header(
		&p, out, r, r->mode == MIKEY_PSK ? MIKEY_TYPE_PSK_VERIFY : MIKEY_TYPE_PKE_VERIFY);
	mikey_put_time(&p, r);
	mikey_put_id(&p, &r->idr);
	mikey_write_v(&p, MIKEY_MAC_HMAC_SHA1);
	return mikey_end_mac(&p, out, r, true);
}

static enum mikey_failure dh_response(struct work *w, struct mikey_out *out)
{
	struct mikey_run *r = w->run;
	struct mikey_writer p;

	mikey_put_header(
		&p, out, r, r->mode == MIKEY_DH ? MIKEY_TYPE_DH_RESP : MIKEY_TYPE_DHHMAC_RESP);
	mikey_put_time(&p, r);
	mikey_put_id(&p, &r->mine);
	if (r->mode == MIKEY_DH)
		mikey_put_certs(&p, w->mine.cert);
	mikey_put_id(&p, &r->peer);
	mikey_write_dh(&p, r->dh_group, mikey_bytes(w->dh, r->tgk_len));
	mikey_write_dh(&p, r->dh_group, w->in.dh[0]->data);
	if (r->mode == MIKEY_DH)
		return mikey_end_sign(&p, out, w->mine.cert, NULL);
	mikey_write_kemac(&p, MIKEY_KEMAC_NULL, STR_NONE, MIKEY_MAC_HMAC_SHA1);
	return mikey_end_mac(&p, out, r, false);
}

static enum mikey_failure rsar_response(struct work *w, struct mikey_out *out)
{
	struct mikey_run *r = w->run;
	struct mikey_envelope e = {
		.to = w->in.cert ? w->in.cert : w->peer.cert,
		.id = &r->mine,
	};
	struct mikey_writer p;

	mikey_put_header(&p, out, r, MIKEY_TYPE_RSAR_RESP);
	mikey_put_time(&p, r);
	if (!w->in.rand)
		mikey_write_rand(&p, mikey_bytes(r->rand, r->rand_len));
	r->idr = r->mine;
	mikey_put_id(&p, &r->idr);
	mikey_put_certs(&p, w->mine.cert);
	mikey_put_policy(&p, 0, r->cs_suite[0]);
	if (!mikey_put_envelope(&p, r, &w->a->env, &e))
		return MIKEY_FAIL_INTERNAL;
	w->keys.key[0] = (struct mikey_key_data){
		.type = MIKEY_KEY_TGK, .key = mikey_bytes(r->tgk, r->tgk_len)};
	return mikey_end_sign(&p, out, w->mine.cert, r);
}

static enum mikey_failure response(struct work *w, struct mikey_out *out)
{
	switch (w->run->mode) {
	case MIKEY_PSK:
	case MIKEY_PKE:
		return verification(w, out);
	case MIKEY_RSAR:
		return rsar_response(w, out);
	default:
		return dh_response(w, out);
	}
}

static enum mikey_failure all_steps(
	struct work *w, struct str message, struct mikey_out *out, struct mikey_keys *keys)
{
	enum mikey_failure f = form(w, message);

	if (!f)
		f = parties(w);
	if (!f)
		f = proof(w);
	if (!f)
		f = policy(w);
	if (!f)
		f = afford(w);
	if (!f)
		f = take_keys(w);
	if (!f)
		f = response(w, out);
	if (!f)
		f = mikey_keys_make(keys, w->run, &w->keys);
	if (!f)
		f = remember(w);
	return f;
}

enum mikey_failure mikey_respond(struct mikey_run *run, const struct mikey_answer *a,
	struct str message, struct mikey_out *out, struct mikey_keys *keys)
{
	struct work w;
	enum mikey_failure f;

	memset(&w, 0, sizeof(w));
	memset(run, 0, sizeof(*run));
	memset(keys, 0, sizeof(*keys));
	out->len = 0;
	run->layout = MIKEY_RUN_LAYOUT;
	w.run = run;
	w.a = a;
	f = all_steps(&w, message, out, keys);
	mikey_in_free(&w.in);
	secmem_wipe(&w, sizeof(w));
	secmem_wipe(run->tgk, sizeof(run->tgk));
	run->tgk_len = 0;
	if (f) {
		secmem_wipe(keys, sizeof(*keys));
		out->len = 0;
	}
	run->failure = (uint8_t)f;
	run->state = f ? MIKEY_FAILED : MIKEY_DONE;
	return f;
}
