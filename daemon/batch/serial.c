/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The serial engine: OpenSSL's libcrypto, one packet at a time, every suite. For batches too small
 * for a dispatch, and for batches that a device failed at. Allocates only when keys change. A job
 * that exceeds its packet slots, or names unannounced keys, does not authenticate, and nothing is
 * written for it. RFC 3711 4, 6188, 7714 8 and 9. */

/* The packet path starts HMAC from stored SHA-1 states, which only the low-level calls allow.
 * Duplicating an EVP_MAC context per packet costs more than hashing the packet. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "batch/engine.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lines.h"
#include "base/secmem.h"
#include "packet/arena.h"

enum { MODE_ECB, MODE_GCM, MODES };

struct engine {
	EVP_CIPHER *cipher[MODES]
			  [3]; /* by key length 16, 24, 32; fetched once: a fetch takes a lock */
	char device[64];
};

struct serial_key {
	EVP_CIPHER_CTX *ctx;  /* GCM: the mode itself; CM, F8: blocks; NULL cipher: none */
	EVP_CIPHER_CTX *mask; /* F8: single blocks under k_e XOR m */
	bool ready;           /* the slot can be used */
};

struct engine_queue {
	struct engine *e;
	const struct arena *arena;
	struct serial_key *key; /* [arena->key_slots] */
};

static void serial_close(struct engine *e)
{
	if (!e)
		return;
	for (int m = 0; m < MODES; m++)
		for (int k = 0; k < 3; k++)
			EVP_CIPHER_free(e->cipher[m][k]);
	free(e);
}

static int serial_open(
	struct engine **out, const struct engine_config *cfg, char *err, size_t err_len)
{
	static const char *const names[MODES] = {"ECB", "GCM"};
	struct engine *e = calloc(1, sizeof(*e));

	(void)cfg;
	if (!e)
		return -ENOMEM;
	for (int m = 0; m < MODES; m++)
		for (int k = 0; k < 3; k++) {
			char name[16];

			snprintf(name, sizeof(name), "AES-%d-%s", 128 + 64 * k, names[m]);
			e->cipher[m][k] = EVP_CIPHER_fetch(NULL, name, NULL);
			if (!e->cipher[m][k]) {
				snprintf(err, err_len,
					"libcrypto has no %s; its default provider must be active",
					name);
				serial_close(e);
				return -ENOTSUP;
			}
		}
	snprintf(e->device, sizeof(e->device), "%s", OpenSSL_version(OPENSSL_VERSION));
	*out = e;
	return 0;
}

static const char *serial_device(const struct engine *e)
{
	return e->device;
}

static int serial_queue_create(
	struct engine_queue **out, struct engine *e, const struct arena *arena)
{
	struct engine_queue *q = lines_alloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->e = e;
	q->arena = arena;
	q->key = calloc(arena->key_slots, sizeof(*q->key));
	if (!q->key) {
		free(q);
		return -ENOMEM;
	}
	q->key[0].ready = q->key[1].ready = true; /* always plain */
	*out = q;
	return 0;
}

static void key_drop(struct serial_key *k)
{
	EVP_CIPHER_CTX_free(k->ctx); /* wipes its key schedule */
	EVP_CIPHER_CTX_free(k->mask);
	memset(k, 0, sizeof(*k));
}

static void serial_queue_destroy(struct engine_queue *q)
{
	if (!q)
		return;
	for (uint32_t i = 0; i < q->arena->key_slots; i++)
		key_drop(&q->key[i]);
	free(q->key);
	free(q);
}

static EVP_CIPHER_CTX *ctx_new(const EVP_CIPHER *cipher, const uint8_t *key)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

	if (ctx && EVP_EncryptInit_ex2(ctx, cipher, key, NULL, NULL) == 1 &&
		EVP_CIPHER_CTX_set_padding(ctx, 0) == 1)
		return ctx;
	EVP_CIPHER_CTX_free(ctx);
	return NULL;
}

