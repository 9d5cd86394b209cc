/* SPDX-License-Identifier: GPL-2.0-or-later */
/* OpenSSL's settings and callbacks for DTLS-SRTP (RFC 5764). The peer's certificate is judged by
 * its fingerprint alone (RFC 5763 5); no chain, name or date is looked at. */
#include <openssl/err.h>
#include <openssl/srtp.h>
#include <openssl/x509.h>

#include "base/secmem.h"
#include "keying/dtls_int.h"

#define CIPHERS    "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:!aNULL:!eNULL:!PSK"
#define GROUPS     "X25519:P-256:P-384:P-521"
#define LABEL      "EXTRACTOR-dtls_srtp"
#define NAMES_MAX  160u /* the profiles' names for OpenSSL, with separators */
#define MATERIAL   (2 * (SUITE_MAX_KEY_LEN + SUITE_MAX_SALT_LEN))
#define NS_PER_US  1000u
#define COOKIE_LEN 8u
#define SHIFT_MAX  (1ull << 40) /* record numbers have 48 bits */

static const struct profile {
	enum srtp_suite_id suite;
	uint16_t number;
	const char *name, *rfc_name;
} profiles[] = {
#define X(id, number, name, rfc_name) {SUITE_##id, number, name, rfc_name},
	DTLS_PROFILES(X)
#undef X
};

static const struct profile *profile_of(enum srtp_suite_id suite)
{
	for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
		if (profiles[i].suite == suite)
			return &profiles[i];
	return NULL;
}

bool dtls_profile_known(enum srtp_suite_id suite)
{
	return profile_of(suite) != NULL;
}

enum srtp_suite_id dtls_profile_find(struct str name)
{
	static const struct str prefix = {"SRTP_", 5};
	const struct srtp_suite *s = srtp_suite_find(name);

	if (name.len > prefix.len && str_eq_nocase((struct str){name.s, prefix.len}, prefix))
		name = (struct str){name.s + prefix.len, name.len - prefix.len};
	for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
		if ((s && s->id == profiles[i].suite) ||
			str_eq_nocase(name, str_from(profiles[i].name + prefix.len)) ||
			str_eq_nocase(name, str_from(profiles[i].rfc_name + prefix.len)))
			return profiles[i].suite;
	return SUITE_PLAIN;
}

/* --- Certificates ----------------------------------------------------------------------------- */

static const EVP_MD *digest_of(enum dtls_hash h)
{
	switch (h) {
	case DTLS_SHA1:
		return EVP_sha1();
	case DTLS_SHA224:
		return EVP_sha224();
	case DTLS_SHA256:
		return EVP_sha256();
	case DTLS_SHA384:
		return EVP_sha384();
	case DTLS_SHA512:
		return EVP_sha512();
	default:
		return NULL;
	}
}

bool dtls_tls_digest(uint8_t out[DTLS_DIGEST_MAX], const X509 *x, enum dtls_hash h)
{
	const EVP_MD *md = digest_of(h);

	return md && X509_digest(x, md, out, NULL) == 1;
}

bool dtls_tls_match(const struct dtls_tls *t)
{
	for (uint32_t i = 0; t->peer.known && i < t->expected.count; i++) {
		const struct dtls_fingerprint *f = &t->expected.f[i];

		if (f->hash >= DTLS_HASH_COUNT || (f->hash == DTLS_SHA1 && !t->allow_sha1))
			continue;
		if (secmem_equal(f->value, t->peer.digest[f->hash], dtls_hash_len(f->hash)))
			return true;
	}
	return false;
}

/* Replaces OpenSSL's verification. Without expected fingerprints any certificate may continue: the
 * keys are not given out before dtls_expect(). */
static int verify(X509_STORE_CTX *store, void *unused)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct dtls_tls *t = SSL_get_app_data(ssl);
	const X509 *x = X509_STORE_CTX_get0_cert(store);

	(void)unused;
	t->peer.known = x != NULL;
	for (int h = 0; t->peer.known && h < DTLS_HASH_COUNT; h++)
		t->peer.known = dtls_tls_digest(t->peer.digest[h], x, (enum dtls_hash)h);
	if (t->peer.known && (!t->expecting || dtls_tls_match(t))) {
		X509_STORE_CTX_set_error(store, X509_V_OK);
		return 1;
	}
	t->failure = DTLS_FAIL_FINGERPRINT;
	X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
	return 0;
}

