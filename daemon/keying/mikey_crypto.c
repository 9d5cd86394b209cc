/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RFC 3830 4.1 and 4.2: key derivation and the algorithms of MIKEY, on OpenSSL. */
#include <errno.h>
#include <openssl/bn.h>
#include <openssl/hmac.h>

#include "base/secmem.h"
#include "keying/mikey_int.h"

#define LABEL_MAX (4u + 1 + 4 + 255)

bool mikey_hmac(uint8_t mac[MIKEY_MAC_LEN], struct str key, struct str data)
{
	unsigned len = 0;

	if (HMAC(EVP_sha1(), key.s, (int)key.len, (const uint8_t *)data.s, data.len, mac, &len) &&
		len == MIKEY_MAC_LEN)
		return true;
	memset(mac, 0, MIKEY_MAC_LEN);
	return false;
}

static size_t label_bytes(uint8_t out[LABEL_MAX], const struct mikey_label *l)
{
	size_t rand = l->rand.len < 255 ? l->rand.len : 255;

	put_be32(out, l->constant);
	out[4] = l->cs_id;
	put_be32(out + 5, l->csb_id);
	if (rand)
		memcpy(out + 9, l->rand.s, rand);
	return 9 + rand;
}

/* P(s, label, m) of RFC 3830 4.1.2, XORed into out where mask has ones. */
static bool p_xor(uint8_t *out, size_t len, struct str s, struct str label, uint8_t mask)
{
	uint8_t a[MIKEY_MAC_LEN + LABEL_MAX], block[MIKEY_MAC_LEN];
	bool ok = mikey_hmac(a, s, label);

	for (size_t at = 0; ok && at < len; at += MIKEY_MAC_LEN) {
		memcpy(a + MIKEY_MAC_LEN, label.s, label.len);
		ok = mikey_hmac(block, s, mikey_bytes(a, MIKEY_MAC_LEN + label.len));
		for (size_t i = 0; i < MIKEY_MAC_LEN && at + i < len; i++)
			out[at + i] ^= block[i] & mask;
		ok = ok && mikey_hmac(block, s, mikey_bytes(a, MIKEY_MAC_LEN));
		memcpy(a, block, MIKEY_MAC_LEN);
	}
	secmem_wipe(a, sizeof(a));
	secmem_wipe(block, sizeof(block));
	return ok;
}

struct inkey {
	struct str key;
	uint8_t rest; /* mask of all parts but the first */
};

static bool prf(uint8_t *out, size_t len, const struct inkey *k, const struct mikey_label *l)
{
	uint8_t label[LABEL_MAX];
	size_t label_len = label_bytes(label, l);
	bool ok = k->key.len > 0;

	memset(out, 0, len);
	for (size_t at = 0; ok && at < k->key.len; at += MIKEY_PRF_BLOCK) {
		size_t left = k->key.len - at;
		struct str part = {k->key.s + at, left < MIKEY_PRF_BLOCK ? left : MIKEY_PRF_BLOCK};

		ok = p_xor(out, len, part, mikey_bytes(label, label_len), at ? k->rest : 0xff);
	}
	if (!ok)
		secmem_wipe(out, len);
	return ok;
}

bool mikey_prf(uint8_t *out, size_t len, struct str inkey, const struct mikey_label *l)
{
	return prf(out, len, &(struct inkey){inkey, 0xff}, l);
}

static bool transport_keys(struct mikey_transport *t, const struct inkey *k, struct mikey_label *l)
{
	bool ok;

	l->cs_id = MIKEY_CS_TRANSPORT;
	l->constant = MIKEY_LABEL_TRANSPORT_ENCR;
	ok = prf(t->encr, sizeof(t->encr), k, l);
	l->constant = MIKEY_LABEL_TRANSPORT_SALT;
	ok = ok && prf(t->salt, sizeof(t->salt), k, l);
	l->constant = MIKEY_LABEL_TRANSPORT_AUTH;
	ok = ok && prf(t->auth, sizeof(t->auth), k, l);
	if (!ok)
		secmem_wipe(t, sizeof(*t));
	return ok;
}

bool mikey_transport_keys(
	struct mikey_transport *t, struct str inkey, uint32_t csb_id, struct str rand)
{
	return transport_keys(t, &(struct inkey){inkey, 0xff},
		&(struct mikey_label){.csb_id = csb_id, .rand = rand});
}

