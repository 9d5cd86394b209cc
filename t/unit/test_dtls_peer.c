/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An association against OpenSSL as a peer that breaks the rules of RFC 5764: without certificate,
 * without SRTP, with NULL profiles, with an old version, and renegotiating. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "keying/dtls_int.h"

#define NOW 1000000000ull

struct peer {
	SSL_CTX *ctx;
	BIO_METHOD *method;
	SSL *ssl;
	struct dtls_io io;
};

struct bad {
	bool serves, no_cert, no_srtp, old;
};

static struct dtls_cert *cert;
static struct peer peer;

static int accept_any(X509_STORE_CTX *x, void *unused)
{
	(void)x;
	(void)unused;
	return 1;
}

static void peer_init(const struct bad *b)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();

	memset(&peer, 0, sizeof(peer));
	peer.ctx = SSL_CTX_new(DTLS_method());
	peer.method = dtls_io_method();
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400);
	X509_set_pubkey(x, key);
	X509_sign(x, key, EVP_sha256());
	if (!b->no_cert) {
		SSL_CTX_use_certificate(peer.ctx, x);
		SSL_CTX_use_PrivateKey(peer.ctx, key);
	}
	X509_free(x);
	EVP_PKEY_free(key);
	SSL_CTX_set_verify(peer.ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_cert_verify_callback(peer.ctx, accept_any, NULL);
	if (!b->no_srtp)
		SSL_CTX_set_tlsext_use_srtp(peer.ctx, "SRTP_AES128_CM_SHA1_80");
	if (b->old) {
		SSL_CTX_set_cipher_list(peer.ctx, "ALL:@SECLEVEL=0");
		SSL_CTX_set_max_proto_version(peer.ctx, DTLS1_VERSION);
		SSL_CTX_set_min_proto_version(peer.ctx, DTLS1_VERSION);
	}
	peer.ssl = SSL_new(peer.ctx);
	SSL_set_options(peer.ssl, SSL_OP_NO_QUERY_MTU);
	SSL_set_mtu(peer.ssl, 1200);
	assert_true(dtls_io_init(&peer.io));
	assert_true(dtls_io_attach(peer.ssl, peer.method, &peer.io));
	if (b->serves)
		SSL_set_accept_state(peer.ssl);
	else
		SSL_set_connect_state(peer.ssl);
}

static void peer_fini(void)
{
	SSL_free(peer.ssl);
	SSL_CTX_free(peer.ctx);
	BIO_meth_free(peer.method);
	dtls_io_fini(&peer.io);
}

static struct dtls *create(bool client)
{
	struct dtls_config c = {.cert = cert,
		.role = client ? DTLS_ROLE_CLIENT : DTLS_ROLE_SERVER,
		.profile = {SUITE_AES_CM_128_80, SUITE_AEAD_AES_128_GCM},
		.profiles = 2};
	struct dtls *a;

	assert_int_equal(dtls_create(&a, &c), 0);
	assert_int_equal(dtls_start(a, NOW), 0);
	return a;
}

/* Both until nothing is left to send. The number of packets that the association sent. */
static unsigned talk(struct dtls *a)
{
	uint8_t buf[DTLS_PACKET_MAX], junk[64];
	unsigned sent = 0;
	int n = 1;

	SSL_do_handshake(peer.ssl);
	while (n) {
		n = dtls_io_next(&peer.io, buf, sizeof(buf));
		if (n > 0) {
			(void)dtls_take(a, buf, (size_t)n, NOW);
			continue;
		}
		n = dtls_next(a, buf, sizeof(buf));
		if (n > 0) {
			sent++;
			peer.io.in = buf;
			peer.io.in_len = (size_t)n;
			if (SSL_is_init_finished(peer.ssl))
				(void)SSL_read(peer.ssl, junk, sizeof(junk));
			else
				SSL_do_handshake(peer.ssl);
		}
	}
	return sent;
}

