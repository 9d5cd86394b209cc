/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Key derivation: RFC 3711 B.3, RFC 6188 7.2 and 7.4, the session keys of t/vectors, and the
 * contents of a key slot. */
#include <errno.h>
#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "hex.h"
#include "srtp/kdf.h"
#include "srtp/ref.h"
#include "vectors.h"

static void published_session_keys_are_derived(void **state)
{
	static const struct {
		enum srtp_suite_id suite;
		const char *key, *salt, *enc, *auth, *session_salt;
	} T[] = {
		{SUITE_AES_CM_128_80, "E1F97A0D3E018BE0D64FA32C06DE4139",
			"0EC675AD498AFEEBB6960B3AABE6", "C61E7A93744F39EE10734AFE3FF7A087",
			"CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4", "30CBBC08863D8C85D49DB34A9AE1"},
		{SUITE_AES_256_CM_80,
			"f0f04914b513f2763a1b1fa130f10e2998f6f6e43e4309d1e622a0e332b9f1b6",
			"3b04803de51ee7c96423ab5b78d2",
			"5ba1064e30ec51613cad926c5a28ef731ec7fb397f70a960653caf06554cd8c4",
			"fd9c32d39ed5fbb5a9dc96b30818454d1313dc05", "fa31791685ca444a9e07c6c64e93"},
		{SUITE_AES_192_CM_80, "73edc66c4fa15776fb57f9505c17136550ffda71f3e8e5f1",
			"c8522f3acd4ce86d5add78edbb11",
			"31874736a8f1143870c26e4857d8a5b2c4a354407faadabb",
			"355b10973cd95b9eacf4061c7e1a7151e7cfbfcb", "2372b82d639b6d8503a47adc0a6c"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct srtp_master m = {.suite = T[i].suite};
		struct srtp_session_keys want, got;

		memset(&want, 0, sizeof(want));
		unhex(m.key, sizeof(m.key), T[i].key);
		unhex(m.salt, sizeof(m.salt), T[i].salt);
		unhex(want.enc, sizeof(want.enc), T[i].enc);
		unhex(want.auth, sizeof(want.auth), T[i].auth);
		unhex(want.salt, sizeof(want.salt), T[i].session_salt);
		assert_int_equal(srtp_kdf(&got, &m, false, 0), 0);
		assert_memory_equal(&got, &want, sizeof(got));
	}
}

/* An independent RFC 3711 4.3.1: x as a 112-bit number, its keystream by OpenSSL's counter mode. */
static void openssl_prf(
	const struct srtp_master *m, uint64_t label, uint64_t r, uint8_t *out, int len)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);
	const EVP_CIPHER *c = s->key_len == 16 ? EVP_aes_128_ctr()
		: s->key_len == 24             ? EVP_aes_192_ctr()
					       : EVP_aes_256_ctr();
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	unsigned __int128 x = 0;
	uint8_t iv[16];
	int n;

	for (unsigned i = 0; i < 14; i++)
		x = x << 8 | (i < s->salt_len ? m->salt[i] : 0);
	x ^= (unsigned __int128)label << 48 | r;
	x <<= 16;
	for (int i = 0; i < 16; i++)
		iv[i] = (uint8_t)(x >> (120 - 8 * i));
	memset(out, 0, (size_t)len);
	assert_int_equal(EVP_EncryptInit_ex(ctx, c, NULL, m->key, iv), 1);
	assert_int_equal(EVP_EncryptUpdate(ctx, out, &n, out, len), 1);
	EVP_CIPHER_CTX_free(ctx);
}

/* With a key derivation rate, RFC 3711 4.3.1 and 4.3.2; there are no published vectors for r > 0.
 */
static void every_epoch_has_its_session_keys(void **state)
{
	static const uint64_t rs[] = {
		0, 1, 2, 0xff, 0x100, 0xabcdef, 0x7fffffff, 0x123456789abc, (1ull << 48) - 1};

	(void)state;
	for (int suite = SUITE_PLAIN + 1; suite < SUITE_COUNT; suite++)
		for (size_t i = 0; i < ARRAY_LEN(rs); i++)
			for (int rtcp = 0; rtcp < 2; rtcp++) {
				const struct srtp_suite *s =
					srtp_suite_get((enum srtp_suite_id)suite);
				struct srtp_master m = {.suite = s->id};
				struct srtp_session_keys got, want = {0};
				struct xc_key vault, slot, filled = {0};

				for (int b = 0; b < 32; b++)
					m.key[b] = (uint8_t)(17 * b + suite);
				for (int b = 0; b < 14; b++)
					m.salt[b] = (uint8_t)(29 * b + 3 * suite);
				openssl_prf(&m, rtcp ? 3 : 0, rs[i], want.enc, s->key_len);
				openssl_prf(&m, rtcp ? 4 : 1, rs[i], want.auth, 20);
				openssl_prf(&m, rtcp ? 5 : 2, rs[i], want.salt, s->salt_len);
				assert_int_equal(srtp_kdf(&got, &m, rtcp, rs[i]), 0);
				assert_memory_equal(&got, &want, sizeof(got));
				/* The packet path derives the same keys. */
				srtp_vault_fill(&vault, &m);
				assert_int_not_equal(vault.valid, XC_KEY_VALID);
				srtp_slot_fill(&filled, s, &want, rtcp);
				srtp_slot_derive(&slot, &vault, s->id, false, rtcp, rs[i]);
				assert_memory_equal(&slot, &filled, sizeof(slot));
			}
}