static bool slot_valid(const struct xc_key *k)
{
	if (k->valid != XC_KEY_VALID || k->cipher > XC_CIPHER_GCM || k->auth > XC_AUTH_GCM ||
		k->tag_len > 16)
		return false;
	if ((k->cipher == XC_CIPHER_GCM) != (k->auth == XC_AUTH_GCM))
		return false;
	return k->cipher == XC_CIPHER_NULL || k->rounds == 10 ||
		(k->cipher != XC_CIPHER_AES_F8 && (k->rounds == 12 || k->rounds == 14));
}

/* Creates the context, or reuses one of the same cipher: setting another key allocates nothing, and
 * with a key derivation rate, keys change on the packet path. */
static bool ctx_load(EVP_CIPHER_CTX **ctx, const EVP_CIPHER *cipher, const uint8_t *key)
{
	if (*ctx && EVP_CIPHER_CTX_get0_cipher(*ctx) == cipher)
		return EVP_EncryptInit_ex2(*ctx, NULL, key, NULL, NULL) == 1;
	EVP_CIPHER_CTX_free(*ctx);
	*ctx = ctx_new(cipher, key);
	return *ctx != NULL;
}

static int key_load(struct engine_queue *q, uint32_t slot)
{
	static const int mode_of[] = {
		[XC_CIPHER_AES_CM] = MODE_ECB,
		[XC_CIPHER_AES_F8] = MODE_ECB,
		[XC_CIPHER_GCM] = MODE_GCM,
	};
	const struct xc_key *x = &q->arena->key[slot];
	struct serial_key *k = &q->key[slot];
	const EVP_CIPHER *cipher;

	k->ready = false;
	/* No key: remove everything of the previous one. */
	if (!slot_valid(x) || x->cipher == XC_CIPHER_NULL)
		key_drop(k);
	if (x->valid == 0)
		return 0; /* wiped: not an error */
	if (!slot_valid(x))
		return -EINVAL;
	if (x->cipher != XC_CIPHER_NULL) {
		/* The first round key is the raw key (FIPS-197 5.2). */
		cipher = q->e->cipher[mode_of[x->cipher]][(x->rounds - 10) / 2];
		if (!ctx_load(&k->ctx, cipher, x->rk))
			return -ENOMEM;
		if (x->cipher == XC_CIPHER_AES_F8 && !ctx_load(&k->mask, cipher, x->aux))
			return -ENOMEM;
	}
	k->ready = true;
	return 0;
}

static int serial_key_changed(struct engine_queue *q, uint32_t slot)
{
	int err;

	if (slot >= q->arena->key_slots || q->arena->key_slots - slot < 2)
		return -EINVAL;
	err = key_load(q, slot);
	return err ? err : key_load(q, slot + 1);
}

static bool serial_can(
	const struct engine_queue *q, const struct xc_key *rx, const struct xc_key *tx)
{
	(void)q;
	return slot_valid(rx) && slot_valid(tx);
}

/* --- One job ---------------------------------------------------------------------------------- */

/* One direction of a job. */
struct side {
	const struct xc_key *x;
	const struct serial_key *k;
	uint64_t index;
	uint32_t ssrc;
	bool rtcp, clear;
	uint8_t word[4]; /* RTP: ROC; RTCP: E||index */
};

