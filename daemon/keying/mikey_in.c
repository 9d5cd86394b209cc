/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A received message: its payloads by role, and what it proves. */
#include <errno.h>

#include "base/secmem.h"
#include "keying/mikey_int.h"

static const struct mikey_payload *one(const struct mikey_in *in, enum mikey_payload_type type)
{
	return mikey_payload_find(&in->m, type, 0);
}

static bool id_of(struct mikey_id *out, const struct mikey_payload *p)
{
	return p->data.len && p->kind <= MIKEY_ID_URI && !memchr(p->data.s, 0, p->data.len) &&
		mikey_id_set(out, p->kind, p->data) == 0;
}

/* The order of [IDi|CERTi] [IDr] in an I_MESSAGE, and of [IDr|CERTr] [IDi] in an R_MESSAGE: an ID
 * after certificates is the other party's. */
static enum mikey_failure identities(struct mikey_in *in, bool response)
{
	const struct mikey_payload *a = mikey_payload_find(&in->m, MIKEY_P_ID, 0);
	const struct mikey_payload *b = mikey_payload_find(&in->m, MIKEY_P_ID, 1);
	const struct mikey_payload *cert = one(in, MIKEY_P_CERT);
	struct mikey_id *sender = response ? &in->idr : &in->idi;
	struct mikey_id *other = response ? &in->idi : &in->idr;

	if (mikey_payload_find(&in->m, MIKEY_P_ID, 2))
		return MIKEY_FAIL_MALFORMED;
	if (a && !b && cert && cert->offset < a->offset) {
		b = a;
		a = NULL;
	}
	if ((a && !id_of(sender, a)) || (b && !id_of(other, b)))
		return MIKEY_FAIL_IDENTITY;
	return MIKEY_OK;
}

/* Certificates for encryption only do not sign. Addresses of certificates are not fetched. */
static enum mikey_failure certificates(struct mikey_in *in)
{
	const struct mikey_payload *p;
	struct str der[MIKEY_CHAIN_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; (p = mikey_payload_find(&in->m, MIKEY_P_CERT, i)); i++) {
		if (p->kind == MIKEY_CERT_ENCR)
			continue;
		if (count == MIKEY_CHAIN_MAX ||
			(p->kind != MIKEY_CERT_X509 && p->kind != MIKEY_CERT_SIGN))
			return MIKEY_FAIL_CERT;
		der[count++] = p->data;
	}
	if (!count)
		return MIKEY_OK;
	switch (mikey_cert_from(&in->cert, der, count)) {
	case 0:
		return MIKEY_OK;
	case -ENOMEM:
		return MIKEY_FAIL_INTERNAL;
	default:
		return MIKEY_FAIL_CERT;
	}
}

static bool is_response(uint8_t type)
{
	return type == MIKEY_TYPE_PSK_VERIFY || type == MIKEY_TYPE_PKE_VERIFY ||
		type == MIKEY_TYPE_DH_RESP || type == MIKEY_TYPE_DHHMAC_RESP ||
		type == MIKEY_TYPE_RSAR_RESP;
}

static void roles(struct mikey_in *in)
{
	const struct mikey_payload *last;

	in->t = one(in, MIKEY_P_T);
	in->rand = one(in, MIKEY_P_RAND);
	in->kemac = one(in, MIKEY_P_KEMAC);
	in->pke = one(in, MIKEY_P_PKE);
	in->sign = one(in, MIKEY_P_SIGN);
	in->v = one(in, MIKEY_P_V);
	in->dh[0] = one(in, MIKEY_P_DH);
	in->dh[1] = mikey_payload_find(&in->m, MIKEY_P_DH, 1);
	in->covered = in->m.all;
	if (!in->m.payloads)
		return;
	last = &in->m.payload[in->m.payloads - 1];
	if (last->type == MIKEY_P_SIGN)
		in->covered.len = last->offset + last->raw.len - last->data.len;
	else
		in->covered.len = last->offset + last->raw.len - last->mac.len;
}

enum mikey_failure mikey_in_read(struct mikey_in *in, struct str message)
{
	enum mikey_failure f;
	size_t offset;
	int err;

	memset(in, 0, sizeof(*in));
	if (message.len > MIKEY_MESSAGE_MAX)
		return MIKEY_FAIL_TOO_LONG;
	err = mikey_parse(&in->m, message, &offset);
	if (err)
		return err == -EPROTONOSUPPORT ? MIKEY_FAIL_VERSION : MIKEY_FAIL_MALFORMED;
	roles(in);
	if (in->m.header.prf)
		return MIKEY_FAIL_PRF;
	if (in->rand && in->rand->data.len < MIKEY_RAND_MIN)
		return MIKEY_FAIL_MALFORMED;
	f = identities(in, is_response(in->m.header.type));
	return f ? f : certificates(in);
}

void mikey_in_free(struct mikey_in *in)
{
	mikey_cert_free(in->cert);
	in->cert = NULL;
}