static void test_bad_peers_get_no_keys_and_one_reason(void **state)
{
	static const struct {
		struct bad bad;
		enum dtls_failure want;
	} t[] = {
		{{.serves = false}, DTLS_FAIL_NONE},
		{{.serves = true}, DTLS_FAIL_NONE},
		{{.no_cert = true}, DTLS_FAIL_NO_CERTIFICATE},
		{{.no_srtp = true}, DTLS_FAIL_NO_PROFILE},
		{{.old = true}, DTLS_FAIL_NO_CIPHER},
		{{.serves = true, .no_srtp = true}, DTLS_FAIL_NO_PROFILE},
		{{.serves = true, .no_cert = true}, DTLS_FAIL_REFUSED}, /* no cipher for it */
		{{.serves = true, .old = true}, DTLS_FAIL_NO_CIPHER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct dtls *a = create(t[i].bad.serves);
		struct srtp_master rx, tx;

		peer_init(&t[i].bad);
		talk(a);
		/* An alert in clear may be forged, so it counts only after a while. */
		if (t[i].want == DTLS_FAIL_REFUSED)
			dtls_tick(a, NOW + DTLS_REFUSED_NS);
		if (dtls_failure(a) != t[i].want)
			fail_msg("row %zu: %s", i, dtls_failure_text(dtls_failure(a)));
		assert_int_equal(
			dtls_state(a), t[i].want == DTLS_FAIL_NONE ? DTLS_UNCHECKED : DTLS_FAILED);
		assert_int_equal(dtls_keys(a, &rx, &tx), -EAGAIN);
		dtls_destroy(a);
		peer_fini();
	}
}

/* The peer's list of profiles in its ClientHello becomes number; the server refuses it there. */
static void test_null_profiles_are_not_taken(void **state)
{
	static const struct bad none = {0};
	static const uint8_t list[] = {0, 14, 0, 5, 0, 2, 0, 1, 0};

	(void)state;
	for (uint8_t number = 1; number <= 6; number++) {
		struct dtls *a = create(false);
		uint8_t buf[DTLS_PACKET_MAX];
		uint8_t *at;
		int n;

		peer_init(&none);
		SSL_do_handshake(peer.ssl);
		n = dtls_io_next(&peer.io, buf, sizeof(buf));
		assert_true(n > 0);
		at = memmem(buf, (size_t)n, list, sizeof(list));
		assert_non_null(at);
		at[7] = number;
		(void)dtls_take(a, buf, (size_t)n, NOW);
		if (number == 1)
			assert_int_equal(dtls_state(a), DTLS_HANDSHAKE);
		else
			assert_int_equal(dtls_failure(a), DTLS_FAIL_NO_PROFILE);
		dtls_destroy(a);
		peer_fini();
	}
}

static void test_renegotiation_and_data_change_nothing(void **state)
{
	(void)state;
	for (int serves = 0; serves < 2; serves++) {
		struct bad b = {.serves = serves};
		struct dtls *a = create(serves);
		struct dtls_fingerprints f = {0};
		struct srtp_master rx[2], tx[2];

		peer_init(&b);
		talk(a);
		f.count = 1;
		f.f[0].hash = DTLS_SHA256;
		assert_true(
			dtls_tls_digest(f.f[0].value, SSL_get_certificate(peer.ssl), DTLS_SHA256));
		assert_int_equal(dtls_expect(a, &f, NOW), 0);
		assert_int_equal(dtls_keys(a, &rx[0], &tx[0]), 0);
		assert_int_equal(SSL_write(peer.ssl, "data", 4), 4);
		assert_int_equal(talk(a), 0);
		assert_int_equal(dtls_state(a), DTLS_OPEN);
		assert_int_equal(SSL_renegotiate(peer.ssl), 1);
		assert_true(talk(a) <= 1); /* at most an alert: no second handshake */
		assert_false(SSL_is_init_finished(peer.ssl));
		/* OpenSSL gives up by an alert when its renegotiation is refused. */
		assert_true(dtls_state(a) == DTLS_OPEN || dtls_state(a) == DTLS_CLOSED);
		assert_int_equal(dtls_keys(a, &rx[1], &tx[1]), 0);
		assert_memory_equal(&rx[0], &rx[1], sizeof(rx[0]));
		assert_memory_equal(&tx[0], &tx[1], sizeof(tx[0]));
		dtls_destroy(a);
		peer_fini();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_peers_get_no_keys_and_one_reason),
		cmocka_unit_test(test_null_profiles_are_not_taken),
		cmocka_unit_test(test_renegotiation_and_data_change_nothing),
	};
	int failed;

	if (dtls_cert_create(&cert, 1700000000, 86400))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	dtls_cert_put(cert);
	return failed;
}