/* --- Other callbacks -------------------------------------------------------------------------- */

/* Refuses a client without a common SRTP profile. OpenSSL would go on without SRTP. */
static int client_hello(SSL *ssl, int *alert, void *unused)
{
	struct dtls_tls *t = SSL_get_app_data(ssl);
	const uint8_t *p;
	size_t len, n;

	(void)unused;
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_use_srtp, &p, &len) == 1 && len >= 2) {
		n = be16(p);
		for (size_t at = 2; at + 2 <= len && at + 2 <= 2 + n; at += 2)
			for (uint32_t i = 0; i < t->profiles; i++)
				if (profile_of(t->profile[i])->number == be16(p + at))
					return SSL_CLIENT_HELLO_SUCCESS;
	}
	t->failure = DTLS_FAIL_NO_PROFILE;
	*alert = SSL_AD_HANDSHAKE_FAILURE;
	return SSL_CLIENT_HELLO_ERROR;
}

static void info(const SSL *ssl, int where, int value)
{
	struct dtls_tls *t = SSL_get_app_data(ssl);

	if (t && (where & SSL_CB_READ) && (where & SSL_CB_ALERT) && value >> 8 == SSL3_AL_FATAL)
		t->alerted = true;
}

/* Doubles from first_ns to DTLS_LAST_NS. us = 0: the first of a flight. */
static unsigned timer(SSL *ssl, unsigned us)
{
	struct dtls_tls *t = SSL_get_app_data(ssl);

	if (us == 0) {
		t->timer_ns = t->first_ns;
	} else {
		t->repeated = true;
		t->timer_ns = 2 * (uint64_t)us * NS_PER_US;
	}
	if (t->timer_ns > DTLS_LAST_NS)
		t->timer_ns = DTLS_LAST_NS;
	return (unsigned)(t->timer_ns / NS_PER_US);
}

/* dtls_gate.c makes and checks cookies. OpenSSL only has to believe that a cookie was sent: see
 * dtls_tls_skip_cookie(). */
static int cookie_make(SSL *ssl, unsigned char *cookie, unsigned *len)
{
	(void)ssl;
	memset(cookie, 0, COOKIE_LEN);
	*len = COOKIE_LEN;
	return 1;
}

static int cookie_check(SSL *ssl, const unsigned char *cookie, unsigned len)
{
	(void)ssl;
	(void)cookie;
	(void)len;
	return 1;
}

/* A ClientHello without a cookie takes OpenSSL to the state after its HelloVerifyRequest. Neither
 * counts for the handshake's hash (RFC 6347 4.2.1). The HelloVerifyRequest is thrown away: the gate
 * has sent one. */
void dtls_tls_skip_cookie(SSL *ssl, struct dtls_io *io, uint64_t record_seq)
{
	static const uint8_t hello[] = {22, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12 + 42,
		/* message: ClientHello, 42 bytes, number 0, all in one fragment */
		1, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0, 42,
		/* version, random, no session, no cookie, one cipher suite, no compression */
		0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0xc0, 0x2b, 1, 0};

	SSL_set_options(ssl, SSL_OP_COOKIE_EXCHANGE);
	io->discard = true;
	io->in = hello;
	io->in_len = sizeof(hello);
	ERR_clear_error();
	SSL_do_handshake(ssl);
	ERR_clear_error();
	io->discard = false;
	if (record_seq > 1 && record_seq < SHIFT_MAX)
		io->shift = record_seq - 1;
}

