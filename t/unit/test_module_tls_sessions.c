/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher_tls.so without Kamailio: which connections resume a session. Contexts with the same
 * configuration stand for the processes of one Kamailio. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/x509v3.h>

#include "../../module/tls/names.c"

#include "../../module/tls/sessions.c"

enum { DAY = 86400, MAX_STEPS = 20 };

static EVP_PKEY *key;

/* Self-signed, so it is also the authority of both sides. */
static X509 *certificate(long serial, long seconds)
{
	X509 *x = X509_new();

	assert_non_null(x);
	ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
	X509_set_version(x, 2);
	X509_gmtime_adj(X509_getm_notBefore(x), -DAY);
	X509_gmtime_adj(X509_getm_notAfter(x), seconds);
	X509_NAME_add_entry_by_txt(
		X509_get_subject_name(x), "CN", MBSTRING_ASC, (const void *)"one", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	X509_set_pubkey(x, key);
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	return x;
}

static SSL_CTX *context(X509 *x, int verify)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());

	assert_non_null(ctx);
	assert_int_equal(SSL_CTX_use_certificate(ctx, x), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
	X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), x);
	SSL_CTX_set_verify(ctx, verify, NULL);
	SSL_CTX_set_session_id_context(ctx, (const void *)"stock", 5);
	return ctx;
}

/* The certificates of the test, and a client's and a server's context with each. */
static X509 *cert, *other_cert;

static int begin_test(void **state)
{
	(void)state;
	key = EVP_EC_gen("P-256");
	cert = certificate(1, DAY);
	other_cert = certificate(2, DAY);
	return !key || !sessions_init();
}

static int end_test(void **state)
{
	(void)state;
	X509_free(cert);
	X509_free(other_cert);
	EVP_PKEY_free(key);
	munmap(shared, sizeof(*shared));
	return 0;
}

struct way {
	const char *address; /* NULL: the client has no sessions */
	const char *name;
	const char *expect; /* name of the server that sessions_begin() gets */
	int version;
	const char *ours;      /* two octets; NULL: "us" */
	SSL_SESSION **session; /* that the client keeps itself; NULL: none */
};

/* Whether a connection of these contexts resumes a session; -1: its handshake failed. */
static int resumes(SSL_CTX *client, SSL_CTX *server, struct way w)
{
	BIO *a, *b;
	char octet;
	int n = -1;

	if (w.address)
		sessions_begin(w.address, strlen(w.address), true, w.expect);
	SSL *c = SSL_new(client);

	sessions_begin(w.ours ? w.ours : "us", 2, false, NULL);
	SSL *s = SSL_new(server);

	sessions_end();
	assert_int_equal(BIO_new_bio_pair(&a, 65536, &b, 65536), 1);
	SSL_set_bio(c, a, a);
	SSL_set_bio(s, b, b);
	SSL_set_connect_state(c);
	SSL_set_accept_state(s);
	if (w.name)
		SSL_set_tlsext_host_name(c, w.name);
	if (w.version)
		SSL_set_max_proto_version(c, w.version);
	if (w.session && *w.session)
		SSL_set_session(c, *w.session);
	for (int i = 0; i < MAX_STEPS && !(SSL_is_init_finished(c) && SSL_is_init_finished(s));
		i++) {
		SSL_do_handshake(c);
		SSL_do_handshake(s);
	}
	SSL_read(c, &octet, 1); /* the tickets */
	if (SSL_is_init_finished(c) && SSL_is_init_finished(s)) {
		n = SSL_session_reused(c);
		assert_int_equal(n, SSL_session_reused(s));
		if (w.session) {
			SSL_SESSION_free(*w.session);
			*w.session = SSL_get1_session(c);
		}
		SSL_shutdown(c);
		SSL_shutdown(s);
	}
	SSL_free(c);
	SSL_free(s);
	return n;
}

static X509 *with_names(const char *names)
{
	X509 *x = certificate(3, DAY);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);

	assert_non_null(e);
	X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	return x;
}

/* With verify_name a client believes a server only if its certificate has the name that is
 * expected or, if none is, the address. */
