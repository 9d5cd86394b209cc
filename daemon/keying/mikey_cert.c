/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Certificates, and RSA with their keys. */
#include "keying/mikey_cert.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <time.h>

#include "base/secmem.h"
#include "keying/mikey_int.h"

struct mikey_cert {
	EVP_PKEY *private; /* NULL: a peer's */
	uint32_t count;
	X509 *x[MIKEY_CHAIN_MAX];
	uint8_t *der[MIKEY_CHAIN_MAX];
	size_t der_len[MIKEY_CHAIN_MAX];
};

void mikey_cert_free(struct mikey_cert *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->count; i++) {
		X509_free(c->x[i]);
		OPENSSL_free(c->der[i]);
	}
	EVP_PKEY_free(c->private);
	free(c);
	ERR_clear_error();
}

/* Takes x over, also on failure. */
static int append(struct mikey_cert *c, X509 *x)
{
	uint8_t *der = NULL;
	int len;

	if (c->count == MIKEY_CHAIN_MAX) {
		X509_free(x);
		return -E2BIG;
	}
	len = i2d_X509(x, &der);
	if (len <= 0) {
		X509_free(x);
		return -ENOMEM;
	}
	c->x[c->count] = x;
	c->der[c->count] = der;
	c->der_len[c->count++] = (size_t)len;
	return 0;
}

static bool is_rsa(const struct mikey_cert *c)
{
	EVP_PKEY *key = X509_get0_pubkey(c->x[0]);

	return key && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA &&
		EVP_PKEY_get_bits(key) >= MIKEY_RSA_BITS &&
		EVP_PKEY_get_bits(key) <= MIKEY_RSA_BITS_MAX;
}

/* Encrypted keys are refused instead of asking a terminal. */
static int no_password(char *buf, int size, int writing, void *arg)
{
	(void)buf;
	(void)size;
	(void)writing;
	(void)arg;
	return -1;
}

bool mikey_pem_ended(void)
{
	unsigned long e = ERR_peek_last_error();

	return ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
}

static int load_chain(struct mikey_cert *c, struct str pem)
{
	BIO *b = BIO_new_mem_buf(pem.s, (int)pem.len);
	int err = b ? 0 : -ENOMEM;
	X509 *x;

	while (!err && (x = PEM_read_bio_X509(b, NULL, no_password, NULL)))
		err = append(c, x);
	BIO_free(b);
	if (!err && (!c->count || !mikey_pem_ended()))
		err = -EBADMSG;
	return err;
}

static int load_key(struct mikey_cert *c, struct str pem)
{
	BIO *b = BIO_new_mem_buf(pem.s, (int)pem.len);

	if (!b)
		return -ENOMEM;
	c->private = PEM_read_bio_PrivateKey(b, NULL, no_password, NULL);
	BIO_free(b);
	if (!c->private)
		return -EBADMSG;
	return X509_check_private_key(c->x[0], c->private) == 1 ? 0 : -EKEYREJECTED;
}

int mikey_cert_load(struct mikey_cert **out, struct str pem, bool key)
{
	struct mikey_cert *c;
	int err;

	*out = NULL;
	if (pem.len > INT32_MAX)
		return -EBADMSG;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	err = load_chain(c, pem);
	if (!err && !is_rsa(c))
		err = -EKEYREJECTED;
	if (!err && key)
		err = load_key(c, pem);
	ERR_clear_error();
	if (err)
		mikey_cert_free(c);
	else
		*out = c;
	return err;
}

int mikey_cert_from(struct mikey_cert **out, const struct str *der, uint32_t count)
{
	struct mikey_cert *c = calloc(1, sizeof(*c));
	int err = c ? 0 : -ENOMEM;

	*out = NULL;
	for (uint32_t i = 0; !err && i < count; i++) {
		const uint8_t *p = (const uint8_t *)der[i].s;
		X509 *x = d2i_X509(NULL, &p, (long)der[i].len);

		if (!x)
			err = -EBADMSG;
		else if (p != (const uint8_t *)der[i].s + der[i].len)
			X509_free(x), err = -EBADMSG;
		else
			err = append(c, x);
	}
	if (!err && (!count || !is_rsa(c)))
		err = -EKEYREJECTED;
	ERR_clear_error();
	if (!err)
		*out = c;
	else if (c)
		mikey_cert_free(c);
	return err;
}

uint32_t mikey_cert_count(const struct mikey_cert *c)
{
	return c->count;
}

struct str mikey_cert_der(const struct mikey_cert *c, uint32_t nth)
{
	return nth < c->count ? mikey_bytes(c->der[nth], c->der_len[nth]) : STR_NONE;
}