bool dtls_tls_prepare(SSL_CTX *ctx)
{
	SSL_CTX_set_options(ctx,
		SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_QUERY_MTU |
			SSL_OP_LEGACY_SERVER_CONNECT | SSL_OP_NO_COMPRESSION |
			SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_cert_list(ctx, DTLS_MESSAGE_MAX);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_cert_verify_callback(ctx, verify, NULL);
	SSL_CTX_set_client_hello_cb(ctx, client_hello, NULL);
	SSL_CTX_set_info_callback(ctx, info);
	SSL_CTX_set_cookie_generate_cb(ctx, cookie_make);
	SSL_CTX_set_cookie_verify_cb(ctx, cookie_check);
	/* dtls_filter() knows the records of DTLS 1.2 only. A library that has 1.3 must not agree
	 * on it. */
	return SSL_CTX_set_min_proto_version(ctx, DTLS1_2_VERSION) == 1 &&
		SSL_CTX_set_max_proto_version(ctx, DTLS1_2_VERSION) == 1 &&
		SSL_CTX_set_cipher_list(ctx, CIPHERS) == 1 &&
		SSL_CTX_set1_groups_list(ctx, GROUPS) == 1;
}

bool dtls_tls_attach(SSL *ssl, struct dtls_tls *t)
{
	char names[NAMES_MAX] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < t->profiles; i++) {
		struct str name = str_from(profile_of(t->profile[i])->name);

		if (at + name.len + 2 > sizeof(names))
			return false;
		if (i)
			names[at++] = ':';
		memcpy(names + at, name.s, name.len + 1);
		at += name.len;
	}
	SSL_set_app_data(ssl, t);
	DTLS_set_timer_cb(ssl, timer);
	return SSL_set_tlsext_use_srtp(ssl, names) == 0; /* 0 is success here */
}

enum dtls_failure dtls_tls_reason(const struct dtls_tls *t)
{
	unsigned long e = ERR_peek_last_error();
	int reason = ERR_GET_REASON(e);

	ERR_clear_error();
	if (t->failure != DTLS_FAIL_NONE)
		return t->failure;
	if (t->alerted)
		return DTLS_FAIL_REFUSED;
	switch (reason) {
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		return DTLS_FAIL_NO_CERTIFICATE;
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
	case SSL_R_WRONG_SSL_VERSION:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_SHARED_GROUPS:
		return DTLS_FAIL_NO_CIPHER;
	case SSL_R_READ_TIMEOUT_EXPIRED:
		return DTLS_FAIL_TIMEOUT;
	case ERR_R_MALLOC_FAILURE:
	case ERR_R_INTERNAL_ERROR:
		return DTLS_FAIL_INTERNAL;
	default:
		return DTLS_FAIL_PROTOCOL;
	}
}

const char *dtls_failure_name(enum dtls_failure f)
{
	static const char *const names[] = {"none",
#define X(id, name, text) name,
		DTLS_FAILURES(X)
#undef X
	};

	return (size_t)f < ARRAY_LEN(names) ? names[f] : "";
}

const char *dtls_failure_text(enum dtls_failure f)
{
	static const char *const texts[] = {"no failure",
#define X(id, name, text) text,
		DTLS_FAILURES(X)
#undef X
	};

	return (size_t)f < ARRAY_LEN(texts) ? texts[f] : "";
}

/* --- Keys ------------------------------------------------------------------------------------- */

/* client key, server key, client salt, server salt (RFC 5764 4.2) */
static void split(struct srtp_master *m, const struct srtp_suite *s, const uint8_t *p, bool server)
{
	memset(m, 0, sizeof(*m));
	m->suite = s->id;
	memcpy(m->key, p + (server ? s->key_len : 0), s->key_len);
	memcpy(m->salt, p + 2 * s->key_len + (server ? s->salt_len : 0), s->salt_len);
}

enum dtls_failure dtls_tls_export(
	SSL *ssl, enum dtls_role role, struct srtp_master *rx, struct srtp_master *tx)
{
	const SRTP_PROTECTION_PROFILE *chosen = SSL_get_selected_srtp_profile(ssl);
	const struct srtp_suite *s = NULL;
	uint8_t material[MATERIAL];
	bool server = role == DTLS_ROLE_SERVER;

	for (size_t i = 0; chosen && i < ARRAY_LEN(profiles); i++)
		if (profiles[i].number == chosen->id)
			s = srtp_suite_get(profiles[i].suite);
	if (!s)
		return DTLS_FAIL_NO_PROFILE;
	if (SSL_export_keying_material(ssl, material, 2u * (s->key_len + s->salt_len), LABEL,
		    sizeof(LABEL) - 1, NULL, 0, 0) != 1)
		return DTLS_FAIL_INTERNAL;
	split(tx, s, material, server);
	split(rx, s, material, !server);
	secmem_wipe(material, sizeof(material));
	return DTLS_FAIL_NONE;
}