static bool is_plain(const struct xc_key *k)
{
	return k->cipher == XC_CIPHER_NULL && k->auth == XC_AUTH_NULL;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Offset of the end of all bytes read or written, from the packet's start. */
static uint64_t side_end(const struct xc_job *j, const struct xc_key *k, uint32_t tag_off)
{
	uint64_t body_end = (uint64_t)j->hdr_len + j->body_len + 4; /* with SRTCP's word */
	uint64_t tag_end = is_plain(k) ? 0 : (uint64_t)tag_off + k->tag_len + 4;

	return body_end > tag_end ? body_end : tag_end;
}

static bool fits_slot(uint32_t off, uint64_t end, uint32_t slots)
{
	return off / ARENA_SLOT_LEN < slots &&
		off % ARENA_SLOT_LEN + end + XC_SLACK <= ARENA_SLOT_LEN;
}

static bool job_fits(const struct engine_queue *q, const struct xc_job *j)
{
	const struct arena *a = q->arena;

	return max_u32(j->rx_key, j->tx_key) < a->key_slots && q->key[j->rx_key].ready &&
		q->key[j->tx_key].ready && j->hdr_len >= (j->flags & XC_JOB_RTCP ? 8 : 12) &&
		fits_slot(j->in_off, side_end(j, &a->key[j->rx_key], j->rx_tag_off), a->slots) &&
		fits_slot(j->out_off, side_end(j, &a->key[j->tx_key], j->tx_tag_off), a->slots);
}

/* RFC 2104 from the two stored states. The outer message is one block, so it is padded here. */
static void hmac(uint8_t mac[20], const struct xc_key *k, const uint8_t *msg, size_t len,
	const uint8_t word[4])
{
	SHA_CTX c = {.h0 = k->inner[0],
		.h1 = k->inner[1],
		.h2 = k->inner[2],
		.h3 = k->inner[3],
		.h4 = k->inner[4],
		.Nl = 512};
	uint8_t block[64] = {[20] = 0x80, [62] = (64 + 20) * 8 >> 8, [63] = (64 + 20) * 8 & 0xff};

	SHA1_Update(&c, msg, len);
	SHA1_Update(&c, word, 4);
	SHA1_Final(block, &c);
	c.h0 = k->outer[0];
	c.h1 = k->outer[1];
	c.h2 = k->outer[2];
	c.h3 = k->outer[3];
	c.h4 = k->outer[4];
	SHA1_Transform(&c, block);
	put_be32(mac, c.h0);
	put_be32(mac + 4, c.h1);
	put_be32(mac + 8, c.h2);
	put_be32(mac + 12, c.h3);
	put_be32(mac + 16, c.h4);
}

/* RFC 3711 4.1.1: ssrc_at 4; RFC 7714 8.1 and 9.1: ssrc_at 2. */
static void iv_from_index(uint8_t iv[16], const struct side *s, unsigned ssrc_at)
{
	uint8_t n[10];

	put_be32(n, s->ssrc);
	put_be16(n + 4, (uint16_t)(s->index >> 32));
	put_be32(n + 6, (uint32_t)s->index);
	memcpy(iv, s->x->salt, 16);
	for (unsigned i = 0; i < sizeof(n); i++)
		iv[ssrc_at + i] ^= n[i];
}

/* dst may be src. Eight bytes at a time. */
static void xor_bytes(uint8_t *dst, const uint8_t *src, const uint8_t *ks, size_t len)
{
	size_t i = 0;

	for (; i + 8 <= len; i += 8) {
		uint64_t a, b;

		memcpy(&a, src + i, 8);
		memcpy(&b, ks + i, 8);
		a ^= b;
		memcpy(dst + i, &a, 8);
	}
	for (; i < len; i++)
		dst[i] = src[i] ^ ks[i];
}

static bool ecb_block(EVP_CIPHER_CTX *ctx, uint8_t out[16], const uint8_t in[16])
{
	int n;

	return EVP_EncryptUpdate(ctx, out, &n, in, 16) == 1 && n == 16;
}

/* RFC 3711 4.1.1: E(k, IV), E(k, IV + 1) ... The counter blocks are built here and encrypted in one
 * call: setting an IV through EVP's CTR mode costs more than encrypting a packet. */
static bool cm(const struct side *s, uint8_t *dst, const uint8_t *src, size_t len)
{
	enum { CHUNK = 512 };
	uint8_t iv[16], ks[CHUNK];
	int done;

	iv_from_index(iv, s, 4);
	for (size_t off = 0; off < len; off += CHUNK) {
		size_t n = len - off < CHUNK ? len - off : CHUNK, b = 0;

		for (; b < n; b += 16) {
			memcpy(ks + b, iv, 16);
			put_be16(ks + b + 14, (uint16_t)((off + b) / 16));
		}
		if (EVP_EncryptUpdate(s->k->ctx, ks, &done, ks, (int)b) != 1 || done != (int)b)
			return false;
		xor_bytes(dst + off, src + off, ks, n);
	}
	return true;
}

/* RFC 3711 4.1.2; hdr: this side's header. */
static bool f8(
	const struct side *s, const uint8_t *hdr, uint8_t *dst, const uint8_t *src, size_t len)
{
	uint8_t iv[16] = {0}, ks[16] = {0};

	if (s->rtcp) {
		memcpy(iv + 4, s->word, 4);
		memcpy(iv + 8, hdr, 8);
	} else {
		memcpy(iv + 1, hdr + 1, 11);
		memcpy(iv + 12, s->word, 4);
	}
	if (!ecb_block(s->k->mask, iv, iv))
		return false;
	for (size_t off = 0; off < len; off += 16) {
		size_t n = len - off < 16 ? len - off : 16;
		uint8_t j[4];

		put_be32(j, (uint32_t)(off / 16));
		for (int b = 0; b < 16; b++)
			ks[b] ^= iv[b];
		for (int b = 0; b < 4; b++)
			ks[12 + b] ^= j[b];
		if (!ecb_block(s->k->ctx, ks, ks))
			return false;
		xor_bytes(dst + off, src + off, ks, n);
	}
	return true;
}

/* CM, F8, NULL: encryption equals decryption. dst and src may be equal. */
static bool cipher(
	const struct side *s, const uint8_t *hdr, uint8_t *dst, const uint8_t *src, size_t len)
{
	if (s->x->cipher == XC_CIPHER_NULL || s->clear || len == 0) {
		if (dst != src)
			memcpy(dst, src, len);
		return true;
	}
	if (s->x->cipher == XC_CIPHER_AES_F8)
		return f8(s, hdr, dst, src, len);
	return cm(s, dst, src, len);
}

/* RFC 7714 8.2, 9.2, 9.3: header, a clear body and SRTCP's word are additional data, in this order.
 * enc: writes the tag; otherwise compares it. dst: where the body of pkt goes. */
static bool gcm(const struct side *s, bool enc, const struct xc_job *job, const uint8_t *pkt,
	uint8_t *dst, uint8_t *tag)
{
	EVP_CIPHER_CTX *ctx = s->k->ctx;
	size_t aad_len = job->hdr_len + (s->clear ? job->body_len : 0);
	int n, tag_len = (int)s->x->tag_len;
	uint8_t iv[16], end[16];

	iv_from_index(iv, s, 2);
	if (EVP_CipherInit_ex2(ctx, NULL, NULL, iv, enc, NULL) != 1 ||
		EVP_CipherUpdate(ctx, NULL, &n, pkt, (int)aad_len) != 1 ||
		(s->rtcp && EVP_CipherUpdate(ctx, NULL, &n, s->word, 4) != 1))
		return false;
	if (!s->clear && job->body_len &&
		EVP_CipherUpdate(ctx, dst, &n, pkt + job->hdr_len, (int)job->body_len) != 1)
		return false;
	if (!enc && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, tag_len, tag) != 1)
		return false;
	if (EVP_CipherFinal_ex(ctx, end, &n) != 1) /* compares in constant time */
		return false;
	return !enc || EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, tag_len, tag) == 1;
}

