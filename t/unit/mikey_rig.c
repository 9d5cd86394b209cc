/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mikey_rig.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "keying/mikey_trust.h"
#include "srtp/params.h"

#define DAY_S 86400
#define KEYS  16 /* more than a test has parties */

/* A new reference to an RSA key of 2,048 bits. Making one takes a tenth of a second, so later tests
 * of the program reuse them. The last KEYS are all different. */
static EVP_PKEY *next_key(void)
{
	static EVP_PKEY *keys[KEYS];
	static unsigned next;
	EVP_PKEY **k = &keys[next++ % KEYS];

	if (!*k)
		*k = EVP_RSA_gen(2048);
	assert_non_null(*k);
	EVP_PKEY_up_ref(*k);
	return *k;
}

static void add_ext(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(e);
	assert_int_equal(X509_add_ext(x, e, -1), 1);
	X509_EXTENSION_free(e);
}

static X509 *blank(EVP_PKEY *key, const char *cn, long serial, int64_t from_s, int64_t to_s)
{
	X509 *x = X509_new();
	X509_NAME *name = X509_get_subject_name(x);

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
	ASN1_TIME_set(X509_getm_notBefore(x), (time_t)from_s);
	ASN1_TIME_set(X509_getm_notAfter(x), (time_t)to_s);
	assert_int_equal(X509_set_pubkey(x, key), 1);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)cn, -1, -1, 0);
	return x;
}

static char *text_of(BIO *b)
{
	char *p, *out;
	long len = BIO_get_mem_data(b, &p);

	out = calloc(1, (size_t)len + 1);
	assert_non_null(out);
	memcpy(out, p, (size_t)len);
	BIO_free(b);
	return out;
}

char *rig_ca_pem(const struct rig_ca *ca)
{
	BIO *b = BIO_new(BIO_s_mem());

	PEM_write_bio_X509(b, ca->x);
	return text_of(b);
}

void rig_ca_make(struct rig_ca *ca, const char *name)
{
	rig_ca_make_with(ca, name, NULL, NULL);
}

void rig_ca_make_with(struct rig_ca *ca, const char *name, const char *usage, const char *limits)
{
	char *pem;

	ca->key = next_key();
	ca->x = blank(ca->key, name, 1, RIG_NOW_S - 1000 * DAY_S, RIG_NOW_S + 1000 * DAY_S);
	X509_set_issuer_name(ca->x, X509_get_subject_name(ca->x));
	add_ext(ca->x, ca->x, NID_basic_constraints, "critical,CA:TRUE");
	add_ext(ca->x, ca->x, NID_key_usage, usage ? usage : "critical,keyCertSign,cRLSign");
	if (limits)
		add_ext(ca->x, ca->x, NID_name_constraints, limits);
	assert_true(X509_sign(ca->x, ca->key, EVP_sha256()) > 0);
	pem = rig_ca_pem(ca);
	assert_int_equal(mikey_trust_load(&ca->trust, str_from(pem), STR_NONE), 0);
	free(pem);
}

void rig_ca_free(struct rig_ca *ca)
{
	mikey_trust_free(ca->trust);
	X509_free(ca->x);
	EVP_PKEY_free(ca->key);
}

static void add_names(X509 *x, X509 *issuer, const struct rig_subject *s)
{
	char names[512] = "";
	size_t n = 0;

	if (s->uri)
		n += (size_t)snprintf(names + n, sizeof(names) - n, ",URI:%s", s->uri);
	if (s->email)
		n += (size_t)snprintf(names + n, sizeof(names) - n, ",email:%s", s->email);
	if (s->dns)
		n += (size_t)snprintf(names + n, sizeof(names) - n, ",DNS:%s", s->dns);
	if (n)
		add_ext(x, issuer, NID_subject_alt_name, names + 1);
}

