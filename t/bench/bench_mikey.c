/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-bench mikey: exchanges per second of one core, by mode, and the time that OpenSSL's
 * primitives alone need for them (the floor). Initiator and responder run in turns in one thread;
 * the time of each is measured separately. Certificates are self-signed, RSA of 2,048 bits. */
#include <getopt.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "bench.h"
#include "keying/mikey_int.h"
#include "keying/mikey_trust.h"

static struct side {
	struct mikey_identity id;
	struct mikey_peer peer; /* as the other one knows it */
} side[2];                      /* initiator, responder */

static uint64_t now_ntp;

/* --- Parties ---------------------------------------------------------------------------------- */

static bool name_it(X509 *x, const char *uri)
{
	char san[64];
	X509_EXTENSION *e;
	bool ok;

	snprintf(san, sizeof(san), "URI:%s", uri);
	e = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, san);
	ok = e && X509_add_ext(x, e, -1) == 1;
	X509_EXTENSION_free(e);
	return ok &&
		X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
			(const uint8_t *)uri, -1, -1, 0) == 1;
}

/* A certificate and its key as one PEM text. */
static BIO *make_pem(const char *uri)
{
	EVP_PKEY *key = EVP_RSA_gen(2048);
	BIO *b = BIO_new(BIO_s_mem());
	X509 *x = X509_new();
	bool ok = key && b && x && X509_set_version(x, 2) == 1 && name_it(x, uri) &&
		X509_gmtime_adj(X509_getm_notBefore(x), -86400) &&
		X509_gmtime_adj(X509_getm_notAfter(x), 86400) &&
		X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 &&
		X509_set_pubkey(x, key) == 1 && X509_sign(x, key, EVP_sha256()) > 0 &&
		PEM_write_bio_X509(b, x) == 1 &&
		PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL) == 1;

	X509_free(x);
	EVP_PKEY_free(key);
	if (ok)
		return b;
	BIO_free(b);
	return NULL;
}

static bool make_side(struct side *s, const char *uri)
{
	BIO *b = make_pem(uri);
	char *p;
	bool ok = b != NULL;

	if (ok) {
		size_t len = (size_t)BIO_get_mem_data(b, &p);

		ok = !mikey_cert_load(&s->id.cert, (struct str){p, len}, true) &&
			!mikey_trust_load(&s->peer.trust, (struct str){p, len}, STR_NONE) &&
			!mikey_id_set(&s->id.id, MIKEY_ID_URI, str_from(uri));
	}
	BIO_free(b);
	s->peer.id = s->id.id;
	s->peer.cert = s->id.cert;
	s->peer.psk.len = 32;
	memset(s->peer.psk.key, 7, 32);
	return ok;
}

static int find(void *arg, const struct mikey_ask *ask, struct mikey_identity *mine,
	struct mikey_peer *peer)
{
	(void)arg;
	(void)ask;
	*mine = side[1].id;
	*peer = side[0].peer;
	return 0;
}

/* --- Exchanges -------------------------------------------------------------------------------- */

struct turn {
	struct mikey_run run[2];
	struct mikey_keys keys[2];
	uint8_t buf[2][MIKEY_MESSAGE_MAX];
	uint64_t ns[2];
};

static bool exchange(struct turn *t, enum mikey_mode m, struct mikey_replay *replay)
{
	const struct mikey_offer offer = {
		.media = 1, .suites = 1, .suite = {SUITE_AEAD_AES_256_GCM}};
	const struct mikey_accept accept = {
		.media = 1, .suites = 1, .suite = {SUITE_AEAD_AES_256_GCM}, .modes = UINT32_MAX};
	const struct mikey_store store = {.find = find};
	const struct mikey_env env = {.now_ntp = ++now_ntp};
	const struct mikey_start s = {m, &side[0].id, &side[1].peer, &offer, env};
	const struct mikey_answer a = {&store, &accept, replay, env};
	const struct mikey_end e = {&side[0].id, &side[1].peer, env};
	struct mikey_out i = {t->buf[0], sizeof(t->buf[0]), 0};
	struct mikey_out r = {t->buf[1], sizeof(t->buf[1]), 0};
	uint64_t t0 = clock_mono_ns(), t1, t2;
	bool ok = mikey_initiate(&t->run[0], &s, &i) == MIKEY_OK;

	t1 = clock_mono_ns();
	ok = ok && !mikey_respond(&t->run[1], &a, mikey_bytes(i.buf, i.len), &r, &t->keys[1]);
	t2 = clock_mono_ns();
	ok = ok && !mikey_finish(&t->run[0], &e, mikey_bytes(r.buf, r.len), &t->keys[0]);
	t->ns[0] += t1 - t0 + clock_mono_ns() - t2;
	t->ns[1] += t2 - t1;
	return ok;
}

/* --- Primitives ------------------------------------------------------------------------------- */

enum primitive { SIGN, VERIFY, ENCRYPT, DECRYPT, POWER, PRIMITIVES };

static const char *const primitive_name[PRIMITIVES] = {"RSA-2048 sign", "RSA-2048 verify",
	"RSA-2048 encrypt", "RSA-2048 decrypt", "OAKLEY 5 power"};

