/* SPDX-License-Identifier: GPL-2.0-or-later */
/* OpenSSL's EVP in the benchmark, as fast as its interface allows: prepared contexts per key,
 * nothing fetched per packet. AES-CM encrypts counter blocks as ECB and adds them by hand. HMAC is
 * two digests, copied from contexts that have hashed the padded key. GCM is used directly. Decrypts
 * to the output place and encrypts there. notes/bench.md lists other attempts. Our serial engine
 * keeps SHA-1's states itself, which only deprecated calls allow. */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "base/secmem.h"
#include "packet/arena.h"

struct key {
	EVP_CIPHER_CTX *cipher;
	EVP_MD_CTX *inner, *outer; /* HMAC: these have hashed the padded key */
};

struct evp {
	struct key *key; /* [slots of the key table] */
	uint32_t slots;
	EVP_CIPHER *ecb[3], *gcm[3]; /* by key length */
	EVP_MD *sha1;
	EVP_MD_CTX *work;
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
		EVP_MD_CTX_free(e->key[i].inner);
		EVP_MD_CTX_free(e->key[i].outer);
	}
	for (int i = 0; i < 3; i++) {
		EVP_CIPHER_free(e->ecb[i]);
		EVP_CIPHER_free(e->gcm[i]);
	}
	EVP_MD_CTX_free(e->work);
	EVP_MD_free(e->sha1);
	free(e->key);
	free(e);
}

static bool cipher_prepare(
	struct evp *e, struct key *k, const struct srtp_suite *s, const uint8_t *key, bool rx)
{
	const EVP_CIPHER *c = (s->cipher == XC_CIPHER_GCM ? e->gcm : e->ecb)[(s->key_len - 16) / 8];

	k->cipher = EVP_CIPHER_CTX_new();
	/* Counter blocks are always encrypted. */
	return k->cipher &&
		EVP_CipherInit_ex2(
			k->cipher, c, key, NULL, s->cipher != XC_CIPHER_GCM || !rx, NULL) == 1 &&
		EVP_CIPHER_CTX_set_padding(k->cipher, 0) == 1;
}

static EVP_MD_CTX *padded(const struct evp *e, const uint8_t key[20], uint8_t pad)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	uint8_t block[64];

	memset(block, pad, sizeof(block));
	for (int i = 0; i < 20; i++)
		block[i] ^= key[i];
	if (c &&
		(EVP_DigestInit_ex2(c, e->sha1, NULL) != 1 ||
			EVP_DigestUpdate(c, block, sizeof(block)) != 1)) {
		EVP_MD_CTX_free(c);
		c = NULL;
	}
	OPENSSL_cleanse(block, sizeof(block));
	return c;
}

static bool mac_prepare(struct evp *e, struct key *k, const uint8_t key[20])
{
	k->inner = padded(e, key, 0x36);
	k->outer = padded(e, key, 0x5c);
	return k->inner && k->outer;
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
	static const char *const ecb[] = {"AES-128-ECB", "AES-192-ECB", "AES-256-ECB"};
	static const char *const gcm[] = {"AES-128-GCM", "AES-192-GCM", "AES-256-GCM"};
	struct evp *e = calloc(1, sizeof(*e));
	bool good;

	(void)env;
	if (!e)
		return -ENOMEM;
	e->slots = l->a.key_slots;
	e->key = calloc(e->slots, sizeof(*e->key));
	e->sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
	e->work = EVP_MD_CTX_new();
	good = e->key && e->sha1 && e->work;
	for (int i = 0; i < 3 && good; i++) {
		e->ecb[i] = EVP_CIPHER_fetch(NULL, ecb[i], NULL);
		e->gcm[i] = EVP_CIPHER_fetch(NULL, gcm[i], NULL);
		good = e->ecb[i] && e->gcm[i];
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
	EVP_MD_CTX *work;
	const struct key *k;
	const struct xc_key *x;
	uint64_t index;
	uint32_t ssrc;
};

static bool mac(const struct side *s, uint8_t out[20], const uint8_t *p, size_t len)
{
	uint8_t roc[4];

	put_be32(roc, (uint32_t)(s->index >> 16));
	return EVP_MD_CTX_copy_ex(s->work, s->k->inner) == 1 &&
		EVP_DigestUpdate(s->work, p, len) == 1 && EVP_DigestUpdate(s->work, roc, 4) == 1 &&
		EVP_DigestFinal_ex(s->work, out, NULL) == 1 &&
		EVP_MD_CTX_copy_ex(s->work, s->k->outer) == 1 &&
		EVP_DigestUpdate(s->work, out, 20) == 1 &&
		EVP_DigestFinal_ex(s->work, out, NULL) == 1;
}

/* dst = src ^ keystream, eight bytes at a time. */
static void add(uint8_t *dst, const uint8_t *src, const uint8_t *stream, uint32_t len)
{
	uint32_t i = 0;

	for (uint64_t x, y; i + 8 <= len; i += 8) {
		memcpy(&x, src + i, 8);
		memcpy(&y, stream + i, 8);
		x ^= y;
		memcpy(dst + i, &x, 8);
	}
	for (; i < len; i++)
		dst[i] = src[i] ^ stream[i];
}

/* All blocks of a packet at once: fewer than 256 (RFC 3711 4.1.1, and bench.h's largest
 * payload). */
static bool ctr(const struct side *s, uint8_t *dst, const uint8_t *src, uint32_t len)
{
	uint8_t iv[16], stream[ARENA_MAX_PACKET];
	uint32_t blocks = (len + 15) / 16;
	int n;

	if (!s->k->cipher) {
		if (dst != src)
			memcpy(dst, src, len);
		return true;
	}
	iv_make(iv, s->x, s->ssrc, s->index, 4);
	for (uint32_t i = 0; i < blocks; i++) {
		memcpy(stream + (size_t)16 * i, iv, 16);
		stream[16 * i + 15] = (uint8_t)i;
	}
	if (EVP_EncryptUpdate(s->k->cipher, stream, &n, stream, (int)(16 * blocks)) != 1)
		return false;
	add(dst, src, stream, len);
	return true;
}

/* Decryption reads the tag, encryption writes it. */
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
		struct side rx = {
			e->work, &e->key[j->rx_key], &l->a.key[j->rx_key], j->rx_index, j->ssrc};
		struct side tx = {
			e->work, &e->key[j->tx_key], &l->a.key[j->tx_key], j->tx_index, j->ssrc};
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