static void a_server_has_the_name_or_address_of_its_certificate(void **state)
{
	X509 *x = with_names("IP:65.66.67.68,DNS:one.example");
	SSL_CTX *c = context(x, SSL_VERIFY_PEER), *s = context(x, SSL_VERIFY_PEER);
	struct way right = {.address = "ABCDpp"}, wrong = {.address = "ABCEpp"};

	(void)state;
	assert_int_equal(resumes(c, s, wrong), 0);
	sessions_verify_name(true);
	assert_int_equal(resumes(c, s, right), 0);
	assert_int_equal(resumes(c, s, right), 1);
	wrong.address = "ABCFpp";
	assert_int_equal(resumes(c, s, wrong), -1);
	/* Names have sessions of their own. */
	wrong.expect = "one.example";
	assert_int_equal(resumes(c, s, wrong), 0);
	assert_int_equal(resumes(c, s, wrong), 1);
	right.expect = "two.example";
	assert_int_equal(resumes(c, s, right), -1);
	sessions_verify_name(false);
	SSL_CTX_free(c);
	SSL_CTX_free(s);
	X509_free(x);
}

/* A connection that exists. Before the handshake counts what it will compare. */
static void a_connection_is_with_the_peer_of_its_certificate(void **state)
{
	X509 *x = with_names("URI:sip:one.example");
	SSL_CTX *c = context(x, SSL_VERIFY_PEER), *s = context(x, SSL_VERIFY_PEER);
	BIO *a, *b;

	(void)state;
	shared->ssl_at = 0;
	sessions_verify_name(true);
	sessions_begin("ABCDpp", 6, true, "one.example");
	SSL *client = SSL_new(c);
	void *its[SSL_WORDS] = {&its, client, NULL};

	assert_false(sessions_peer_is(its, "one.example"));
	sessions_end();
	sessions_learn(NULL);
	assert_int_equal(shared->ssl_at, 0);
	sessions_begin("ABCDpp", 6, true, "one.example");
	SSL_free(client);
	its[1] = client = SSL_new(c);
	sessions_end();
	sessions_learn(its);
	sessions_verify_name(false);
	SSL *server = SSL_new(s);
	void *ours[SSL_WORDS] = {&its, server, NULL};

	SSL_set_connect_state(client);
	SSL_set_accept_state(server);
	assert_true(sessions_peer_is(its, "One.Example"));
	assert_false(sessions_peer_is(its, "two.example"));
	assert_false(sessions_peer_is(ours, "one.example"));
	assert_int_equal(BIO_new_bio_pair(&a, 65536, &b, 65536), 1);
	SSL_set_bio(client, a, a);
	SSL_set_bio(server, b, b);
	for (int i = 0; i < MAX_STEPS; i++) {
		SSL_do_handshake(client);
		SSL_do_handshake(server);
	}
	assert_true(SSL_is_init_finished(client) && SSL_is_init_finished(server));
	for (int i = 0; i < 2; i++) {
		assert_true(sessions_peer_is(i ? ours : its, "one.example"));
		assert_false(sessions_peer_is(i ? ours : its, "two.example"));
	}
	SSL_free(client);
	SSL_free(server);
	SSL_CTX_free(c);
	SSL_CTX_free(s);
	X509_free(x);
}

static void a_session_is_for_its_server_and_name(void **state)
{
	SSL_CTX *c = context(cert, SSL_VERIFY_PEER), *s = context(cert, SSL_VERIFY_PEER);

	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct way one = {
			.address = version == TLS1_2_VERSION ? "a2" : "a3", .version = version};
		struct way other = one, named = one;

		other.address = "b";
		named.name = "psap.test";
		assert_int_equal(resumes(c, s, one), 0);
		assert_int_equal(resumes(c, s, one), 1);
		assert_int_equal(resumes(c, s, one), 1);
		assert_int_equal(resumes(c, s, named), 0);
		assert_int_equal(resumes(c, s, named), 1);
		other.address = version == TLS1_2_VERSION ? "b2" : "b3";
		assert_int_equal(resumes(c, s, other), 0);
		assert_int_equal(resumes(c, s, (struct way){.version = version}), 0);
		assert_int_equal(resumes(c, s, one), 1);
	}
	SSL_CTX_free(c);
	SSL_CTX_free(s);
}