static bool primitive(enum primitive p)
{
	static uint8_t sig[MIKEY_RSA_MAX], pke[MIKEY_RSA_MAX];
	static struct mikey_envelope_key plain;
	static uint8_t power[MIKEY_TGK_MAX], secret[MIKEY_DH_SECRET_LEN] = {0x99, 1};
	static size_t len, pke_len;
	const struct mikey_cert *c = side[0].id.cert;
	int n;

	switch (p) {
	case SIGN:
		len = mikey_cert_rsa_len(c);
		return mikey_sign(c, STR("message"), sig);
	case VERIFY:
		return mikey_verify(c, MIKEY_SIGN_RSA_PKCS1, STR("message"), mikey_bytes(sig, len));
	case ENCRYPT:
		n = mikey_encrypt(c, true, STR("0123456789abcdef"), pke);
		pke_len = n > 0 ? (size_t)n : 0;
		return n > 0;
	case DECRYPT:
		return mikey_decrypt(c, mikey_bytes(pke, pke_len), &plain);
	default:
		return !mikey_dh_public(
			MIKEY_DH_OAKLEY5, mikey_bytes(secret, sizeof(secret)), power);
	}
}

/* Number of primitives that the initiator and the responder need. */
static const uint8_t needs[MIKEY_MODE_COUNT][2][PRIMITIVES] = {
	[MIKEY_PKE] = {{[SIGN] = 1, [ENCRYPT] = 1}, {[VERIFY] = 1, [DECRYPT] = 1}},
	[MIKEY_DH] = {{[SIGN] = 1, [VERIFY] = 1, [POWER] = 2},
		{[SIGN] = 1, [VERIFY] = 1, [POWER] = 2}},
	[MIKEY_DHHMAC] = {{[POWER] = 2}, {[POWER] = 2}},
	[MIKEY_RSAR] = {{[SIGN] = 1, [VERIFY] = 1, [DECRYPT] = 1},
		{[VERIFY] = 1, [SIGN] = 1, [ENCRYPT] = 1}},
};

static bool primitives(double us[PRIMITIVES], unsigned count)
{
	bool ok = true;

	for (enum primitive p = 0; p < PRIMITIVES; p++) {
		uint64_t t0 = clock_mono_ns();

		for (unsigned i = 0; i < count; i++)
			ok = primitive(p) && ok;
		us[p] = (double)(clock_mono_ns() - t0) / 1000 / count;
		printf("%-18s %8.1f us\n", primitive_name[p], us[p]);
	}
	return ok;
}

/* only: the mode to measure; MIKEY_MODE_COUNT: all. */
static bool modes(const double us[PRIMITIVES], unsigned count, enum mikey_mode only)
{
	static struct turn t; /* large */
	bool ok = true;

	printf("%-8s %12s %12s %12s %12s %14s\n", "mode", "initiator us", "floor us",
		"responder us", "floor us", "responses/s");
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		struct mikey_replay *replay;
		double floor[2] = {0, 0}, took[2];

		if (only != MIKEY_MODE_COUNT && m != only)
			continue;
		if (mikey_replay_create(&replay, 4 * count + 1024))
			return false;
		memset(t.ns, 0, sizeof(t.ns));
		for (unsigned i = 0; i < count; i++)
			ok = exchange(&t, m, replay) && ok;
		for (int s = 0; s < 2; s++) {
			took[s] = (double)t.ns[s] / 1000 / count;
			for (enum primitive p = 0; p < PRIMITIVES; p++)
				floor[s] += needs[m][s][p] * us[p];
		}
		printf("%-8s %12.1f %12.1f %12.1f %12.1f %14.0f\n", mikey_mode_name(m), took[0],
			floor[0], took[1], floor[1], 1e6 / took[1]);
		mikey_replay_destroy(replay);
	}
	return ok;
}

int bench_mikey(int argc, char **argv)
{
	static const struct option options[] = {{"count", required_argument, NULL, 'c'},
		{"mode", required_argument, NULL, 'm'}, {"help", no_argument, NULL, 'h'}, {0}};
	double us[PRIMITIVES] = {0};
	enum mikey_mode only = MIKEY_MODE_COUNT;
	unsigned count = 200;
	bool ok;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'c') {
			count = (unsigned)strtoul(optarg, NULL, 10);
			continue;
		}
		only = c == 'm' ? mikey_mode_find(str_from(optarg)) : MIKEY_MODE_COUNT;
		if (only != MIKEY_MODE_COUNT)
			continue;
		printf("usage: xcipher-bench mikey [--count=N] [--mode=MODE]\n"
		       "N: exchanges of each mode (200). MODE: only this one, and no primitives\n");
		return c == 'h' ? 0 : 2;
	}
	now_ntp = mikey_ntp((uint64_t)time(NULL) * 1000000000u);
	ok = count && make_side(&side[0], "sip:a@example.org") &&
		make_side(&side[1], "sip:b@example.org") &&
		(only != MIKEY_MODE_COUNT || primitives(us, count)) && modes(us, count, only);
	for (int i = 0; i < 2; i++) {
		mikey_cert_free(side[i].id.cert);
		mikey_trust_free(side[i].peer.trust);
	}
	if (!ok)
		fprintf(stderr, "bench: an exchange failed\n");
	return ok ? 0 : 1;
}