enum mikey_failure mikey_in_mac(
	const struct mikey_in *in, const uint8_t auth[MIKEY_MAC_LEN], const struct mikey_run *ids)
{
	const struct mikey_payload *p = in->m.payloads ? &in->m.payload[in->m.payloads - 1] : NULL;
	uint8_t mac[MIKEY_MAC_LEN], buf[MIKEY_WITH_IDS_MAX];
	bool ok;

	if (!p || (p->type != MIKEY_P_KEMAC && p->type != MIKEY_P_V))
		return MIKEY_FAIL_MISSING;
	if (p->mac.len != MIKEY_MAC_LEN)
		return MIKEY_FAIL_MAC_ALG;
	ok = mikey_hmac(mac, mikey_bytes(auth, MIKEY_MAC_LEN),
		ids ? mikey_with_ids(buf, ids, in->covered) : in->covered);
	ok = ok && secmem_equal(mac, p->mac.s, MIKEY_MAC_LEN);
	secmem_wipe(mac, sizeof(mac));
	return ok ? MIKEY_OK : MIKEY_FAIL_AUTH;
}

enum mikey_failure mikey_in_sign(
	const struct mikey_in *in, const struct mikey_cert *known, const struct mikey_run *ids)
{
	const struct mikey_cert *c = in->cert ? in->cert : known;
	uint8_t buf[MIKEY_WITH_IDS_MAX];
	struct str covered = in->covered;

	if (!in->sign)
		return MIKEY_FAIL_MISSING;
	if (!c)
		return MIKEY_FAIL_CERT;
	if (ids) {
		covered.len = in->sign->offset;
		covered = mikey_with_ids(buf, ids, covered);
	}
	return mikey_verify(c, in->sign->kind, covered, in->sign->data) ? MIKEY_OK
									: MIKEY_FAIL_AUTH;
}

enum mikey_failure mikey_in_cert(struct mikey_in *in, const struct mikey_peer *peer,
	const struct mikey_id *id, uint64_t now_ntp)
{
	int64_t now_s = mikey_unix_s(now_ntp);
	enum mikey_failure f;

	if (!in->cert)
		return peer->cert ? mikey_trust_pinned(peer->trust, peer->cert, now_s)
				  : MIKEY_FAIL_CERT;
	if (!peer->trust)
		return MIKEY_FAIL_CERT_CHAIN;
	f = mikey_trust_check(peer->trust, in->cert, now_s);
	if (f)
		return f;
	return !id->len || mikey_cert_has(in->cert, id) ? MIKEY_OK : MIKEY_FAIL_CERT_NAME;
}

/* The MAC of KEMAC itself; its field "next payload" counts as zero (RFC 3830 5.2). */
static enum mikey_failure kemac_mac(const struct mikey_in *in, const struct mikey_transport *t)
{
	const struct mikey_payload *p = in->kemac;
	uint8_t mac[MIKEY_MAC_LEN], copy[MIKEY_KEMAC_MAX + 16];
	size_t len = p->raw.len - p->mac.len;
	bool ok;

	if (p->mac.len != MIKEY_MAC_LEN)
		return MIKEY_FAIL_MAC_ALG;
	if (len > sizeof(copy))
		return MIKEY_FAIL_TOO_LONG;
	memcpy(copy, p->raw.s, len);
	copy[0] = MIKEY_P_LAST;
	ok = mikey_hmac(mac, mikey_bytes(t->auth, sizeof(t->auth)), mikey_bytes(copy, len)) &&
		secmem_equal(mac, p->mac.s, MIKEY_MAC_LEN);
	secmem_wipe(mac, sizeof(mac));
	return ok ? MIKEY_OK : MIKEY_FAIL_AUTH;
}

enum mikey_failure mikey_in_keys(const struct mikey_in *in, const struct mikey_run *r,
	const struct mikey_open *o, struct mikey_key_list *k)
{
	const struct mikey_payload *p = in->kemac;
	enum mikey_failure f = o->mac ? kemac_mac(in, o->t) : MIKEY_OK;
	bool null = p->kind == MIKEY_KEMAC_NULL && o->null_encryption;
	size_t offset;

	if (f)
		return f;
	if (!null && p->kind != MIKEY_KEMAC_AES_CM_128)
		return MIKEY_FAIL_ENCR_ALG;
	if (p->data.len > MIKEY_KEMAC_MAX)
		return MIKEY_FAIL_TOO_LONG;
	if (p->data.len)
		memcpy(o->buf, p->data.s, p->data.len);
	if (!null && !mikey_transport_crypt(o->t, r->csb_id, r->time, o->buf, p->data.len))
		return MIKEY_FAIL_INTERNAL;
	if (mikey_keys_parse(k, mikey_bytes(o->buf, p->data.len),
		    o->mac ? MIKEY_P_ID : MIKEY_P_KEY_DATA, &offset))
		return MIKEY_FAIL_KEYS;
	return MIKEY_OK;
}

bool mikey_in_envelope(const struct mikey_in *in, const struct mikey_cert *mine,
	struct mikey_transport *t, const struct mikey_run *r)
{
	struct mikey_envelope_key key;
	bool ok = mikey_decrypt(mine, in->pke->data, &key) &&
		mikey_envelope_keys(t, &key, r->csb_id, mikey_bytes(r->rand, r->rand_len));

	secmem_wipe(&key, sizeof(key));
	return ok;
}