static void processes_share_sessions_and_ticket_keys(void **state)
{
	SSL_CTX *c[2] = {context(cert, SSL_VERIFY_PEER), context(cert, SSL_VERIFY_PEER)};
	SSL_CTX *s[2] = {context(cert, SSL_VERIFY_PEER), context(cert, SSL_VERIFY_PEER)};
	struct way w = {.address = "x"};

	(void)state;
	assert_int_equal(resumes(c[0], s[0], w), 0);
	assert_int_equal(resumes(c[1], s[1], w), 1);
	assert_int_equal(resumes(c[0], s[0], w), 1);
	for (int i = 0; i < 2; i++) {
		SSL_CTX_free(c[i]);
		SSL_CTX_free(s[i]);
	}
}

/* Else a client could take the session of a service without certificates to one that needs them. */
static void a_session_is_for_its_configuration(void **state)
{
	const int strict = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX *c = context(cert, SSL_VERIFY_PEER), *lenient = context(cert, SSL_VERIFY_NONE);
	SSL_CTX *demanding = context(cert, strict),
		*replaced = context(other_cert, SSL_VERIFY_PEER);
	struct way w = {.address = "y"};

	(void)state;
	assert_int_equal(resumes(c, lenient, w), 0);
	assert_int_equal(resumes(c, demanding, w), 0);
	assert_int_equal(resumes(c, demanding, w), 1);
	/* The client's certificate and authorities changed: it no longer trusts the old server. */
	assert_int_equal(resumes(replaced, demanding, w), -1);
	SSL_CTX_free(c);
	SSL_CTX_free(lenient);
	SSL_CTX_free(demanding);
	SSL_CTX_free(replaced);
}

static int accept_any(int ok, X509_STORE_CTX *store)
{
	(void)ok;
	(void)store;
	return 1;
}

/* Kamailio's verify_client=optional_no_ca is only a callback. */
static void a_session_is_for_its_way_to_verify(void **state)
{
	const int strict = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX *stranger = context(other_cert, SSL_VERIFY_NONE);
	SSL_CTX *any = context(cert, strict), *checks = context(cert, strict);
	struct way w = {.address = "s"};

	(void)state;
	SSL_CTX_set_verify(any, strict, accept_any);
	for (w.version = TLS1_2_VERSION; w.version <= TLS1_3_VERSION; w.version++) {
		assert_int_equal(resumes(stranger, any, w), 0);
		assert_int_not_equal(resumes(stranger, checks, w), 1);
	}
	SSL_CTX_free(stranger);
	SSL_CTX_free(any);
	SSL_CTX_free(checks);
}

static void a_session_is_for_its_ciphers(void **state)
{
	SSL_CTX *c = context(cert, SSL_VERIFY_PEER), *weak = context(cert, SSL_VERIFY_PEER);
	SSL_CTX *strong = context(cert, SSL_VERIFY_PEER);
	struct way w = {.address = "w", .version = TLS1_2_VERSION};

	(void)state;
	SSL_CTX_set_cipher_list(weak, "ECDHE-ECDSA-AES128-GCM-SHA256");
	SSL_CTX_set_cipher_list(strong, "ECDHE-ECDSA-AES256-GCM-SHA384");
	assert_int_equal(resumes(c, weak, w), 0);
	assert_int_equal(resumes(c, strong, w), 0);
	assert_int_equal(resumes(c, strong, w), 1);
	SSL_CTX_free(c);
	SSL_CTX_free(weak);
	SSL_CTX_free(strong);
}

static int select_domain(SSL *ssl, int *alert, void *arg)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	SSL_CTX *demanding = arg;

	(void)alert;
	if (name && !strcmp(name, "esrp.test")) {
		SSL_set_SSL_CTX(ssl, demanding);
		SSL_set_verify(ssl, SSL_CTX_get_verify_mode(demanding), NULL);
	}
	return SSL_TLSEXT_ERR_OK;
}

/* The client says that it goes to the same server, as one that attacks does. */
static void a_session_is_for_the_address_and_name_of_the_server(void **state)
{
	const int strict = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX *c = SSL_CTX_new(TLS_method()), *lenient = context(cert, SSL_VERIFY_NONE);
	SSL_CTX *demanding = context(cert, strict);
	SSL_SESSION *none = NULL;
	struct way w = {.ours = "us"};

	(void)state;
	SSL_CTX_set_tlsext_servername_callback(lenient, select_domain);
	SSL_CTX_set_tlsext_servername_arg(lenient, demanding);
	for (w.version = TLS1_2_VERSION; w.version <= TLS1_3_VERSION; w.version++) {
		w.name = NULL;
		w.ours = "us";
		w.session = &none;
		assert_int_equal(resumes(c, lenient, w), 0);
		assert_int_equal(resumes(c, lenient, w), 1);
		w.ours = "up";
		assert_int_equal(resumes(c, lenient, w), 0);
		w.name = "esrp.test";
		assert_int_not_equal(resumes(c, lenient, w), 1);
		SSL_SESSION_free(none);
		none = NULL;
	}
	SSL_CTX_free(c);
	SSL_CTX_free(lenient);
	SSL_CTX_free(demanding);
}