static void what_no_key_can_be_is_refused(void **state)
{
	static const struct xc_key none[2];
	static const struct srtp_master T[] = {
		{.suite = SUITE_AES_CM_128_80, .kdr = SRTP_KDR_MAX + 1},
		{.suite = SUITE_AEAD_AES_128_GCM, .no_rtp_auth = true},
		{.suite = SUITE_COUNT},
	};
	struct xc_key pair[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		memset(pair, 0xa5, sizeof(pair));
		assert_int_equal(srtp_key_fill(pair, &T[i]), -EINVAL);
		assert_memory_equal(pair, none, sizeof(pair));
	}
}

static void every_vectors_session_keys_are_derived(void **state)
{
	size_t n;
	struct vector *v = vectors_load(VECTORS_PATH, &n);

	(void)state;
	assert_non_null(v);
	assert_int_equal(n, 240);
	for (size_t i = 0; i < n; i++)
		for (int rtcp = 0; rtcp < 2; rtcp++) {
			const struct srtp_suite *s = srtp_suite_get(v[i].master.suite);
			struct srtp_session_keys got;

			assert_int_equal(srtp_kdf(&got, &v[i].master, rtcp, 0), 0);
			assert_memory_equal(got.enc, v[i].session[rtcp].enc, s->key_len);
			assert_memory_equal(got.salt, v[i].session[rtcp].salt, s->salt_len);
			if (s->auth == XC_AUTH_HMAC_SHA1)
				assert_memory_equal(got.auth, v[i].session[rtcp].auth, 20);
		}
	free(v);
}

static void a_slot_holds_what_engines_read(void **state)
{
	(void)state;
	for (int id = SUITE_PLAIN + 1; id < SUITE_COUNT; id++) {
		const struct srtp_suite *s = srtp_suite_get((enum srtp_suite_id)id);
		struct srtp_master m = {.suite = s->id, .key = {1, 2, 3}, .salt = {4, 5, 6}};
		struct xc_key pair[2];
		struct srtp_session_keys k;

		memset(pair, 0xa5, sizeof(pair));
		assert_int_equal(srtp_key_fill(pair, &m), 0);
		for (int rtcp = 0; rtcp < 2; rtcp++) {
			assert_int_equal(srtp_kdf(&k, &m, rtcp, 0), 0);
			assert_int_equal(pair[rtcp].cipher, s->cipher);
			assert_int_equal(pair[rtcp].auth, s->auth);
			assert_int_equal(
				pair[rtcp].tag_len, rtcp ? s->rtcp_tag_len : s->rtp_tag_len);
			assert_int_equal(pair[rtcp].rounds, 6 + s->key_len / 4);
			/* Engines take the raw key from the first round keys. */
			if (s->cipher != XC_CIPHER_NULL)
				assert_memory_equal(pair[rtcp].rk, k.enc, s->key_len);
			assert_memory_equal(pair[rtcp].salt, k.salt, s->salt_len);
			assert_int_equal(pair[rtcp].salt[14] | pair[rtcp].salt[15], 0);
		}
		assert_memory_not_equal(pair[0].rk, s->cipher ? pair[1].rk : (uint8_t[16]){1}, 16);
	}
}

static void plain_is_said_not_left_blank_and_an_unknown_suite_leaves_nothing(void **state)
{
	static const struct xc_key none[2], plain = {.valid = XC_KEY_VALID};
	struct srtp_master m = {.suite = SUITE_PLAIN};
	struct xc_key pair[2];

	(void)state;
	memset(pair, 0xa5, sizeof(pair));
	assert_int_equal(srtp_key_fill(pair, &m), 0);
	assert_memory_equal(&pair[0], &plain, sizeof(plain));
	assert_memory_equal(&pair[1], &plain, sizeof(plain));
	memset(pair, 0xa5, sizeof(pair));
	m.suite = SUITE_COUNT;
	assert_int_equal(srtp_key_fill(pair, &m), -EINVAL);
	assert_memory_equal(pair, none, sizeof(pair));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_session_keys_are_derived),
		cmocka_unit_test(every_epoch_has_its_session_keys),
		cmocka_unit_test(what_no_key_can_be_is_refused),
		cmocka_unit_test(every_vectors_session_keys_are_derived),
		cmocka_unit_test(a_slot_holds_what_engines_read),
		cmocka_unit_test(plain_is_said_not_left_blank_and_an_unknown_suite_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
