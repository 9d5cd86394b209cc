/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Certificates: made, loaded, refused, and their fingerprints. */
#include <errno.h>
#include <openssl/pem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "dtls_rig_clock.h"

static struct dtls_rig rig; /* large: not on the stack */

enum { NOW = 1700000000, DAY = 86400 };

/* PEM texts: a certificate of one key, valid for a day around from, and a private key. */
static void pem_cert(BIO *b, EVP_PKEY *key, long from)
{
	X509 *x = X509_new();

	ASN1_TIME_set(X509_getm_notBefore(x), from - DAY);
	ASN1_TIME_set(X509_getm_notAfter(x), from + DAY);
	assert_int_equal(X509_set_pubkey(x, key), 1);
	assert_true(X509_sign(x, key, EVP_PKEY_is_a(key, "ED25519") ? NULL : EVP_sha256()) > 0);
	assert_int_equal(PEM_write_bio_X509(b, x), 1);
	X509_free(x);
}

static void pem_key(BIO *b, EVP_PKEY *key, const char *passphrase)
{
	assert_int_equal(PEM_write_bio_PrivateKey(b, key, passphrase ? EVP_aes_128_cbc() : NULL,
				 NULL, 0, NULL, (void *)passphrase),
		1);
}

static struct str text_of(BIO *b)
{
	char *p = NULL;
	long len = BIO_get_mem_data(b, &p);

	return (struct str){p, (size_t)len};
}

/* cert, key: NULL = the file has none. */
static int load(struct dtls_cert **c, EVP_PKEY *cert, long from, EVP_PKEY *key, bool one_file)
{
	BIO *b = BIO_new(BIO_s_mem()), *k = one_file ? b : BIO_new(BIO_s_mem());
	int err;

	if (key)
		pem_key(k, key, NULL);
	if (cert)
		pem_cert(b, cert, from);
	err = dtls_cert_load(c, text_of(b), text_of(k), NOW);
	BIO_free(b);
	if (k != b)
		BIO_free(k);
	return err;
}

static void test_a_loaded_certificate_works(void **state)
{
	EVP_PKEY *keys[] = {EVP_EC_gen("P-256"), EVP_EC_gen("P-384"), EVP_RSA_gen(2048)};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct dtls_cert *c;

		assert_int_equal(load(&c, keys[i], NOW, keys[i], i != 1), 0);
		assert_false(dtls_cert_is_old(c, UINT64_MAX));
		dtls_rig_init(&rig);
		dtls_cert_put(rig.cert[1]);
		rig.cert[1] = rig.config[1].cert = c;
		dtls_rig_create(&rig, true);
		dtls_rig_handshake(&rig);
		assert_true(dtls_rig_keys_agree(&rig, NULL));
		dtls_rig_fini(&rig);
		EVP_PKEY_free(keys[i]);
	}
}

static void test_a_bad_file_is_refused(void **state)
{
	EVP_PKEY *a = EVP_EC_gen("P-256"), *b = EVP_EC_gen("P-256"), *weak = EVP_RSA_gen(1024),
		 *curve = EVP_EC_gen("P-224"), *other = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	const struct {
		EVP_PKEY *cert;
		long from;
		EVP_PKEY *key;
		int err;
		bool of_key;
	} T[] = {
		{a, NOW, NULL, -ENOKEY, true},
		{NULL, NOW, a, -ENOENT, false},
		{NULL, NOW, NULL, -ENOENT, false},
		{a, NOW, b, -EKEYREJECTED, true},
		{a, NOW, weak, -ERANGE, true},
		{curve, NOW, curve, -ERANGE, true},
		{other, NOW, other, -ERANGE, true},
		{a, NOW - 2 * DAY, a, -ETIME, false},
		{a, NOW + 2 * DAY, a, -EAGAIN, false},
	};
	struct dtls_cert *c;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (int one_file = 0; one_file < 2; one_file++) {
			assert_int_equal(
				load(&c, T[i].cert, T[i].from, T[i].key, one_file), T[i].err);
			assert_int_equal(dtls_cert_error_of_key(T[i].err), T[i].of_key);
			assert_null(strstr(dtls_cert_error(T[i].err), "memory"));
		}
	/* OpenSSL itself refuses the weakest certificates. */
	assert_true(load(&c, weak, NOW, weak, true) < 0);
	assert_int_equal(dtls_cert_load(&c, STR(""), STR(""), NOW), -ENOENT);
	assert_int_equal(
		dtls_cert_load(&c, STR("-----BEGIN CERTIFICATE-----\n"), STR(""), NOW), -ENOENT);
	EVP_PKEY_free(a);
	EVP_PKEY_free(b);
	EVP_PKEY_free(weak);
	EVP_PKEY_free(curve);
	EVP_PKEY_free(other);
}

/* Nobody is asked for the passphrase. */
static void test_an_encrypted_key_is_refused(void **state)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	BIO *b = BIO_new(BIO_s_mem());
	struct dtls_cert *c;

	(void)state;
	pem_key(b, key, "secret");
	pem_cert(b, key, NOW);
	assert_int_equal(dtls_cert_load(&c, text_of(b), text_of(b), NOW), -ENOKEY);
	BIO_free(b);
	EVP_PKEY_free(key);
}

static void test_certificates_are_renewed_by_age(void **state)
{
	struct dtls_fingerprint f[2];
	struct dtls_cert *c[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(dtls_cert_create(&c[i], 1700000000, 86400), 0);
		assert_int_equal(dtls_cert_fingerprint(&f[i], c[i], DTLS_SHA256), 0);
		assert_int_equal(dtls_cert_fingerprint(&f[i], c[i], DTLS_HASH_COUNT), -EINVAL);
	}
	assert_false(sdp_fingerprint_eq(&f[0], &f[1]));
	assert_false(dtls_cert_is_old(c[0], 1700000000));
	assert_false(dtls_cert_is_old(c[0], 1700000000 + 86400 / 2 - 1));
	assert_true(dtls_cert_is_old(c[0], 1700000000 + 86400 / 2));
	dtls_cert_put(c[0]);
	dtls_cert_put(c[1]);
	dtls_cert_put(NULL);
}

/* An association keeps its certificate after its owner replaced it. */
static void test_an_old_association_keeps_its_certificate(void **state)
{
	(void)state;
	dtls_rig_init(&rig);
	dtls_rig_create(&rig, true);
	dtls_cert_put(rig.cert[0]);
	dtls_cert_put(rig.cert[1]);
	rig.cert[0] = rig.cert[1] = NULL;
	dtls_rig_handshake(&rig);
	assert_true(dtls_rig_keys_agree(&rig, NULL));
	dtls_rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_loaded_certificate_works),
		cmocka_unit_test(test_a_bad_file_is_refused),
		cmocka_unit_test(test_an_encrypted_key_is_refused),
		cmocka_unit_test(test_certificates_are_renewed_by_age),
		cmocka_unit_test(test_an_old_association_keeps_its_certificate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
