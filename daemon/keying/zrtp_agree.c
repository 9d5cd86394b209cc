/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Key agreements of ZRTP (RFC 6189 4.4.1, 5.1.5): Diffie-Hellman in the MODP groups of RFC 3526,
 * and on elliptic curves. */
#include "keying/zrtp_agree.h"

#include <errno.h>
#include <stdlib.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/secmem.h"
#include "keying/zrtp_crypto.h"

struct zrtp_pair {
	enum zrtp_agreement a;
	EVP_PKEY *key;
	uint8_t value[ZRTP_VALUE_MAX];
};

static const struct {
	const char *algorithm, *group;
	uint16_t value, result;
	bool point; /* OpenSSL writes 0x04 before x and y */
} of[ZRTP_AGREEMENT_N] = {
	[ZRTP_EC25] = {"EC", "P-256", 64, 32, true},
	[ZRTP_X255] = {"X25519", NULL, 32, 32, false},
	[ZRTP_DH3K] = {"DH", "modp_3072", 384, 384, false},
	[ZRTP_EC38] = {"EC", "P-384", 96, 48, true},
	[ZRTP_DH2K] = {"DH", "modp_2048", 256, 256, false},
};

uint32_t zrtp_value_len(enum zrtp_agreement a)
{
	return of[a].value;
}

uint32_t zrtp_result_len(enum zrtp_agreement a)
{
	return of[a].result;
}

static bool generate(EVP_PKEY **key, enum zrtp_agreement a)
{
	OSSL_PARAM group[] = {OSSL_PARAM_END, OSSL_PARAM_END};
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, of[a].algorithm, NULL);
	bool good = c && EVP_PKEY_keygen_init(c) > 0;

	if (of[a].group)
		group[0] = OSSL_PARAM_construct_utf8_string(
			OSSL_PKEY_PARAM_GROUP_NAME, (char *)(uintptr_t)of[a].group, 0);
	good = good && EVP_PKEY_CTX_set_params(c, group) > 0 && EVP_PKEY_generate(c, key) > 0;
	EVP_PKEY_CTX_free(c);
	return good;
}

/* OpenSSL leaves out leading zeroes of Diffie-Hellman values. */
static int encode(struct zrtp_pair *k)
{
	uint8_t *raw = NULL;
	size_t n = EVP_PKEY_get1_encoded_public_key(k->key, &raw), skip = of[k->a].point;
	size_t want = of[k->a].value;
	int err = n <= skip || n - skip > want ? -EIO : 0;

	if (!err) {
		memset(k->value, 0, want - (n - skip));
		memcpy(k->value + want - (n - skip), raw + skip, n - skip);
	}
	OPENSSL_free(raw);
	return err;
}

int zrtp_pair_make(struct zrtp_pair **out, enum zrtp_agreement a)
{
	struct zrtp_pair *k;
	int err;

	*out = NULL;
	if (a >= ZRTP_AGREEMENT_N || !of[a].value)
		return -ENOTSUP;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -EIO;
	k->a = a;
	err = generate(&k->key, a) ? encode(k) : -EIO;
	if (err) {
		zrtp_pair_free(k);
		return err;
	}
	*out = k;
	return 0;
}

const uint8_t *zrtp_pair_value(const struct zrtp_pair *k)
{
	return k->value;
}

/* Checks the value: a point on the curve; in a MODP group, neither 1 nor p - 1 nor out of range. */
static EVP_PKEY *peer(const struct zrtp_pair *k, const uint8_t *value)
{
	uint8_t raw[1 + ZRTP_VALUE_MAX];
	EVP_PKEY *p = EVP_PKEY_new();
	EVP_PKEY_CTX *c = NULL;
	bool good;

	raw[0] = 4;
	memcpy(raw + of[k->a].point, value, of[k->a].value);
	good = p && EVP_PKEY_copy_parameters(p, k->key) > 0 &&
		EVP_PKEY_set1_encoded_public_key(p, raw, of[k->a].value + of[k->a].point) > 0;
	c = good ? EVP_PKEY_CTX_new_from_pkey(NULL, p, NULL) : NULL;
	good = c && EVP_PKEY_public_check_quick(c) > 0;
	EVP_PKEY_CTX_free(c);
	if (good)
		return p;
	EVP_PKEY_free(p);
	return NULL;
}

int zrtp_pair_agree(struct zrtp_pair *k, uint8_t *result, const uint8_t *value)
{
	EVP_PKEY *p = peer(k, value);
	EVP_PKEY_CTX *c = p ? EVP_PKEY_CTX_new_from_pkey(NULL, k->key, NULL) : NULL;
	size_t want = of[k->a].result, n = want;
	uint8_t raw[ZRTP_VALUE_MAX];
	int err = !p ? -EBADMSG : -EIO;

	if (c && EVP_PKEY_derive_init(c) > 0 && EVP_PKEY_derive_set_peer(c, p) > 0) {
		/* X25519 fails with a value of low order. */
		err = EVP_PKEY_derive(c, raw, &n) > 0 && n <= want ? 0 : -EBADMSG;
	}
	if (!err) {
		memset(result, 0, want - n);
		memcpy(result + want - n, raw, n);
	}
	secmem_wipe(raw, sizeof(raw));
	EVP_PKEY_CTX_free(c);
	EVP_PKEY_free(p);
	return err;
}

void zrtp_pair_free(struct zrtp_pair *k)
{
	if (!k)
		return;
	EVP_PKEY_free(k->key);
	free(k);
}