X509 *mikey_cert_x509(const struct mikey_cert *c, uint32_t nth)
{
	return nth < c->count ? c->x[nth] : NULL;
}

int64_t mikey_time(const ASN1_TIME *t)
{
	struct tm tm;

	return t && ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : INT64_MAX;
}

int64_t mikey_cert_until(const struct mikey_cert *c)
{
	int64_t first = INT64_MAX;

	for (uint32_t i = 0; i < c->count; i++) {
		int64_t end = mikey_time(X509_get0_notAfter(c->x[i]));

		first = end < first ? end : first;
	}
	return first;
}

bool mikey_cert_is_private(const struct mikey_cert *c)
{
	return c && c->private;
}

size_t mikey_cert_rsa_len(const struct mikey_cert *c)
{
	return (size_t)EVP_PKEY_get_size(X509_get0_pubkey(c->x[0]));
}

/* A certificate that limits its key to other uses does not serve. */
static bool may(const struct mikey_cert *c, uint32_t usage)
{
	return X509_get_key_usage(c->x[0]) & usage;
}

static bool pss(EVP_PKEY_CTX *ctx)
{
	return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) == 1 &&
		EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_AUTO) == 1;
}

bool mikey_sign(const struct mikey_cert *c, struct str data, uint8_t *sig)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	size_t len = mikey_cert_rsa_len(c);
	bool ok = md && c->private &&
		EVP_DigestSignInit(md, NULL, EVP_sha1(), NULL, c->private) == 1 &&
		EVP_DigestSign(md, sig, &len, (const uint8_t *)data.s, data.len) == 1 &&
		len == mikey_cert_rsa_len(c);

	EVP_MD_CTX_free(md);
	ERR_clear_error();
	return ok;
}

bool mikey_verify(const struct mikey_cert *c, uint8_t kind, struct str data, struct str sig)
{
	EVP_PKEY *key = X509_get0_pubkey(c->x[0]);
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	EVP_PKEY_CTX *ctx = NULL; /* belongs to md */
	bool ok = md && kind <= MIKEY_SIGN_RSA_PSS && may(c, KU_DIGITAL_SIGNATURE) &&
		EVP_DigestVerifyInit(md, &ctx, EVP_sha1(), NULL, key) == 1 &&
		(kind != MIKEY_SIGN_RSA_PSS || pss(ctx)) &&
		EVP_DigestVerify(md, (const uint8_t *)sig.s, sig.len, (const uint8_t *)data.s,
			data.len) == 1;

	EVP_MD_CTX_free(md);
	ERR_clear_error();
	return ok;
}

int mikey_encrypt(const struct mikey_cert *c, bool oaep, struct str key, uint8_t out[MIKEY_RSA_MAX])
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(X509_get0_pubkey(c->x[0]), NULL);
	size_t len = MIKEY_RSA_MAX;
	int padding = oaep ? RSA_PKCS1_OAEP_PADDING : RSA_PKCS1_PADDING;
	bool ok = ctx && may(c, KU_KEY_ENCIPHERMENT) && EVP_PKEY_encrypt_init(ctx) == 1 &&
		EVP_PKEY_CTX_set_rsa_padding(ctx, padding) == 1 &&
		EVP_PKEY_encrypt(ctx, out, &len, (const uint8_t *)key.s, key.len) == 1;

	EVP_PKEY_CTX_free(ctx);
	ERR_clear_error();
	return ok ? (int)len : -EIO;
}

/* Decrypts the block, padding included. The caller removes the padding: OpenSSL's time and errors
 * would tell whether it is right. False: the ciphertext is not below the modulus. That is no
 * secret, because its sender sees both. */
static bool decrypt(const struct mikey_cert *c, struct str data, uint8_t block[MIKEY_RSA_MAX])
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(c->private, NULL);
	size_t len = MIKEY_RSA_MAX;
	bool ok = ctx && EVP_PKEY_decrypt_init(ctx) == 1 &&
		EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_NO_PADDING) == 1 &&
		EVP_PKEY_decrypt(ctx, block, &len, (const uint8_t *)data.s, data.len) == 1 &&
		len == mikey_cert_rsa_len(c);

	EVP_PKEY_CTX_free(ctx);
	ERR_clear_error();
	return ok;
}

bool mikey_decrypt(const struct mikey_cert *c, struct str data, struct mikey_envelope_key *out)
{
	uint8_t block[MIKEY_RSA_MAX];
	bool ok = c->private != NULL;

	if (ok && !decrypt(c, data, block))
		memset(block, 0, sizeof(block)); /* neither padding */
	ok = ok && mikey_unpad(out, block, mikey_cert_rsa_len(c));
	secmem_wipe(block, sizeof(block));
	return ok;
}
