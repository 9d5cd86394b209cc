/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From key data to master keys of SRTP (RFC 3830 4.1.3). */
#include "base/secmem.h"
#include "keying/mikey_int.h"
#include "srtp/params.h"

static bool copy(uint8_t *out, struct str from, size_t len)
{
	if (from.len != len)
		return false;
	memcpy(out, from.s, len);
	return true;
}

/* TGK: keys are derived, for each crypto session another. */
static bool derived(struct srtp_master *m, const struct mikey_run *r,
	const struct mikey_key_data *k, uint32_t cs)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);
	struct mikey_label l = {
		.constant = MIKEY_LABEL_TEK,
		.cs_id = (uint8_t)(cs + 1),
		.csb_id = r->csb_id,
		.rand = mikey_bytes(r->rand, r->rand_len),
	};

	/* A TGK shorter than the key would promise a strength that is not there. */
	if (k->key.len < s->key_len || !mikey_prf(m->key, s->key_len, k->key, &l))
		return false;
	if (k->type == MIKEY_KEY_TGK_SALT)
		return copy(m->salt, k->salt, s->salt_len);
	l.constant = MIKEY_LABEL_SALT;
	return mikey_prf(m->salt, s->salt_len, k->key, &l);
}

/* TEK: the key itself. Some peers append the salt to the key. */
static bool direct(struct srtp_master *m, const struct mikey_key_data *k)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);
	struct str key = k->key, salt = k->salt;

	if (k->type == MIKEY_KEY_TEK && key.len == (size_t)s->key_len + s->salt_len) {
		salt = (struct str){key.s + s->key_len, s->salt_len};
		key.len = s->key_len;
	}
	return copy(m->key, key, s->key_len) && copy(m->salt, salt, s->salt_len);
}

/* For SRTP an interval counts packet indexes (RFC 3830 6.14). Keys are not changed when it ends, so
 * it has to include every index that a call can reach. */
#define INDEXES (1ull << 31)

static bool is_valid(const struct mikey_kv *kv)
{
	uint64_t from = 0, to = 0;

	if (kv->type != MIKEY_KV_INTERVAL)
		return true;
	if (kv->from.len > sizeof(from) || kv->to.len > sizeof(to))
		return false;
	for (size_t i = 0; i < kv->from.len; i++)
		from = from << 8 | (uint8_t)kv->from.s[i];
	for (size_t i = 0; i < kv->to.len; i++)
		to = to << 8 | (uint8_t)kv->to.s[i];
	return from == 0 && to >= INDEXES;
}

static bool set_mki(struct srtp_master *m, const struct mikey_kv *kv)
{
	if (kv->type != MIKEY_KV_SPI)
		return true;
	m->mki_len = (uint8_t)kv->spi.len;
	return kv->spi.len && kv->spi.len <= SUITE_MKI_KEPT && copy(m->mki, kv->spi, kv->spi.len);
}

static bool is_tek(const struct mikey_key_data *k)
{
	return k->type == MIKEY_KEY_TEK || k->type == MIKEY_KEY_TEK_SALT;
}

/* One TGK is for all crypto sessions. TEKs are one for each, in their order. */
static bool master(struct srtp_master *m, const struct mikey_run *r, const struct mikey_key_list *k,
	uint32_t cs)
{
	const struct mikey_key_data *key = &k->key[k->count > 1 ? cs : 0];
	bool ok;

	memset(m, 0, sizeof(*m));
	m->suite = r->cs_suite[cs];
	if (is_tek(key))
		ok = direct(m, key);
	else
		ok = k->count == 1 && derived(m, r, key, cs);
	return ok && set_mki(m, &key->kv);
}

static bool medium(struct mikey_medium *out, const struct mikey_run *r,
	const struct mikey_key_list *k, uint32_t i)
{
	uint32_t a = 2 * i, b = a + 1; /* streams of the initiator and the responder */
	uint32_t rx = r->initiator ? b : a, tx = r->initiator ? a : b;

	return master(&out->rx, r, k, rx) && master(&out->tx, r, k, tx);
}

static const struct srtp_master *nth(const struct mikey_keys *k, uint32_t n)
{
	return n % 2 ? &k->medium[n / 2].tx : &k->medium[n / 2].rx;
}

static bool is_zero(const struct srtp_master *m)
{
	static const uint8_t zero[SUITE_MAX_KEY_LEN];

	return secmem_equal(m->key, zero, srtp_suite_get(m->suite)->key_len);
}

/* The peer chooses TEKs. With one for both directions, our packets would be authentic when somebody
 * reflects them; with one for two streams, two senders could repeat a keystream (RFC 3711 9.1). */
static bool are_apart(const struct mikey_keys *k)
{
	for (uint32_t i = 0; i < 2u * k->media; i++) {
		if (is_zero(nth(k, i)))
			return false;
		for (uint32_t j = 0; j < i; j++)
			if (srtp_shares_key(nth(k, i), nth(k, j)))
				return false;
	}
	return true;
}

enum mikey_failure mikey_keys_make(
	struct mikey_keys *out, const struct mikey_run *r, const struct mikey_key_list *k)
{
	bool ok = k->count == 1 || k->count == r->sessions;

	memset(out, 0, sizeof(*out));
	for (uint32_t i = 0; i < k->count; i++)
		if (!is_valid(&k->key[i].kv))
			return MIKEY_FAIL_VALIDITY;
	out->media = r->media;
	for (uint32_t i = 0; ok && i < r->media; i++)
		ok = medium(&out->medium[i], r, k, i);
	if (ok && are_apart(out))
		return MIKEY_OK;
	secmem_wipe(out, sizeof(*out));
	return ok ? MIKEY_FAIL_SHARED_KEY : MIKEY_FAIL_KEYS;
}
