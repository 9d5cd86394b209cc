/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Certificates with their contexts of OpenSSL. Everything is set before the first reference is
 * given out, and only read afterwards; the count of references is atomic. */
#include "keying/dtls_cert.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/secmem.h"
#include "keying/dtls_int.h"

#define DAY_S    86400
#define RSA_BITS 2048
#define EC_BITS  256

struct dtls_cert {
	atomic_uint refs;
	SSL_CTX *ctx;
	BIO_METHOD *bio;
	uint64_t id;
	uint64_t made_s;
	uint32_t life_s; /* 0: loaded */
};

static void destroy(struct dtls_cert *c)
{
	SSL_CTX_free(c->ctx);
	BIO_meth_free(c->bio);
	free(c);
}

static struct dtls_cert *allocate(void)
{
	struct dtls_cert *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	atomic_init(&c->refs, 1);
	c->bio = dtls_io_method();
	c->ctx = SSL_CTX_new(DTLS_method());
	if (c->bio && c->ctx && dtls_tls_prepare(c->ctx))
		return c;
	destroy(c);
	return NULL;
}

uint64_t dtls_cert_id_of(const struct dtls_fingerprint *sha256)
{
	return hash_siphash((const uint8_t[16]){0}, sha256->value, 32) | 1;
}

/* Once the context has its certificate. */
static bool set_id(struct dtls_cert *c)
{
	struct dtls_fingerprint sha256;

	if (dtls_cert_fingerprint(&sha256, c, DTLS_SHA256))
		return false;
	c->id = dtls_cert_id_of(&sha256);
	return true;
}

/* 63 random bits that are not zero. */
static bool set_serial(X509 *x)
{
	uint64_t serial;

	if (secmem_random(&serial, sizeof(serial)))
		return false;
	return ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), (serial >> 1) | 1) == 1;
}

static bool fill(X509 *x, EVP_PKEY *key, uint64_t now_s, uint32_t life_s)
{
	X509_NAME *name = X509_get_subject_name(x);

	return X509_set_version(x, 2) == 1 && set_serial(x) &&
		ASN1_TIME_set(X509_getm_notBefore(x), (time_t)now_s - DAY_S) &&
		ASN1_TIME_set(X509_getm_notAfter(x), (time_t)now_s + (time_t)life_s + DAY_S) &&
		X509_NAME_add_entry_by_txt(
			name, "CN", MBSTRING_ASC, (const uint8_t *)"xcipher", -1, -1, 0) == 1 &&
		X509_set_issuer_name(x, name) == 1 && X509_set_pubkey(x, key) == 1 &&
		X509_sign(x, key, EVP_sha256()) > 0;
}

int dtls_cert_create(struct dtls_cert **out, uint64_t now_s, uint32_t life_s)
{
	struct dtls_cert *c = allocate();
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	int err = -EIO;

	if (c && key && x && fill(x, key, now_s, life_s) &&
		SSL_CTX_use_certificate(c->ctx, x) == 1 &&
		SSL_CTX_use_PrivateKey(c->ctx, key) == 1 && set_id(c)) {
		c->made_s = now_s;
		c->life_s = life_s ? life_s : 1;
		*out = c;
		c = NULL;
		err = 0;
	} else if (!c || !key || !x) {
		err = -ENOMEM;
	}
	if (c)
		destroy(c);
	X509_free(x);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return err;
}

/* No passphrase: OpenSSL would ask for one on the terminal. */
static int no_passphrase(char *buf, int cap, int writing, void *unused)
{
	(void)buf;
	(void)cap;
	(void)writing;
	(void)unused;
	return -1;
}

static BIO *text_bio(struct str pem)
{
	return pem.len && pem.len <= INT32_MAX ? BIO_new_mem_buf(pem.s, (int)pem.len) : NULL;
}