void rig_cert_pem(const struct rig_ca *ca, const struct rig_subject *s, char **cert, char **key)
{
	EVP_PKEY *k = s->bits ? EVP_RSA_gen(s->bits) : next_key();
	BIO *b = BIO_new(BIO_s_mem());
	X509 *x = blank(k, s->cn ? s->cn : "someone", s->serial,
		s->from_s ? s->from_s : (int64_t)RIG_NOW_S - DAY_S,
		s->to_s ? s->to_s : (int64_t)RIG_NOW_S + DAY_S);

	X509_set_issuer_name(x, X509_get_subject_name(ca->x));
	add_names(x, ca->x, s);
	assert_true(X509_sign(x, ca->key, EVP_sha256()) > 0);
	PEM_write_bio_X509(b, x);
	*cert = text_of(b);
	b = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(b, k, NULL, NULL, 0, NULL, NULL);
	*key = text_of(b);
	X509_free(x);
	EVP_PKEY_free(k);
}

static struct mikey_cert *load(const char *cert, const char *key)
{
	size_t len = strlen(cert) + (key ? strlen(key) : 0) + 1;
	char *both = calloc(1, len);
	struct mikey_cert *c;

	assert_non_null(both);
	snprintf(both, len, "%s%s", cert, key ? key : "");
	assert_int_equal(mikey_cert_load(&c, str_from(both), key != NULL), 0);
	free(both);
	return c;
}

struct mikey_cert *rig_cert(const struct rig_ca *ca, const struct rig_subject *s)
{
	struct mikey_cert *c;
	char *cert, *key;

	rig_cert_pem(ca, s, &cert, &key);
	c = load(cert, key);
	free(cert);
	free(key);
	return c;
}

char *rig_crl(const struct rig_ca *ca, long serial, int64_t from_s, int64_t to_s)
{
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *t = ASN1_TIME_set(NULL, (time_t)from_s);
	BIO *b = BIO_new(BIO_s_mem());

	X509_CRL_set_version(crl, 1);
	X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->x));
	X509_CRL_set1_lastUpdate(crl, t);
	if (serial) {
		X509_REVOKED *r = X509_REVOKED_new();
		ASN1_INTEGER *n = ASN1_INTEGER_new();

		ASN1_INTEGER_set(n, serial);
		X509_REVOKED_set_serialNumber(r, n);
		X509_REVOKED_set_revocationDate(r, t);
		assert_int_equal(X509_CRL_add0_revoked(crl, r), 1);
		ASN1_INTEGER_free(n);
	}
	ASN1_TIME_set(t, (time_t)to_s);
	X509_CRL_set1_nextUpdate(crl, t);
	assert_true(X509_CRL_sign(crl, ca->key, EVP_sha256()) > 0);
	PEM_write_bio_X509_CRL(b, crl);
	ASN1_TIME_free(t);
	X509_CRL_free(crl);
	return text_of(b);
}

/* --- The parties -----------------------------------------------------------------------------*/

static void party(struct mikey_rig *g, struct rig_party *p, const char *uri, long serial)
{
	struct rig_subject s = {.uri = uri, .serial = serial};
	char *cert, *key;

	rig_cert_pem(&g->ca, &s, &cert, &key);
	p->id.cert = load(cert, key);
	p->public = load(cert, NULL);
	free(cert);
	free(key);
	assert_int_equal(mikey_id_set(&p->id.id, MIKEY_ID_URI, str_from(uri)), 0);
	p->peer.id = p->id.id;
	p->peer.trust = g->ca.trust;
	p->peer.psk.len = 24;
	memset(p->peer.psk.key, 0x5a, p->peer.psk.len);
}