/* HMAC pads its key with zeroes, so zeroes at the end of a part change nothing. */
bool mikey_envelope_keys(struct mikey_transport *t, const struct mikey_envelope_key *k,
	uint32_t csb_id, struct str rand)
{
	return transport_keys(t, &(struct inkey){mikey_bytes(k->key, sizeof(k->key)), k->rest},
		&(struct mikey_label){.csb_id = csb_id, .rand = rand});
}

/* IV = (S XOR (0x0000 || CSB ID || T)) || 0x0000 */
static void kemac_iv(
	uint8_t iv[16], const struct mikey_transport *t, uint32_t csb_id, uint64_t time)
{
	uint8_t x[14] = {0};

	put_be32(x + 2, csb_id);
	put_be32(x + 6, (uint32_t)(time >> 32));
	put_be32(x + 10, (uint32_t)time);
	memset(iv, 0, 16);
	for (size_t i = 0; i < sizeof(x); i++)
		iv[i] = t->salt[i] ^ x[i];
}

bool mikey_transport_crypt(
	const struct mikey_transport *t, uint32_t csb_id, uint64_t time, uint8_t *data, size_t len)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t iv[16];
	int done = 0;
	bool ok;

	kemac_iv(iv, t, csb_id, time);
	ok = ctx && len < INT32_MAX &&
		EVP_EncryptInit_ex(ctx, EVP_aes_128_ctr(), NULL, t->encr, iv) == 1 &&
		EVP_EncryptUpdate(ctx, data, &done, data, (int)len) == 1 && (size_t)done == len;
	EVP_CIPHER_CTX_free(ctx);
	secmem_wipe(iv, sizeof(iv));
	return ok;
}

static BIGNUM *prime(uint8_t group)
{
	switch (group) {
	case MIKEY_DH_OAKLEY5:
		return BN_get_rfc3526_prime_1536(NULL);
	case MIKEY_DH_OAKLEY1:
		return BN_get_rfc2409_prime_768(NULL);
	case MIKEY_DH_OAKLEY2:
		return BN_get_rfc2409_prime_1024(NULL);
	default:
		return NULL;
	}
}

/* 1 < y < p - 1. Then its order is large: p is a safe prime. */
static bool in_range(const BIGNUM *y, const BIGNUM *p)
{
	BIGNUM *top = BN_dup(p);
	bool ok = top && BN_sub_word(top, 1) && BN_cmp(y, BN_value_one()) > 0 && BN_cmp(y, top) < 0;

	BN_free(top);
	return ok;
}

static int power(uint8_t group, struct str secret, BIGNUM *base, uint8_t *out)
{
	BIGNUM *p = prime(group);
	BIGNUM *x = BN_bin2bn((const uint8_t *)secret.s, (int)secret.len, NULL);
	BIGNUM *r = BN_new();
	BN_CTX *ctx = BN_CTX_new();
	int err = -EIO;

	if (p && x && r && ctx && base) {
		BN_set_flags(x, BN_FLG_CONSTTIME);
		if (!in_range(base, p))
			err = -ERANGE;
		else if (BN_mod_exp_mont_consttime(r, base, x, p, ctx, NULL) == 1 &&
			BN_bn2binpad(r, out, (int)mikey_dh_len(group)) > 0)
			err = in_range(r, p) ? 0 : -ERANGE;
	}
	BN_free(p);
	BN_clear_free(x);
	BN_clear_free(r);
	BN_CTX_free(ctx);
	return err;
}

int mikey_dh_public(uint8_t group, struct str secret, uint8_t out[MIKEY_TGK_MAX])
{
	BIGNUM *g = BN_new();
	int err = g && BN_set_word(g, 2) ? power(group, secret, g, out) : -EIO;

	BN_free(g);
	return err;
}

int mikey_dh_shared(uint8_t group, struct str secret, struct str peer, uint8_t out[MIKEY_TGK_MAX])
{
	BIGNUM *y = BN_bin2bn((const uint8_t *)peer.s, (int)peer.len, NULL);
	int err = power(group, secret, y, out);

	BN_free(y);
	return err;
}