/* -ENOENT: no certificate; -ETIME: expired; -EAGAIN: not valid yet. */
static int load_cert(SSL_CTX *ctx, struct str pem, uint64_t now_s)
{
	BIO *b = text_bio(pem);
	X509 *x = b ? PEM_read_bio_X509(b, NULL, no_passphrase, NULL) : NULL;
	time_t now = (time_t)now_s;
	int err = 0;

	if (!x)
		err = -ENOENT;
	else if (X509_cmp_time(X509_get0_notAfter(x), &now) <= 0)
		err = -ETIME;
	else if (X509_cmp_time(X509_get0_notBefore(x), &now) > 0)
		err = -EAGAIN;
	else if (SSL_CTX_use_certificate(ctx, x) != 1)
		err = -EBADMSG;
	X509_free(x);
	BIO_free(b);
	return err;
}

static bool is_strong(const EVP_PKEY *key)
{
	int bits = EVP_PKEY_get_bits(key);

	if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC)
		return bits >= EC_BITS;
	return EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA && bits >= RSA_BITS;
}

/* -ENOKEY: none that can be read; -ERANGE: too weak; -EKEYREJECTED: of another certificate. */
static int load_key(SSL_CTX *ctx, struct str pem)
{
	BIO *b = text_bio(pem);
	EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, no_passphrase, NULL) : NULL;
	int err = 0;

	if (!key)
		err = -ENOKEY;
	else if (!is_strong(key))
		err = -ERANGE;
	else if (SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		err = -EKEYREJECTED;
	EVP_PKEY_free(key);
	BIO_free(b);
	return err;
}

int dtls_cert_load(struct dtls_cert **out, struct str cert, struct str key, uint64_t now_s)
{
	struct dtls_cert *c = allocate();
	int err = c ? load_cert(c->ctx, cert, now_s) : -ENOMEM;

	if (!err)
		err = load_key(c->ctx, key);
	if (!err && !set_id(c))
		err = -ENOMEM;
	if (!err)
		*out = c;
	else if (c)
		destroy(c);
	ERR_clear_error();
	return err;
}

const char *dtls_cert_error(int err)
{
	switch (err) {
	case -ENOENT:
		return "has no certificate in PEM";
	case -ETIME:
		return "has a certificate that has expired";
	case -EAGAIN:
		return "has a certificate that is not valid yet";
	case -EBADMSG:
		return "has a certificate that OpenSSL refuses: its key must be ECDSA or RSA, of enough bits";
	case -ENOKEY:
		return "has no private key in PEM without a passphrase";
	case -ERANGE:
		return "has a key that is too weak: ECDSA of 256 bits or RSA of 2,048 bits is the least";
	case -EKEYREJECTED:
		return "has a key that does not fit the certificate";
	default:
		return "cannot be loaded: out of memory";
	}
}

bool dtls_cert_error_of_key(int err)
{
	return err == -ENOKEY || err == -ERANGE || err == -EKEYREJECTED;
}

struct dtls_cert *dtls_cert_get(struct dtls_cert *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

void dtls_cert_put(struct dtls_cert *c)
{
	if (c && atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1)
		destroy(c);
}

int dtls_cert_fingerprint(struct dtls_fingerprint *out, const struct dtls_cert *c, enum dtls_hash h)
{
	struct dtls_fingerprint f = {.hash = (uint8_t)h};

	if (h >= DTLS_HASH_COUNT || !dtls_tls_digest(f.value, SSL_CTX_get0_certificate(c->ctx), h))
		return -EINVAL;
	*out = f;
	return 0;
}

uint64_t dtls_cert_id(const struct dtls_cert *c)
{
	return c->id;
}

bool dtls_cert_is_old(const struct dtls_cert *c, uint64_t now_s)
{
	return c->life_s && now_s >= c->made_s + c->life_s / 2;
}

SSL_CTX *dtls_cert_ctx(const struct dtls_cert *c)
{
	return c->ctx;
}

const BIO_METHOD *dtls_cert_bio(const struct dtls_cert *c)
{
	return c->bio;
}