/* Authenticates src, and writes header and clear body to dst. */
static bool receive(
	const struct side *s, const struct xc_job *job, uint8_t *dst, const uint8_t *src)
{
	size_t len = (size_t)job->hdr_len + job->body_len;
	uint8_t mac[20];

	if (s->x->auth == XC_AUTH_GCM) {
		uint8_t tag[16];

		memcpy(tag, src + job->rx_tag_off, s->x->tag_len);
		if (!gcm(s, false, job, src, dst + job->hdr_len, tag))
			return false;
		memcpy(dst, src, s->clear ? len : job->hdr_len);
		return true;
	}
	if (s->x->auth == XC_AUTH_HMAC_SHA1) {
		hmac(mac, s->x, src, len, s->word);
		if (!secmem_equal(mac, src + job->rx_tag_off, s->x->tag_len))
			return false;
	}
	memcpy(dst, src, job->hdr_len);
	return cipher(s, src, dst + job->hdr_len, src + job->hdr_len, job->body_len);
}

/* Encrypts dst in place, and writes tag and word. */
static bool send_out(const struct side *s, const struct xc_job *job, uint8_t *dst)
{
	size_t len = (size_t)job->hdr_len + job->body_len;
	uint8_t mac[20], *body = dst + job->hdr_len, *tag = dst + job->tx_tag_off;

	if (is_plain(s->x))
		return true;
	if (s->x->auth == XC_AUTH_GCM) {
		if (!gcm(s, true, job, dst, body, tag))
			return false;
		if (s->rtcp)
			memcpy(tag + s->x->tag_len, s->word, 4);
		return true;
	}
	if (!cipher(s, dst, body, body, job->body_len))
		return false;
	if (s->x->auth == XC_AUTH_HMAC_SHA1) {
		hmac(mac, s->x, dst, len, s->word);
		memcpy(tag, mac, s->x->tag_len);
	}
	if (s->rtcp)
		memcpy(dst + len, s->word, 4);
	return true;
}

