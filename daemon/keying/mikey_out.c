/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common parts of our messages. */
#include <errno.h>
#include <openssl/sha.h>

#include "base/secmem.h"
#include "keying/mikey_int.h"

#define TGK_LEN      32u
#define ENVELOPE_LEN 16u

bool mikey_random(const struct mikey_env *e, void *p, size_t len)
{
	return (e->random ? e->random(e->arg, p, len) : secmem_random(p, len)) == 0;
}

void mikey_put_header(struct mikey_writer *w, struct mikey_out *out, const struct mikey_run *r,
	enum mikey_type type)
{
	struct mikey_header h = {
		.type = (uint8_t)type,
		.verify = r->initiator && r->verify,
		.csb_id = r->csb_id,
		.sessions = r->sessions,
	};

	memcpy(h.cs, r->cs, sizeof(r->cs));
	out->len = 0;
	mikey_write_header(w, out->buf, out->cap, &h);
}

void mikey_put_time(struct mikey_writer *w, const struct mikey_run *r)
{
	mikey_write_t(w, r->ts_type, r->time);
}

void mikey_put_id(struct mikey_writer *w, const struct mikey_id *id)
{
	if (id->len)
		mikey_write_id(w, id->type, mikey_id_str(id));
}

void mikey_put_certs(struct mikey_writer *w, const struct mikey_cert *c)
{
	for (uint32_t i = 0; i < mikey_cert_count(c); i++)
		mikey_write_cert(w, MIKEY_CERT_X509, mikey_cert_der(c, i));
}

void mikey_put_policy(struct mikey_writer *w, uint8_t number, enum srtp_suite_id suite)
{
	uint8_t params[MIKEY_SP_MAX];

	mikey_write_sp(w, number, mikey_bytes(params, mikey_policy_write(params, suite)));
}

size_t mikey_tgk_data(
	uint8_t buf[MIKEY_KEMAC_MAX], const struct mikey_run *r, const struct mikey_id *id)
{
	struct mikey_key_data k = {
		.type = MIKEY_KEY_TGK,
		.key = mikey_bytes(r->tgk, r->tgk_len),
	};
	struct mikey_writer w;
	int len;

	mikey_write_chain(&w, buf, MIKEY_KEMAC_MAX);
	if (id)
		mikey_write_sub_id(&w, id->type, mikey_id_str(id));
	mikey_write_key_data(&w, &k);
	len = mikey_write_end(&w);
	return len < 0 ? 0 : (size_t)len;
}

bool mikey_new_tgk(struct mikey_run *r, const struct mikey_env *env)
{
	r->tgk_len = TGK_LEN;
	return mikey_random(env, r->tgk, TGK_LEN);
}

/* KEMAC with the ID, and with its own MAC (RFC 3830 5.2). */
static bool put_kemac(struct mikey_writer *w, const struct mikey_run *r,
	const struct mikey_transport *t, const struct mikey_id *id)
{
	uint8_t data[MIKEY_KEMAC_MAX], *payload = w->buf + w->len;
	size_t len = mikey_tgk_data(data, r, id), start = w->len;
	bool ok = len && mikey_transport_crypt(t, r->csb_id, r->time, data, len);

	if (ok) {
		mikey_write_kemac(
			w, MIKEY_KEMAC_AES_CM_128, mikey_bytes(data, len), MIKEY_MAC_HMAC_SHA1);
		ok = !w->err;
	}
	if (ok) {
		size_t covered = w->len - start - MIKEY_MAC_LEN;

		/* "Next payload" is still zero here. */
		ok = mikey_hmac(payload + covered, mikey_bytes(t->auth, sizeof(t->auth)),
			mikey_bytes(payload, covered));
	}
	secmem_wipe(data, sizeof(data));
	return ok;
}

static void put_chash(struct mikey_writer *w, const struct mikey_cert *c)
{
	uint8_t digest[SHA_DIGEST_LENGTH];
	struct str der = mikey_cert_der(c, 0);

	SHA1((const uint8_t *)der.s, der.len, digest);
	mikey_write_chash(w, MIKEY_HASH_SHA1, mikey_bytes(digest, sizeof(digest)));
}

bool mikey_put_envelope(struct mikey_writer *w, struct mikey_run *r, const struct mikey_env *env,
	const struct mikey_envelope *e)
{
	uint8_t key[ENVELOPE_LEN], pke[MIKEY_RSA_MAX];
	struct mikey_transport t;
	int len = -EIO;
	bool ok = mikey_new_tgk(r, env) && mikey_random(env, key, sizeof(key)) &&
		mikey_transport_keys(&t, mikey_bytes(key, sizeof(key)), r->csb_id,
			mikey_bytes(r->rand, r->rand_len)) &&
		put_kemac(w, r, &t, e->id);

	if (ok) {
		memcpy(r->auth_key, t.auth, sizeof(r->auth_key));
		if (e->chash)
			put_chash(w, e->to);
		len = mikey_encrypt(e->to, e->oaep, mikey_bytes(key, sizeof(key)), pke);
	}
	if (len > 0)
		mikey_write_pke(w, 0, mikey_bytes(pke, (size_t)len));
	secmem_wipe(key, sizeof(key));
	secmem_wipe(&t, sizeof(t));
	return len > 0;
}

enum mikey_failure mikey_end_mac(
	struct mikey_writer *w, struct mikey_out *out, const struct mikey_run *r, bool ids)
{
	uint8_t buf[MIKEY_WITH_IDS_MAX];
	int len = mikey_write_end(w);
	struct str covered;

	if (len < 0 || (size_t)len > MIKEY_MESSAGE_MAX)
		return MIKEY_FAIL_TOO_LONG;
	covered = mikey_bytes(out->buf, (size_t)len - MIKEY_MAC_LEN);
	if (!mikey_hmac(out->buf + covered.len, mikey_bytes(r->auth_key, MIKEY_MAC_LEN),
		    ids ? mikey_with_ids(buf, r, covered) : covered))
		return MIKEY_FAIL_INTERNAL;
	out->len = (size_t)len;
	return MIKEY_OK;
}

enum mikey_failure mikey_end_sign(struct mikey_writer *w, struct mikey_out *out,
	const struct mikey_cert *mine, const struct mikey_run *ids)
{
	uint8_t buf[MIKEY_WITH_IDS_MAX];
	size_t sig = mikey_cert_rsa_len(mine), before = w->len;
	struct str covered;
	int len;

	mikey_write_sign(w, MIKEY_SIGN_RSA_PKCS1, (uint16_t)sig);
	len = mikey_write_end(w);
	if (len < 0 || (size_t)len > MIKEY_MESSAGE_MAX)
		return MIKEY_FAIL_TOO_LONG;
	if (ids)
		covered = mikey_with_ids(buf, ids, mikey_bytes(out->buf, before));
	else
		covered = mikey_bytes(out->buf, (size_t)len - sig);
	if (!mikey_sign(mine, covered, out->buf + len - sig))
		return MIKEY_FAIL_INTERNAL;
	out->len = (size_t)len;
	return MIKEY_OK;
}
