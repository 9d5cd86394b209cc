/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Certificates of MIKEY: loaded, refused, trusted, and whose they are. */
#include <dlfcn.h>
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "keying/mikey_int.h"
#include "mikey_rig.h"
#include "keying/mikey_trust.h"

#define DAY 86400

/* --- Private-key operations, counted in OpenSSL's place --- */

static unsigned decrypted;

int EVP_PKEY_decrypt(
	EVP_PKEY_CTX *ctx, uint8_t *out, size_t *outlen, const uint8_t *in, size_t inlen)
{
	int (*real)(EVP_PKEY_CTX *, uint8_t *, size_t *, const uint8_t *, size_t);

	*(void **)&real = dlsym(RTLD_NEXT, "EVP_PKEY_decrypt");
	decrypted++;
	return real(ctx, out, outlen, in, inlen);
}

static struct mikey_rig rig; /* large: not on the stack */

static int setup(void **state)
{
	(void)state;
	mikey_rig_init(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mikey_rig_fini(&rig);
	return 0;
}

static const struct rig_subject alice = {.uri = RIG_ALICE, .serial = RIG_SERIAL};

static int load_text(const char *a, const char *b, bool key)
{
	struct mikey_cert *c;
	char *both = calloc(1, strlen(a) + strlen(b) + 1);
	int err;

	assert_non_null(both);
	strcat(strcat(both, a), b);
	err = mikey_cert_load(&c, str_from(both), key);
	mikey_cert_free(c);
	free(both);
	return err;
}

static void test_load(void **state)
{
	struct rig_subject small = {.uri = RIG_ALICE, .bits = 1024};
	char *cert[3], *key[3];

	(void)state;
	rig_cert_pem(&rig.ca, &alice, &cert[0], &key[0]);
	rig_cert_pem(&rig.ca, &alice, &cert[1], &key[1]);
	rig_cert_pem(&rig.ca, &small, &cert[2], &key[2]);
	assert_int_equal(load_text(cert[0], key[0], true), 0);
	assert_int_equal(load_text(key[0], cert[0], true), 0);
	assert_int_equal(load_text(cert[0], "", false), 0);
	assert_int_equal(load_text(cert[0], "", true), -EBADMSG);
	assert_int_equal(load_text("", key[0], true), -EBADMSG);
	assert_int_equal(load_text("", "", false), -EBADMSG);
	assert_int_equal(load_text(cert[0], key[1], true), -EKEYREJECTED);
	assert_int_equal(load_text(cert[2], key[2], true), -EKEYREJECTED);
	for (int i = 0; i < 3; i++) {
		free(cert[i]);
		free(key[i]);
	}
}

static void test_elliptic_curves_are_refused(void **state)
{
	EVP_PKEY *ec = EVP_EC_gen("P-256");
	BIO *b = BIO_new(BIO_s_mem());
	X509 *x = X509_new();
	struct mikey_cert *c;
	char *p;
	long len;

	(void)state;
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), DAY);
	assert_int_equal(X509_set_pubkey(x, ec), 1);
	assert_true(X509_sign(x, ec, EVP_sha256()) > 0);
	PEM_write_bio_X509(b, x);
	len = BIO_get_mem_data(b, &p);
	assert_int_equal(mikey_cert_load(&c, (struct str){p, (size_t)len}, false), -EKEYREJECTED);
	BIO_free(b);
	X509_free(x);
	EVP_PKEY_free(ec);
}

static void test_long_chain(void **state)
{
	char *cert, *key, *many;

	(void)state;
	rig_cert_pem(&rig.ca, &alice, &cert, &key);
	many = calloc(MIKEY_CHAIN_MAX, strlen(cert) + 1);
	assert_non_null(many);
	for (uint32_t i = 0; i < MIKEY_CHAIN_MAX; i++)
		strcat(many, cert);
	assert_int_equal(load_text(many, "", false), 0);
	assert_int_equal(load_text(many, cert, false), -E2BIG);
	free(many);
	free(cert);
	free(key);
}

/* A trust with one revocation list. */
static struct mikey_trust *with_list(long serial, int64_t from_s, int64_t to_s)
{
	char *root = rig_ca_pem(&rig.ca), *crl = rig_crl(&rig.ca, serial, from_s, to_s);
	struct mikey_trust *t;