void mikey_rig_init(struct mikey_rig *g)
{
	memset(g, 0, sizeof(*g));
	rig_ca_make(&g->ca, "root");
	party(g, &g->alice, RIG_ALICE, RIG_SERIAL);
	party(g, &g->bob, RIG_BOB, RIG_SERIAL + 1);
	g->bob.peer.cert = g->bob.public; /* PKE: alice has bob's certificate */
	g->now_ntp = mikey_ntp(RIG_NOW_S * 1000000000ull);
	assert_int_equal(mikey_replay_create(&g->replay, 1024), 0);
	g->offer.media = g->accept.media = 1;
	g->offer.suites = g->accept.suites = 1;
	g->offer.suite[0] = g->accept.suite[0] = SUITE_AES_CM_128_80;
	g->offer.stream[0].ssrc = 0x11111111;
	g->accept.stream[0].ssrc = 0x22222222;
	g->accept.modes = (1u << MIKEY_MODE_COUNT) - 1;
	g->iout = (struct mikey_out){.buf = g->ibuf, .cap = sizeof(g->ibuf)};
	g->rout = (struct mikey_out){.buf = g->rbuf, .cap = sizeof(g->rbuf)};
}

static void party_free(struct rig_party *p)
{
	mikey_cert_free(p->id.cert);
	mikey_cert_free(p->public);
}

void mikey_rig_fini(struct mikey_rig *g)
{
	party_free(&g->alice);
	party_free(&g->bob);
	rig_ca_free(&g->ca);
	mikey_replay_destroy(g->replay);
}

struct str mikey_rig_sent(const struct mikey_out *o)
{
	return (struct str){(const char *)o->buf, o->len};
}

enum mikey_failure mikey_rig_initiate(struct mikey_rig *g, enum mikey_mode m)
{
	struct mikey_start s = {
		.mode = m,
		.mine = &g->alice.id,
		.peer = &g->bob.peer,
		.offer = &g->offer,
		.env = {.now_ntp = g->now_ntp},
	};

	return mikey_initiate(&g->i, &s, &g->iout);
}

static int find(void *arg, const struct mikey_ask *ask, struct mikey_identity *mine,
	struct mikey_peer *peer)
{
	struct mikey_rig *g = arg;

	g->asked = *ask;
	*mine = g->bob.id;
	*peer = g->alice.peer;
	return g->find_err;
}

static bool afford(void *arg, const struct mikey_peer *peer)
{
	struct mikey_rig *g = arg;

	(void)peer;
	g->afforded++;
	return true;
}

enum mikey_failure mikey_rig_respond(struct mikey_rig *g, struct str message)
{
	struct mikey_store store = {.find = find, .afford = afford, .arg = g};
	struct mikey_answer a = {
		.store = &store,
		.accept = &g->accept,
		.replay = g->replay,
		.env = {.now_ntp = g->now_ntp},
	};

	return mikey_respond(&g->r, &a, message, &g->rout, &g->rk);
}

enum mikey_failure mikey_rig_finish(struct mikey_rig *g, struct str message)
{
	struct mikey_end e = {
		.mine = &g->alice.id,
		.peer = &g->bob.peer,
		.env = {.now_ntp = g->now_ntp},
	};

	return mikey_finish(&g->i, &e, message, &g->ik);
}

bool mikey_rig_agree(const struct mikey_rig *g)
{
	bool same = g->ik.media == g->rk.media && g->ik.media;

	for (uint32_t i = 0; same && i < g->ik.media; i++) {
		const struct mikey_medium *a = &g->ik.medium[i], *b = &g->rk.medium[i];

		same = srtp_same_session(&a->tx, &b->rx) && srtp_same_session(&a->rx, &b->tx);
	}
	return same;
}

void mikey_rig_exchange(struct mikey_rig *g, enum mikey_mode m)
{
	g->now_ntp++; /* every message has another timestamp (RFC 3830 5.2) */
	assert_int_equal(mikey_rig_initiate(g, m), MIKEY_OK);
	assert_int_equal(g->i.state, MIKEY_SENT);
	assert_int_equal(mikey_rig_respond(g, mikey_rig_sent(&g->iout)), MIKEY_OK);
	assert_int_equal(g->r.state, MIKEY_DONE);
	assert_int_equal(mikey_rig_finish(g, mikey_rig_sent(&g->rout)), MIKEY_OK);
	assert_int_equal(g->i.state, MIKEY_DONE);
	assert_true(mikey_rig_agree(g));
}
