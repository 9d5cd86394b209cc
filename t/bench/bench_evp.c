/* SPDX-License-Identifier: GPL-2.0-or-later */
/* OpenSSL's EVP in the benchmark, as well as its interface lets it be used: a prepared context per key for cipher and MAC,
 * nothing fetched or allocated per packet. AES-CM as AES-CTR, whose counter block gets the packet's IV; HMAC by EVP_MAC
 * started again from the key it has (it keeps the hashes of the padded key); GCM as it is. Decrypts to the output place,
 * encrypts there. What our serial engine does beyond this is no EVP: HMAC from stored states, counter blocks by hand. */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "base/secmem.h"

struct key {
	EVP_CIPHER_CTX *cipher;
	EVP_MAC_CTX *mac;
};

struct evp {
	struct key *key; /* [slots of the key table] */
	uint32_t slots;
	EVP_CIPHER *ctr[3], *gcm[3]; /* by key length */
	EVP_MAC *hmac;
};

static bool evp_can(const struct srtp_suite *s)
{
	return s->cipher != XC_CIPHER_AES_F8; /* EVP has no such mode */
}

static void evp_close(void *ptr)
{
	struct evp *e = ptr;

	for (uint32_t i = 0; e->key && i < e->slots; i++) {
		EVP_CIPHER_CTX_free(e->key[i].cipher);
		EVP_MAC_CTX_free(e->key[i].mac);
	}
	for (int i = 0; i < 3; i++) {
		EVP_CIPHER_free(e->ctr[i]);
		EVP_CIPHER_free(e->gcm[i]);
	}
	EVP_MAC_free(e->hmac);
	free(e->key);
	free(e);
}

static bool cipher_prepare(
	struct evp *e, struct key *k, const struct srtp_suite *s, const uint8_t *key, bool rx)
{
	const EVP_CIPHER *c = (s->cipher == XC_CIPHER_GCM ? e->gcm : e->ctr)[(s->key_len - 16) / 8];

	k->cipher = EVP_CIPHER_CTX_new();
	return k->cipher && EVP_CipherInit_ex2(k->cipher, c, key, NULL, !rx, NULL) == 1;
}

static bool mac_prepare(struct evp *e, struct key *k, const uint8_t key[20])
{
	char sha1[] = "SHA1";
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha1, 0),
		OSSL_PARAM_construct_end()};

	k->mac = EVP_MAC_CTX_new(e->hmac);
	return k->mac && EVP_MAC_init(k->mac, key, 20, params) == 1;
}

static bool key_prepare(struct evp *e, const struct load *l, uint32_t i)
{
	const struct srtp_suite *s = srtp_suite_get(l->master[i].suite);
	struct key *k = &e->key[2 + 2 * i];
	struct srtp_session_keys keys;
	bool good = true;

	if (s->id == SUITE_PLAIN)
		return true;
	if (srtp_kdf(&keys, &l->master[i], false, 0))
		return false;
	if (s->cipher != XC_CIPHER_NULL)
		good = cipher_prepare(e, k, s, keys.enc, !(i & 1));
	if (good && s->auth == XC_AUTH_HMAC_SHA1)
		good = mac_prepare(e, k, keys.auth);
	OPENSSL_cleanse(&keys, sizeof(keys));
	return good;
}

static int evp_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	static const char *const ctr[] = {"AES-128-CTR", "AES-192-CTR", "AES-256-CTR"};
	static const char *const gcm[] = {"AES-128-GCM", "AES-192-GCM", "AES-256-GCM"};
	struct evp *e = calloc(1, sizeof(*e));
	bool good;

	(void)env;
	if (!e)
		return -ENOMEM;
	e->slots = l->a.key_slots;
	e->key = calloc(e->slots, sizeof(*e->key));
	e->hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	good = e->key && e->hmac;
	for (int i = 0; i < 3 && good; i++) {
		e->ctr[i] = EVP_CIPHER_fetch(NULL, ctr[i], NULL);
		e->gcm[i] = EVP_CIPHER_fetch(NULL, gcm[i], NULL);
		good = e->ctr[i] && e->gcm[i];
	}
	for (uint32_t i = 0; i < 2 * l->c.streams && good; i++)
		good = key_prepare(e, l, i);
	if (!good) {
		snprintf(err, err_len, "libcrypto does not give what is needed");
		evp_close(e);
		return -EIO;
	}
	*out = e;
	return 0;
}

static const char *evp_device(const void *p)
{
	(void)p;
	return OpenSSL_version(OPENSSL_VERSION);
}