	assert_int_equal(mikey_trust_load(&t, str_from(root), str_from(crl)), 0);
	free(root);
	free(crl);
	return t;
}

static enum mikey_failure judged(struct mikey_trust *t)
{
	enum mikey_failure f = mikey_trust_check(t, rig.alice.id.cert, (int64_t)RIG_NOW_S);

	mikey_trust_free(t);
	return f;
}

static void test_revocation(void **state)
{
	const int64_t now = (int64_t)RIG_NOW_S;
	struct mikey_trust *t;

	(void)state;
	assert_int_equal(judged(with_list(0, now - DAY, now + DAY)), MIKEY_OK);
	assert_int_equal(judged(with_list(RIG_SERIAL + 7, now - DAY, now + DAY)), MIKEY_OK);
	assert_int_equal(
		judged(with_list(RIG_SERIAL, now - DAY, now + DAY)), MIKEY_FAIL_CERT_REVOKED);
	assert_int_equal(judged(with_list(0, now - 2 * DAY, now - DAY)), MIKEY_FAIL_CERT_REVOKED);
	assert_int_equal(judged(with_list(0, now + DAY, now + 2 * DAY)), MIKEY_FAIL_CERT_REVOKED);
	assert_int_equal(mikey_trust_load(&t, STR("x"), STR_NONE), -EBADMSG);
}

static void test_a_list_of_another_authority(void **state)
{
	const int64_t now = (int64_t)RIG_NOW_S;
	struct rig_ca other;
	struct mikey_trust *t;
	char *root = rig_ca_pem(&rig.ca), *crl;

	(void)state;
	rig_ca_make(&other, "other");
	crl = rig_crl(&other, 0, now - DAY, now + DAY);
	assert_int_equal(mikey_trust_load(&t, str_from(root), str_from(crl)), 0);
	assert_int_equal(judged(t), MIKEY_FAIL_CERT_REVOKED);
	free(root);
	free(crl);
	rig_ca_free(&other);
}

/* alice shows this certificate: bob refuses it in all modes with certificates, and alice refuses
 * bob if the roles are swapped. */
static void shown(const struct rig_ca *ca, const struct rig_subject *s, enum mikey_failure why)
{
	static const enum mikey_mode modes[] = {MIKEY_PKE, MIKEY_DH, MIKEY_RSAR};
	struct mikey_cert *good = rig.alice.id.cert, *bad = rig_cert(ca, s);

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		rig.now_ntp++;
		rig.alice.id.cert = bad;
		assert_int_equal(mikey_rig_initiate(&rig, modes[i]), MIKEY_OK);
		assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), why);
		assert_int_equal(rig.rk.media, 0);
		rig.alice.id.cert = good;
		if (modes[i] == MIKEY_PKE)
			continue;
		good = rig.bob.id.cert;
		rig.bob.id.cert = bad;
		assert_int_equal(mikey_rig_initiate(&rig, modes[i]), MIKEY_OK);
		assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_OK);
		assert_int_equal(mikey_rig_finish(&rig, mikey_rig_sent(&rig.rout)), why);
		assert_int_equal(rig.ik.media, 0);
		rig.bob.id.cert = good;
		good = rig.alice.id.cert;
	}
	mikey_cert_free(bad);
}

static void test_certificates_that_are_refused(void **state)
{
	const int64_t now = (int64_t)RIG_NOW_S;
	const struct rig_subject expired = {.uri = RIG_ALICE, .to_s = now - 1};
	const struct rig_subject early = {.uri = RIG_ALICE, .from_s = now + 60};
	const struct rig_subject mallory = {.uri = "sip:mallory@example.org"};
	const struct rig_subject nobody = {.cn = RIG_ALICE, .dns = "example.org"};
	struct rig_ca other;

	(void)state;
	shown(&rig.ca, &expired, MIKEY_FAIL_CERT_EXPIRED);
	shown(&rig.ca, &early, MIKEY_FAIL_CERT_EXPIRED);
	shown(&rig.ca, &mallory, MIKEY_FAIL_CERT_NAME);
	shown(&rig.ca, &nobody, MIKEY_FAIL_CERT_NAME);
	rig_ca_make(&other, "root"); /* the same name, another key */
	shown(&other, &alice, MIKEY_FAIL_CERT_CHAIN);
	rig_ca_free(&other);
}