static bool job_run(struct engine_queue *q, const struct xc_job *job)
{
	const struct arena *a = q->arena;
	const uint8_t *src = a->in + job->in_off;
	uint8_t *dst = a->out + job->out_off;
	struct side rx = {
		.x = &a->key[job->rx_key], .k = &q->key[job->rx_key], .index = job->rx_index};
	struct side tx = {
		.x = &a->key[job->tx_key], .k = &q->key[job->tx_key], .index = job->tx_index};

	rx.ssrc = job->ssrc;
	tx.ssrc = job->ssrc ^ job->ssrc_change;
	rx.clear = job->flags & XC_JOB_RX_CLEAR;
	tx.clear = job->flags & XC_JOB_TX_CLEAR;
	rx.rtcp = tx.rtcp = job->flags & XC_JOB_RTCP;
	if (!rx.rtcp) {
		put_be32(rx.word, (uint32_t)(rx.index >> 16));
		put_be32(tx.word, (uint32_t)(tx.index >> 16));
	} else {
		/* The received word is the authenticated one: after the body, with AEAD after the
		 * tag. */
		if (rx.x->auth == XC_AUTH_GCM)
			memcpy(rx.word, src + job->rx_tag_off + rx.x->tag_len, 4);
		else if (!is_plain(rx.x))
			memcpy(rx.word, src + job->hdr_len + job->body_len, 4);
		put_be32(tx.word, (tx.clear ? 0 : 1u << 31) | (uint32_t)tx.index);
	}
	if (!receive(&rx, job, dst, src))
		return false;
	if (job->ssrc_change)
		put_be32(dst + (rx.rtcp ? 4 : 8), tx.ssrc);
	return send_out(&tx, job, dst);
}

static int serial_run(struct engine_queue *q, struct batch *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		b->status[i] =
			job_fits(q, &b->job[i]) && job_run(q, &b->job[i]) ? XC_OK : XC_BAD_TAG;
	return 0;
}

const struct engine_ops engine_serial = {
	.name = "serial",
	.open = serial_open,
	.close = serial_close,
	.device = serial_device,
	.queue_create = serial_queue_create,
	.queue_destroy = serial_queue_destroy,
	.key_changed = serial_key_changed,
	.can = serial_can,
	.run = serial_run,
};