/* RFC 3711 4.1.1: at 4; RFC 7714 8.1: at 2. */
static void iv_make(
	uint8_t iv[16], const struct xc_key *k, uint32_t ssrc, uint64_t index, unsigned at)
{
	memcpy(iv, k->salt, 16);
	put_be32(iv + at, be32(iv + at) ^ ssrc);
	put_be32(iv + at + 4, be32(iv + at + 4) ^ (uint32_t)(index >> 16));
	put_be16(iv + at + 8, (uint16_t)(be16(iv + at + 8) ^ (uint16_t)index));
}

struct side {
	const struct key *k;
	const struct xc_key *x;
	uint64_t index;
	uint32_t ssrc;
};

static bool mac(const struct side *s, uint8_t out[20], const uint8_t *p, size_t len)
{
	uint8_t roc[4];
	size_t n;

	put_be32(roc, (uint32_t)(s->index >> 16));
	return EVP_MAC_init(s->k->mac, NULL, 0, NULL) == 1 &&
		EVP_MAC_update(s->k->mac, p, len) == 1 && EVP_MAC_update(s->k->mac, roc, 4) == 1 &&
		EVP_MAC_final(s->k->mac, out, &n, 20) == 1;
}

static bool ctr(const struct side *s, uint8_t *dst, const uint8_t *src, uint32_t len)
{
	uint8_t iv[16];
	int n;

	if (!s->k->cipher) {
		if (dst != src)
			memcpy(dst, src, len);
		return true;
	}
	iv_make(iv, s->x, s->ssrc, s->index, 4);
	return EVP_CipherInit_ex2(s->k->cipher, NULL, NULL, iv, -1, NULL) == 1 &&
		EVP_CipherUpdate(s->k->cipher, dst, &n, src, (int)len) == 1;
}

/* tag is read when decrypting, else written. */
static bool gcm(const struct side *s, const struct xc_job *j, bool rx, uint8_t *dst,
	const uint8_t *src, uint8_t *tag)
{
	EVP_CIPHER_CTX *c = s->k->cipher;
	uint8_t iv[16];
	int n;

	iv_make(iv, s->x, s->ssrc, s->index, 2);
	return EVP_CipherInit_ex2(c, NULL, NULL, iv, -1, NULL) == 1 &&
		EVP_CipherUpdate(c, NULL, &n, src, (int)j->hdr_len) == 1 &&
		EVP_CipherUpdate(c, dst + j->hdr_len, &n, src + j->hdr_len, (int)j->body_len) ==
		1 &&
		(!rx || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, 16, tag) == 1) &&
		EVP_CipherFinal_ex(c, dst, &n) == 1 &&
		(rx || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1);
}

static bool receive(const struct side *s, const struct xc_job *j, uint8_t *dst, uint8_t *src)
{
	uint8_t got[20];

	memcpy(dst, src, j->hdr_len);
	if (s->x->auth == XC_AUTH_GCM)
		return gcm(s, j, true, dst, src, src + j->rx_tag_off);
	if (s->x->auth == XC_AUTH_HMAC_SHA1 &&
		(!mac(s, got, src, j->hdr_len + j->body_len) ||
			!secmem_equal(got, src + j->rx_tag_off, s->x->tag_len)))
		return false;
	return ctr(s, dst + j->hdr_len, src + j->hdr_len, j->body_len);
}

static bool send_out(const struct side *s, const struct xc_job *j, uint8_t *dst)
{
	uint8_t made[20];

	if (s->x->auth == XC_AUTH_GCM)
		return gcm(s, j, false, dst, dst, dst + j->tx_tag_off);
	if (!ctr(s, dst + j->hdr_len, dst + j->hdr_len, j->body_len))
		return false;
	if (s->x->auth != XC_AUTH_HMAC_SHA1)
		return true;
	if (!mac(s, made, dst, j->hdr_len + j->body_len))
		return false;
	memcpy(dst + j->tx_tag_off, made, s->x->tag_len);
	return true;
}

static int evp_run(void *ptr, struct load *l, uint32_t n)
{
	struct evp *e = ptr;
	bool good = true;

	for (uint32_t i = 0; i < n; i++) {
		const struct xc_job *j = &l->a.job[i];
		struct side rx = {&e->key[j->rx_key], &l->a.key[j->rx_key], j->rx_index, j->ssrc};
		struct side tx = {&e->key[j->tx_key], &l->a.key[j->tx_key], j->tx_index, j->ssrc};
		uint8_t *dst = l->a.out + j->out_off;

		good &= receive(&rx, j, dst, l->a.in + j->in_off) && send_out(&tx, j, dst);
	}
	return good ? 0 : -EBADMSG;
}

const struct bench_impl bench_impl_evp = {.name = "openssl-evp",
	.per_packet = true,
	.can = evp_can,
	.open = evp_open,
	.close = evp_close,
	.device = evp_device,
	.run = evp_run};