/* A certificate that the peer's section names: encrypted for, and used for a message without one.
 */
static void named(const struct rig_ca *ca, const struct rig_subject *s, struct mikey_trust *t,
	enum mikey_failure why)
{
	struct mikey_cert *c = rig_cert(ca, s);
	const struct mikey_peer old = rig.bob.peer;
	struct mikey_id any = {0};
	struct mikey_in in = {0};

	rig.bob.peer.cert = c;
	rig.bob.peer.trust = t;
	assert_int_equal(mikey_rig_initiate(&rig, MIKEY_PKE), why);
	assert_int_equal(mikey_in_cert(&in, &rig.bob.peer, &any, rig.now_ntp), why);
	rig.bob.peer = old;
	mikey_cert_free(c);
}

static void test_certificates_of_the_file(void **state)
{
	const int64_t now = (int64_t)RIG_NOW_S;
	const struct rig_subject expired = {.uri = RIG_BOB, .to_s = now - 1};
	const struct rig_subject early = {.uri = RIG_BOB, .from_s = now + 60};
	const struct rig_subject good = {.uri = RIG_BOB, .serial = 501},
				 bad = {.uri = RIG_BOB, .serial = 500};
	char *roots = rig_ca_pem(&rig.ca), *crl = rig_crl(&rig.ca, 500, now - DAY, now + DAY);
	struct mikey_trust *lists;
	struct rig_ca other;

	(void)state;
	assert_int_equal(mikey_trust_load(&lists, str_from(roots), str_from(crl)), 0);
	rig_ca_make(&other, "another");
	for (int roots_too = 0; roots_too < 2; roots_too++) {
		struct mikey_trust *t = roots_too ? rig.ca.trust : NULL;

		named(&rig.ca, &good, t, MIKEY_OK);
		named(&rig.ca, &bad, t, MIKEY_OK);
		named(&rig.ca, &expired, t, MIKEY_FAIL_CERT_EXPIRED);
		named(&rig.ca, &early, t, MIKEY_FAIL_CERT_EXPIRED);
		named(&other, &good, t, MIKEY_OK);
		named(&other, &expired, t, MIKEY_FAIL_CERT_EXPIRED);
	}
	named(&rig.ca, &good, lists, MIKEY_OK);
	named(&rig.ca, &bad, lists, MIKEY_FAIL_CERT_REVOKED);
	named(&other, &bad, lists, MIKEY_OK); /* the list is not its issuer's */
	rig_ca_free(&other);
	mikey_trust_free(lists);
	free(roots);
	free(crl);
}

/* The list revokes it, but cannot be checked. */
static void test_a_list_that_cannot_be_checked(void **state)
{
	const int64_t now = (int64_t)RIG_NOW_S;
	const struct rig_subject bad = {.uri = RIG_BOB, .serial = 500},
				 good = {.uri = RIG_BOB, .serial = 501};
	struct mikey_trust *lists;
	struct rig_ca ca;
	char *roots, *crl;

	(void)state;
	rig_ca_make_with(&ca, "no lists", "critical,keyCertSign", NULL);
	roots = rig_ca_pem(&ca);
	crl = rig_crl(&ca, 500, now - DAY, now + DAY);
	assert_int_equal(mikey_trust_load(&lists, str_from(roots), str_from(crl)), 0);
	named(&ca, &bad, lists, MIKEY_FAIL_CERT_REVOKED);
	named(&ca, &good, lists, MIKEY_FAIL_CERT_REVOKED); /* it has no valid list */
	mikey_trust_free(lists);
	free(roots);
	free(crl);
	rig_ca_free(&ca);
}

/* Its chain has a root no more, or is not accepted for another reason. */
static void test_a_list_without_a_chain(void **state)
{
	const int64_t now = (int64_t)RIG_NOW_S;
	const struct rig_subject bad = {.uri = RIG_BOB, .serial = 500},
				 good = {.uri = RIG_BOB, .serial = 501};
	struct mikey_trust *lists;
	struct rig_ca other;
	char *roots, *crl;

	(void)state;
	rig_ca_make(&other, "other");
	roots = rig_ca_pem(&rig.ca);
	crl = rig_crl(&other, 500, now - DAY, now + DAY);
	assert_int_equal(mikey_trust_load(&lists, str_from(roots), str_from(crl)), 0);
	named(&other, &bad, lists, MIKEY_FAIL_CERT_REVOKED);
	named(&other, &good, lists, MIKEY_OK);
	mikey_trust_free(lists);
	free(roots);
	free(crl);
	rig_ca_free(&other);
}

