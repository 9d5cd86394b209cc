/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a certificate is trusted, and whose it is. */
#include "keying/mikey_trust.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "keying/mikey_int.h"

#define AUTH_LEVEL 2 /* 112 bits: RSA of 2,048 bits, and signatures of certificates without SHA-1 */

struct mikey_trust {
	X509_STORE *store;
};

static bool has_alternative_name(X509 *x);

void mikey_trust_free(struct mikey_trust *t)
{
	if (!t)
		return;
	X509_STORE_free(t->store);
	free(t);
	ERR_clear_error();
}

static int add_roots(X509_STORE *s, struct str pem)
{
	BIO *b = BIO_new_mem_buf(pem.s, (int)pem.len);
	uint32_t count = 0;
	int err = b ? 0 : -ENOMEM;
	X509 *x;

	while (!err && (x = PEM_read_bio_X509(b, NULL, NULL, NULL))) {
		err = X509_STORE_add_cert(s, x) == 1 ? 0 : -ENOMEM;
		X509_free(x);
		count++;
	}
	BIO_free(b);
	return !err && (!count || !mikey_pem_ended()) ? -EBADMSG : err;
}

static int add_crls(X509_STORE *s, struct str pem)
{
	BIO *b = BIO_new_mem_buf(pem.s, (int)pem.len);
	uint32_t count = 0;
	int err = b ? 0 : -ENOMEM;
	X509_CRL *x;

	while (!err && (x = PEM_read_bio_X509_CRL(b, NULL, NULL, NULL))) {
		err = X509_STORE_add_crl(s, x) == 1 ? 0 : -ENOMEM;
		X509_CRL_free(x);
		count++;
	}
	BIO_free(b);
	if (!err && (!count || !mikey_pem_ended()))
		err = -EBADMSG;
	if (!err && X509_STORE_set_flags(s, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) != 1)
		err = -ENOMEM;
	return err;
}

int mikey_trust_load(struct mikey_trust **out, struct str roots, struct str crls)
{
	struct mikey_trust *t;
	int err;

	*out = NULL;
	if (roots.len > INT32_MAX || crls.len > INT32_MAX)
		return -EBADMSG;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->store = X509_STORE_new();
	err = t->store ? add_roots(t->store, roots) : -ENOMEM;
	if (!err && crls.s) /* an empty file is a damaged one */
		err = add_crls(t->store, crls);
	ERR_clear_error();
	if (err)
		mikey_trust_free(t);
	else
		*out = t;
	return err;
}

static enum mikey_failure reason(int err)
{
	switch (err) {
	case X509_V_OK:
		return MIKEY_OK;
	case X509_V_ERR_CERT_HAS_EXPIRED:
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return MIKEY_FAIL_CERT_EXPIRED;
	case X509_V_ERR_CERT_REVOKED:
	case X509_V_ERR_UNABLE_TO_GET_CRL:
	case X509_V_ERR_CRL_HAS_EXPIRED:
	case X509_V_ERR_CRL_NOT_YET_VALID:
	case X509_V_ERR_CRL_SIGNATURE_FAILURE:
	case X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE:
	case X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD:
	case X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD:
	case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
	case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
	case X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION:
	case X509_V_ERR_DIFFERENT_CRL_SCOPE:
	case X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
		return MIKEY_FAIL_CERT_REVOKED;
	case X509_V_ERR_OUT_OF_MEM:
		return MIKEY_FAIL_INTERNAL;
	default:
		return MIKEY_FAIL_CERT_CHAIN;
	}
}

static STACK_OF(X509) * issuers(const struct mikey_cert *c)
{
	STACK_OF(X509) *s = sk_X509_new_null();

	for (uint32_t i = 1; s && i < mikey_cert_count(c); i++)
		if (!sk_X509_push(s, mikey_cert_x509(c, i))) {
			sk_X509_free(s);
			s = NULL;
		}
	return s;
}

/* OpenSSL applies nameConstraints to alternative names, but not to a common name that is an
 * identity of MIKEY. There an authority with such limits could certify any name. */
static enum mikey_failure within_limits(X509_STORE_CTX *ctx, X509 *x)
{
	const STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(ctx);
	bool limited = false;

	for (int i = 1; i < sk_X509_num(chain); i++)
		limited |=
			X509_get_ext_by_NID(sk_X509_value(chain, i), NID_name_constraints, -1) >= 0;
	return !limited || has_alternative_name(x) ? MIKEY_OK : MIKEY_FAIL_CERT_NAME;
}

enum mikey_failure mikey_trust_check(
	const struct mikey_trust *t, const struct mikey_cert *c, int64_t now_s)
{
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	STACK_OF(X509) *chain = issuers(c);
	enum mikey_failure f = MIKEY_FAIL_INTERNAL;

	if (ctx && chain && X509_STORE_CTX_init(ctx, t->store, mikey_cert_x509(c, 0), chain) == 1) {
		X509_VERIFY_PARAM *p = X509_STORE_CTX_get0_param(ctx);

		X509_VERIFY_PARAM_set_time(p, (time_t)now_s);
		X509_VERIFY_PARAM_set_auth_level(p, AUTH_LEVEL);
		X509_VERIFY_PARAM_set_depth(p, MIKEY_CHAIN_MAX);
		f = X509_verify_cert(ctx) == 1 ? within_limits(ctx, mikey_cert_x509(c, 0))
					       : reason(X509_STORE_CTX_get_error(ctx));
	}
	X509_STORE_CTX_free(ctx);
	sk_X509_free(chain);
	ERR_clear_error();
	return f;
}