static void a_session_ends_with_the_certificate_of_its_server(void **state)
{
	X509 *ending = certificate(3, 3600), *over;
	SSL_CTX *c = context(ending, SSL_VERIFY_NONE), *s = context(ending, SSL_VERIFY_NONE);
	SSL_SESSION *session = SSL_SESSION_new();

	(void)state;
	SSL_SESSION_free(session);
	assert_int_equal(resumes(c, s, (struct way){.address = "z"}), 0);
	for (struct slot *slot = shared->slot; slot < shared->slot + SLOTS; slot++)
		assert_true(slot->expires <= time(NULL) + 7200);
	over = certificate(4, -3600);
	SSL_CTX *late = context(over, SSL_VERIFY_NONE);

	assert_int_equal(resumes(c, late, (struct way){.address = "late"}), 0);
	assert_int_equal(resumes(c, late, (struct way){.address = "late"}), 0);
	SSL_CTX_free(c);
	SSL_CTX_free(s);
	SSL_CTX_free(late);
	X509_free(ending);
	X509_free(over);
}

static void the_table_is_bounded(void **state)
{
	SSL_CTX *c = context(cert, SSL_VERIFY_PEER), *s = context(cert, SSL_VERIFY_PEER);
	char address[16];
	int used = 0;

	(void)state;
	for (int i = 0; i < SLOTS + 10; i++) {
		snprintf(address, sizeof(address), "n%d", i);
		assert_int_equal(resumes(c, s, (struct way){.address = address}), 0);
	}
	for (int i = 0; i < SLOTS; i++)
		used += shared->slot[i].expires != 0;
	assert_int_equal(used, SLOTS);
	assert_int_equal(resumes(c, s, (struct way){.address = address}), 1);
	/* No process waits for the lock of another one. */
	pthread_mutex_lock(&shared->lock);
	assert_int_equal(resumes(c, s, (struct way){.address = address}), 0);
	pthread_mutex_unlock(&shared->lock);
	SSL_CTX_free(c);
	SSL_CTX_free(s);
}

/* The next connection makes a full handshake. */
static void new_ticket_keys_end_old_sessions(void **state)
{
	SSL_CTX *c = context(cert, SSL_VERIFY_PEER), *s = context(cert, SSL_VERIFY_PEER);
	struct way w = {.address = "k"};

	(void)state;
	assert_int_equal(resumes(c, s, w), 0);
	assert_int_equal(resumes(c, s, w), 1);
	shared->keys_since -= KEYS_LIFE_S;
	assert_int_equal(resumes(c, s, w), 0);
	assert_int_equal(resumes(c, s, w), 1);
	/* The clock is set back. */
	shared->keys_since += DAY;
	assert_int_equal(resumes(c, s, w), 0);
	assert_int_equal(resumes(c, s, w), 1);
	SSL_CTX_free(c);
	SSL_CTX_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_has_the_name_or_address_of_its_certificate),
		cmocka_unit_test(a_connection_is_with_the_peer_of_its_certificate),
		cmocka_unit_test(a_session_is_for_its_server_and_name),
		cmocka_unit_test(processes_share_sessions_and_ticket_keys),
		cmocka_unit_test(a_session_is_for_its_configuration),
		cmocka_unit_test(a_session_is_for_its_way_to_verify),
		cmocka_unit_test(a_session_is_for_its_ciphers),
		cmocka_unit_test(a_session_is_for_the_address_and_name_of_the_server),
		cmocka_unit_test(a_session_ends_with_the_certificate_of_its_server),
		cmocka_unit_test(the_table_is_bounded),
		cmocka_unit_test(new_ticket_keys_end_old_sessions),
	};

	return cmocka_run_group_tests(tests, begin_test, end_test);
}