/* Joins two texts, without the last cut bytes of the second one. */
static char *joined(const char *a, const char *b, size_t cut)
{
	size_t n = strlen(a) + strlen(b) - cut;
	char *out = calloc(1, n + 1);

	assert_non_null(out);
	snprintf(out, n + 1, "%s%s", a, b);
	return out;
}

/* A file that was not written wholly, as by a download that broke off: nothing of it is used. */
static void test_damaged_files(void **state)
{
	const int64_t now = (int64_t)RIG_NOW_S;
	char *root = rig_ca_pem(&rig.ca), *other, *crl[2], *cert, *key;
	struct mikey_trust *t;
	struct rig_ca ca;

	(void)state;
	rig_ca_make(&ca, "other");
	other = rig_ca_pem(&ca);
	crl[0] = rig_crl(&rig.ca, 0, now - DAY, now + DAY);
	crl[1] = rig_crl(&ca, 0, now - DAY, now + DAY);
	rig_cert_pem(&rig.ca, &alice, &cert, &key);
	assert_int_equal(mikey_trust_load(&t, str_from(root), STR("")), -EBADMSG);
	assert_int_equal(mikey_trust_load(&t, STR(""), STR_NONE), -EBADMSG);
	for (size_t cut = 0; cut < 400; cut += cut ? 100 : 2) {
		char *roots = joined(root, other, cut), *lists = joined(crl[0], crl[1], cut);
		char *chain = joined(cert, root, cut);
		int want = cut ? -EBADMSG : 0,
		    err = mikey_trust_load(&t, str_from(roots), STR_NONE);

		assert_int_equal(err, want);
		if (!err)
			mikey_trust_free(t);
		err = mikey_trust_load(&t, str_from(root), str_from(lists));
		assert_int_equal(err, want);
		if (!err)
			mikey_trust_free(t);
		assert_int_equal(load_text(chain, "", false), want);
		free(roots);
		free(lists);
		free(chain);
	}
	free(root);
	free(other);
	free(crl[0]);
	free(crl[1]);
	free(cert);
	free(key);
	rig_ca_free(&ca);
}

/* An authority that may certify e-mail addresses of one domain only. */
static void test_a_limited_authority(void **state)
{
	const struct rig_subject own = {.email = "alice@example.org"},
				 others = {.email = "alice@example.net"},
				 hidden = {.cn = "alice@example.net"},
				 as_own = {.cn = "alice@example.org"};
	const struct {
		const struct rig_subject *s;
		enum mikey_failure why;
	} T[] = {{&own, MIKEY_OK}, {&others, MIKEY_FAIL_CERT_CHAIN},
		{&hidden, MIKEY_FAIL_CERT_NAME}, {&as_own, MIKEY_FAIL_CERT_NAME}};
	struct rig_ca ca;

	(void)state;
	rig_ca_make_with(&ca, "limited", NULL, "critical,permitted;email:example.org");
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct mikey_cert *c = rig_cert(&ca, T[i].s);

		assert_int_equal(mikey_trust_check(ca.trust, c, (int64_t)RIG_NOW_S), T[i].why);
		if (T[i].s->cn) /* the operator named it */
			assert_int_equal(
				mikey_trust_pinned(ca.trust, c, (int64_t)RIG_NOW_S), MIKEY_OK);
		mikey_cert_free(c);
	}
	rig_ca_free(&ca);
}

static void test_without_roots(void **state)
{
	(void)state;
	rig.alice.peer.trust = NULL;
	assert_int_equal(mikey_rig_initiate(&rig, MIKEY_DH), MIKEY_OK);
	assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_FAIL_CERT_CHAIN);
}

static void test_a_key_is_needed(void **state)
{
	static const enum mikey_mode modes[] = {MIKEY_PKE, MIKEY_DH, MIKEY_RSAR};
	struct mikey_cert *own = rig.alice.id.cert;

	(void)state;
	rig.alice.id.cert = rig.alice.public;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		assert_int_equal(mikey_rig_initiate(&rig, modes[i]), MIKEY_FAIL_CERT);
	rig.alice.id.cert = own;
	rig.bob.peer.cert = NULL;
	assert_int_equal(mikey_rig_initiate(&rig, MIKEY_PKE), MIKEY_FAIL_CERT);
}

