/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The serial engine: every suite, in the worker's own thread, without a device. AES-CM with
 * HMAC-SHA1 is done several packets at once by the processor's instructions (quick.c), everything
 * else packet by packet by OpenSSL's libcrypto (serial_job.c). For batches too small for a
 * dispatch, and for batches that a device failed at. Allocates only when keys change. A job that
 * exceeds its packet slots, or names unannounced keys, does not authenticate, and nothing is
 * written for it. */
#include "batch/engine.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lines.h"
#include "base/secmem.h"
#include "batch/aes_cm.h"
#include "batch/quick.h"
#include "batch/serial_job.h"
#include "batch/sha1_lanes.h"
#include "packet/arena.h"
#include "srtp/sha1_pair.h"

enum { MODE_ECB, MODE_GCM, MODES };

struct engine {
	EVP_CIPHER *cipher[MODES]
			  [3]; /* by key length 16, 24, 32; fetched once: a fetch takes a lock */
	/* AES-CM with HMAC-SHA1 is done several packets at once, by these methods; see quick.h. */
	bool quick;
	struct sha1_ways ways;
	char device[128];
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

/* The best ways of this processor, or the one that the flags name. */
static void ways_choose(struct engine *e, uint32_t flags)
{
	uint32_t only = flags / ENGINE_WAY(0);
	int at;

	e->quick = aes_cm_usable() && !(flags & ENGINE_LIBCRYPTO);
	for (uint32_t i = 0; e->quick && i < SHA1_WAYS; i++) {
		const struct sha1_way *way = sha1_way(i);

		if (!way || (only && only != i + 1))
			continue;
		e->ways.few = e->ways.few ? e->ways.few : way;
		e->ways.many = e->ways.many && !way->over_two ? e->ways.many : way;
	}
	e->ways.pair = e->ways.few && !e->ways.few->two && sha1_pair_usable();
	at = snprintf(e->device, sizeof(e->device), "%s%s", OpenSSL_version(OPENSSL_VERSION),
		e->quick ? ", AES-NI" : "");
	if (e->ways.few)
		snprintf(e->device + at, sizeof(e->device) - (size_t)at, ", SHA-1 by %s%s%s",
			e->ways.few->name, e->ways.many == e->ways.few ? "" : " and ",
			e->ways.many == e->ways.few ? "" : e->ways.many->name);
}

static int serial_open(
	struct engine **out, const struct engine_config *cfg, char *err, size_t err_len)
{
	static const char *const names[MODES] = {"ECB", "GCM"};
	struct engine *e = calloc(1, sizeof(*e));

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
	ways_choose(e, cfg->flags);
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
	q->key[0].quick = q->key[1].quick = e->quick;
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

	k->ready = k->quick = false;
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
	k->quick = q->e->quick && quick_can(x);
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

/* --- A batch ---------------------------------------------------------------------------------- */

static bool is_plain(const struct xc_key *k)
{
	return k->cipher == XC_CIPHER_NULL && k->auth == XC_AUTH_NULL;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Offset of the end of all bytes read or written, from the packet's start. */
static uint64_t side_end(
	const struct xc_job *j, const struct xc_key *k, uint32_t tag_off, uint32_t add)
{
	/* with SRTCP's word */
	uint64_t body_end = (uint64_t)j->hdr_len + j->body_len + add + 4;
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
		XC_BLOCK_CUT(j->flags) <= j->body_len && XC_BLOCK_ADD(j->flags) <= XC_BLOCK_MAX &&
		(!XC_BLOCK_ADD(j->flags) || j->out_off % ARENA_SLOT_LEN >= XC_BLOCK_MAX) &&
		fits_slot(j->in_off, side_end(j, &a->key[j->rx_key], j->rx_tag_off, 0), a->slots) &&
		fits_slot(j->out_off,
			side_end(j, &a->key[j->tx_key], j->tx_tag_off, XC_BLOCK_ADD(j->flags)),
			a->slots);
}

_Static_assert(XC_KEY_LINES == 4, "key_ahead()");

/* The keys of a group arrive while its first packets are done. */
static inline void key_ahead(const struct xc_key *key)
{
	const uint8_t *k = (const uint8_t *)key;

	__builtin_prefetch(k, 0, 2);
	__builtin_prefetch(k + 64, 0, 2);
	__builtin_prefetch(k + 128, 0, 2);
	__builtin_prefetch(k + 192, 0, 2);
}

/* Out of line: rare, and the loop of serial_run() stays short. */
static __attribute__((noinline)) void doubt(
	struct quick *d, struct quick *g, const struct xc_job *j, uint32_t *status)
{
	d->job[d->n] = j;
	d->status[d->n++] = status;
	if (d->n == QUICK_JOBS)
		quick_doubt(d, g);
}

static int serial_run(struct engine_queue *q, struct batch *b)
{
	struct arena a = *q->arena;
	struct quick g, doubted; /* their lists are filled as needed */

	g.arena = doubted.arena = &a;
	g.ways = doubted.ways = &q->e->ways;
	g.n = doubted.n = 0;
	if (b->in_place)
		a.in = a.out;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct xc_job *j = &b->job[i];

		if (!job_fits(q, j)) {
			b->status[i] = XC_BAD_TAG;
		} else if (q->key[j->rx_key].quick && q->key[j->tx_key].quick) {
			key_ahead(&a.key[j->rx_key]);
			key_ahead(&a.key[j->tx_key]);
			if (j->flags & XC_JOB_DOUBT && a.key[j->rx_key].auth)
				doubt(&doubted, &g, j, &b->status[i]);
			else
				quick_add(&g, j, &b->status[i]);
		} else {
			b->status[i] = serial_job_run(&a, q->key, j) ? XC_OK : XC_BAD_TAG;
		}
	}
	if (doubted.n)
		quick_doubt(&doubted, &g);
	if (g.n)
		quick_run(&g);
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
