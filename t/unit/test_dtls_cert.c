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

static BIO *pem_of(EVP_PKEY *cert_key, EVP_PKEY *key)
{
	BIO *b = BIO_new(BIO_s_mem());
	X509 *x = X509_new();

	assert_non_null(b);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400);
	assert_int_equal(X509_set_pubkey(x, cert_key), 1);
	assert_true(X509_sign(x, cert_key, EVP_sha256()) > 0);
	if (key)
		assert_int_equal(PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL), 1);
	assert_int_equal(PEM_write_bio_X509(b, x), 1);
	X509_free(x);
	return b;
}

static int load(struct dtls_cert **c, BIO *b)
{
	char *p;
	long len = BIO_get_mem_data(b, &p);
	int err = dtls_cert_load(c, (struct str){p, (size_t)len});

	BIO_free(b);
	return err;
}

static void test_a_loaded_certificate_works(void **state)
{
	EVP_PKEY *keys[] = {EVP_EC_gen("P-256"), EVP_EC_gen("P-384"), EVP_RSA_gen(2048)};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct dtls_cert *c;

		assert_int_equal(load(&c, pem_of(keys[i], keys[i])), 0);
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
	EVP_PKEY *a = EVP_EC_gen("P-256"), *b = EVP_EC_gen("P-256"), *weak = EVP_RSA_gen(1024);
	struct dtls_cert *c;

	(void)state;
	assert_int_equal(load(&c, pem_of(a, NULL)), -EBADMSG);
	assert_int_equal(load(&c, pem_of(a, b)), -EKEYREJECTED);
	assert_int_equal(load(&c, pem_of(a, weak)), -EKEYREJECTED);
	assert_int_equal(dtls_cert_load(&c, STR("")), -EBADMSG);
	assert_int_equal(dtls_cert_load(&c, STR("-----BEGIN PRIVATE KEY-----\n")), -EBADMSG);
	EVP_PKEY_free(a);
	EVP_PKEY_free(b);
	EVP_PKEY_free(weak);
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
		cmocka_unit_test(test_certificates_are_renewed_by_age),
		cmocka_unit_test(test_an_old_association_keeps_its_certificate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