static bool has(const struct rig_subject *s, uint8_t type, const char *name)
{
	struct mikey_cert *c = rig_cert(&rig.ca, s);
	struct mikey_id id;
	bool ok;

	assert_int_equal(mikey_id_set(&id, type, str_from(name)), 0);
	ok = mikey_cert_has(c, &id);
	mikey_cert_free(c);
	return ok;
}

static void test_names(void **state)
{
	const struct rig_subject all = {
		.uri = RIG_ALICE, .email = "alice@example.org", .dns = "example.org", .cn = "cn"};
	const struct rig_subject cn = {.cn = RIG_ALICE};

	(void)state;
	assert_true(has(&all, MIKEY_ID_URI, RIG_ALICE));
	assert_true(has(&all, MIKEY_ID_URI, "sip:alice@EXAMPLE.org"));
	assert_false(has(&all, MIKEY_ID_URI, "sip:Alice@example.org"));
	assert_false(has(&all, MIKEY_ID_URI, "sip:alice@example.org.evil.org"));
	assert_false(has(&all, MIKEY_ID_URI, "alice@example.org"));
	assert_true(has(&all, MIKEY_ID_NAI, "alice@example.org"));
	assert_false(has(&all, MIKEY_ID_NAI, "bob@example.org")); /* DNS names no users */
	assert_true(has(&all, MIKEY_ID_NAI, "example.org"));
	assert_false(has(&all, MIKEY_ID_NAI, "cn"));
	assert_true(has(&cn, MIKEY_ID_URI, RIG_ALICE));
	assert_true(has(&cn, MIKEY_ID_NAI, RIG_ALICE));
}

/* --- Envelope keys ---------------------------------------------------------------------------- */

enum { TEXT_MAX = 80 };

static const struct mikey_cert *bob(void)
{
	return rig.bob.id.cert;
}

/* Transport keys of what bob decrypts. */
static struct mikey_transport opened(struct str cipher)
{
	struct mikey_envelope_key k;
	struct mikey_transport t;

	decrypted = 0;
	assert_true(mikey_decrypt(bob(), cipher, &k));
	assert_int_equal(decrypted, 1);
	assert_true(mikey_envelope_keys(&t, &k, 7, STR("0123456789abcdef")));
	return t;
}

static bool has_key(struct str cipher, struct str key)
{
	struct mikey_transport got = opened(cipher), want;

	assert_true(mikey_transport_keys(&want, key, 7, STR("0123456789abcdef")));
	return memcmp(&got, &want, sizeof(got)) == 0;
}

/* In both paddings, a key of each length that is one. */
static void test_envelope_keys(void **state)
{
	uint8_t key[TEXT_MAX], cipher[MIKEY_RSA_MAX];

	(void)state;
	for (uint8_t len = 1; len < TEXT_MAX; len++)
		for (int oaep = 0; oaep < 2; oaep++) {
			struct str k = {(const char *)key, len};
			int n;

			memset(key, len, sizeof(key));
			key[len / 2] = (uint8_t)(len % 3); /* zeroes and ones, too */
			n = mikey_encrypt(rig.bob.public, oaep, k, cipher);
			assert_int_equal(n, 256);
			assert_int_equal(
				has_key(mikey_bytes(cipher, 256), k), len >= 16 && len <= 64);
		}
}

/* XORs MGF1 of the seed into p (RFC 8017 B.2.1). */
static void mask(uint8_t *p, uint32_t len, const uint8_t *seed, uint32_t seed_len)
{
	uint8_t in[256 + 4], out[20];

	memcpy(in, seed, seed_len);
	for (uint32_t i = 0; i < len; i++) {
		put_be32(in + seed_len, i / 20);
		if (i % 20 == 0)
			assert_int_equal(
				EVP_Digest(in, seed_len + 4, out, NULL, EVP_sha1(), NULL), 1);
		p[i] ^= out[i % 20];
	}
}