static X509_CRL *list_at(const struct mikey_trust *t, int i)
{
	return X509_OBJECT_get0_X509_CRL(
		sk_X509_OBJECT_value(X509_STORE_get0_objects(t->store), i));
}

/* The latest expiry of this issuer's lists. */
static int64_t issuer_until(const struct mikey_trust *t, const X509_NAME *issuer)
{
	int64_t last = INT64_MIN;

	for (int i = 0; i < sk_X509_OBJECT_num(X509_STORE_get0_objects(t->store)); i++) {
		X509_CRL *list = list_at(t, i);
		int64_t end;

		if (!list || X509_NAME_cmp(X509_CRL_get_issuer(list), issuer) != 0)
			continue;
		end = mikey_time(X509_CRL_get0_nextUpdate(list));
		last = end > last ? end : last;
	}
	return last;
}

int64_t mikey_trust_until(const struct mikey_trust *t)
{
	int64_t first = INT64_MAX;

	for (int i = 0; i < sk_X509_OBJECT_num(X509_STORE_get0_objects(t->store)); i++) {
		X509_CRL *list = list_at(t, i);
		int64_t end = list ? issuer_until(t, X509_CRL_get_issuer(list)) : INT64_MAX;

		first = end < first ? end : first;
	}
	return first;
}

/* Whether a list of its issuer names the certificate. */
static bool is_listed(const struct mikey_trust *t, X509 *x)
{
	const STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(t->store);

	for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
		X509_CRL *list = X509_OBJECT_get0_X509_CRL(sk_X509_OBJECT_value(all, i));
		X509_REVOKED *entry;

		if (list &&
			X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_issuer_name(x)) == 0 &&
			X509_CRL_get0_by_cert(list, &entry, x) == 1)
			return true;
	}
	return false;
}

enum mikey_failure mikey_trust_pinned(
	const struct mikey_trust *t, const struct mikey_cert *c, int64_t now_s)
{
	X509 *x = mikey_cert_x509(c, 0);
	time_t now = (time_t)now_s;
	enum mikey_failure f;

	if (X509_cmp_time(X509_get0_notBefore(x), &now) >= 0 ||
		X509_cmp_time(X509_get0_notAfter(x), &now) <= 0)
		return MIKEY_FAIL_CERT_EXPIRED;
	if (t && is_listed(t, x))
		return MIKEY_FAIL_CERT_REVOKED;
	f = t ? mikey_trust_check(t, c, now_s) : MIKEY_OK;
	return f == MIKEY_FAIL_CERT_CHAIN || f == MIKEY_FAIL_CERT_NAME ? MIKEY_OK : f;
}

/* --- Names ----------------------------------------------------------------------------------*/

/* A name that MIKEY can have as an identity. False: another type, too long, or with a zero byte. */
static bool usable(struct mikey_id *out, uint8_t type, const ASN1_STRING *s)
{
	struct str name = {(const char *)ASN1_STRING_get0_data(s), (size_t)ASN1_STRING_length(s)};

	if (!name.len || memchr(name.s, 0, name.len))
		return false;
	return mikey_id_set(out, type, name) == 0;
}

static bool san(struct mikey_id *out, const GENERAL_NAME *g)
{
	switch (g->type) {
	case GEN_URI:
		return usable(out, MIKEY_ID_URI, g->d.uniformResourceIdentifier);
	case GEN_EMAIL:
		return usable(out, MIKEY_ID_NAI, g->d.rfc822Name);
	case GEN_DNS:
		return usable(out, MIKEY_ID_NAI, g->d.dNSName);
	default:
		return false;
	}
}

static bool common_name(struct mikey_id *out, X509 *x)
{
	X509_NAME *subject = X509_get_subject_name(x);
	int i = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

	if (i < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, i) >= 0)
		return false;
	return usable(out, MIKEY_ID_NAI, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, i)));
}

/* Calls found() for the names of a certificate in order, until it returns true. */
static bool any_name(X509 *x, bool (*found)(const struct mikey_id *, bool cn, void *arg), void *arg)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	int count = sk_GENERAL_NAME_num(names);
	bool any = false, ok = false;
	struct mikey_id id;

	for (int i = 0; i < count && !ok; i++)
		if (san(&id, sk_GENERAL_NAME_value(names, i))) {
			any = true;
			ok = found(&id, false, arg);
		}
	if (!any && common_name(&id, x))
		ok = found(&id, true, arg);
	GENERAL_NAMES_free(names);
	ERR_clear_error();
	return ok;
}

static bool alternative(const struct mikey_id *name, bool cn, void *arg)
{
	(void)name;
	(void)arg;
	return !cn;
}

static bool has_alternative_name(X509 *x)
{
	return any_name(x, alternative, NULL);
}

static bool is(const struct mikey_id *name, bool cn, void *arg)
{
	const struct mikey_id *want = arg;

	return (cn || name->type == want->type) &&
		mikey_name_eq(mikey_id_str(name), mikey_id_str(want));
}

bool mikey_cert_has(const struct mikey_cert *c, const struct mikey_id *id)
{
	struct mikey_id want = *id;

	return any_name(mikey_cert_x509(c, 0), is, &want);
}

static bool first(const struct mikey_id *name, bool cn, void *arg)
{
	(void)cn;
	*(struct mikey_id *)arg = *name;
	return true;
}

int mikey_cert_name(const struct mikey_cert *c, struct mikey_id *out)
{
	memset(out, 0, sizeof(*out));
	return any_name(mikey_cert_x509(c, 0), first, out) ? 0 : -ENOENT;
}