/* RSAES-OAEP of a key of 16 bytes, with this seed (RFC 8017 7.1.1). */
static void oaep(uint8_t p[256], const uint8_t key[16], uint32_t seed)
{
	memset(p, 0, 256);
	put_be32(p + 1, seed);
	assert_int_equal(EVP_Digest("", 0, p + 21, NULL, EVP_sha1(), NULL), 1);
	p[239] = 1;
	memcpy(p + 240, key, 16);
	mask(p + 21, 235, p + 1, 20);
	mask(p + 1, 20, p + 21, 235);
}

static bool looks_like_pkcs1(const uint8_t p[256])
{
	const uint8_t *zero = p[1] == 2 ? memchr(p + 2, 0, 254) : NULL;

	return zero && zero >= p + 191 && zero < p + 240;
}

/* Chance makes one block in 3,000 such a one. */
static void test_oaep_that_looks_like_pkcs1(void **state)
{
	uint8_t p[256], key[16];
	uint32_t found = 0;

	(void)state;
	memset(key, 0x5a, sizeof(key));
	for (uint32_t seed = 0; found < 3; seed++) {
		struct mikey_envelope_key k;

		oaep(p, key, seed);
		if (seed && !looks_like_pkcs1(p))
			continue;
		found += looks_like_pkcs1(p);
		assert_true(mikey_unpad(&k, p, sizeof(p)));
		assert_memory_equal(k.key, key, sizeof(key));
		assert_int_equal(k.key[16] | k.rest, 0);
	}
}

/* Blocks as an attacker makes them, encrypted without padding. */
static struct str block(uint8_t cipher[MIKEY_RSA_MAX], const uint8_t *plain)
{
	EVP_PKEY *key = X509_get0_pubkey(mikey_cert_x509(bob(), 0));
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL);
	size_t len = MIKEY_RSA_MAX;

	assert_true(EVP_PKEY_encrypt_init(ctx) == 1 &&
		EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_NO_PADDING) == 1 &&
		EVP_PKEY_encrypt(ctx, cipher, &len, plain, 256) == 1);
	EVP_PKEY_CTX_free(ctx);
	return mikey_bytes(cipher, len);
}

/* Whatever is wrong: one private-key operation, and a key that is another one each time. */
static void test_wrong_paddings_look_like_wrong_keys(void **state)
{
	static const struct {
		const char *why;
		uint8_t at, value;
		bool right;
	} how[] = {
		{"a key of 16 bytes", 255, 7, true},
		{"the first byte", 0, 1, false},
		{"the type", 1, 1, false},
		{"a zero in the first eight bytes", 9, 0, false},
		{"a zero after eight bytes leaves a key that is too long", 10, 0, false},
		{"no zero", 239, 1, false},
	};
	uint8_t plain[256], cipher[MIKEY_RSA_MAX];
	struct mikey_transport a, b;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(how); i++) {
		struct str c;

		memset(plain, 0x5a, sizeof(plain));
		plain[0] = 0;
		plain[1] = 2;
		plain[239] = 0;
		plain[how[i].at] = how[i].value;
		c = block(cipher, plain);
		a = opened(c);
		b = opened(c);
		if ((memcmp(&a, &b, sizeof(a)) == 0) != how[i].right)
			fail_msg("%s", how[i].why);
		assert_int_equal(has_key(c, mikey_bytes(plain + 240, 16)), how[i].right);
	}
	/* No ciphertext of this key, of any length. */
	memset(cipher, 0xff, sizeof(cipher));
	for (size_t len = 0; len <= 257; len += len == 1 ? 254 : 1) {
		a = opened(mikey_bytes(cipher, len));
		b = opened(mikey_bytes(cipher, len));
		assert_memory_not_equal(&a, &b, sizeof(a));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_load),
		T(test_elliptic_curves_are_refused),
		T(test_long_chain),
		T(test_revocation),
		T(test_a_list_of_another_authority),
		T(test_certificates_that_are_refused),
		T(test_certificates_of_the_file),
		T(test_a_list_that_cannot_be_checked),
		T(test_a_list_without_a_chain),
		T(test_damaged_files),
		T(test_a_limited_authority),
		T(test_without_roots),
		T(test_a_key_is_needed),
		T(test_names),
		T(test_envelope_keys),
		T(test_oaep_that_looks_like_pkcs1),
		T(test_wrong_paddings_look_like_wrong_keys),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
