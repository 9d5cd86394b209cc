/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-bench dtls: DTLS-SRTP handshakes per second on one core, compared with the same handshake
 * by OpenSSL alone (the floor). Also memory per association, and the cost of a ClientHello from an
 * unproven source. Client and server take turns in one thread; each is timed separately. */
#include <getopt.h>
#include <malloc.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench.h"
#include "bench_flood.h"
#include "keying/dtls.h"
#include "keying/dtls_gate.h"

enum { ROUNDS = 9, ASSOCIATIONS = 400, HELLOS = 200000, TURNS = 20 };

struct sides {
	uint64_t ns[2]; /* client, server */
};

static struct dtls_cert *cert;
static struct dtls_fingerprints prints;

/* --- xcipherd --------------------------------------------------------------------------------- */

static struct dtls *create(enum dtls_role role)
{
	const struct dtls_config c = {.cert = cert,
		.role = role,
		.profile = {SUITE_AEAD_AES_256_GCM, SUITE_AES_CM_128_80},
		.profiles = 2};
	struct dtls *a = NULL;

	if (dtls_create(&a, &c) || dtls_expect(a, &prints, 1)) {
		fprintf(stderr, "bench: cannot create an association\n");
		exit(1);
	}
	return a;
}

static bool pass(struct dtls *from, struct dtls *to)
{
	uint8_t buf[DTLS_PACKET_MAX];
	bool any = false;
	int n;

	while ((n = dtls_next(from, buf, sizeof(buf))) > 0) {
		(void)dtls_take(to, buf, (size_t)n, 1);
		any = true;
	}
	return any;
}

static bool handshake(struct dtls *client, struct dtls *server, struct sides *s)
{
	uint64_t t0 = clock_mono_ns(), t1;

	(void)dtls_start(client, 1);
	s->ns[0] += clock_mono_ns() - t0;
	for (int i = 0; i < TURNS; i++) {
		bool any;

		t0 = clock_mono_ns();
		any = pass(client, server);
		t1 = clock_mono_ns();
		s->ns[1] += t1 - t0;
		any |= pass(server, client);
		s->ns[0] += clock_mono_ns() - t1;
		if (!any)
			break;
	}
	return dtls_state(client) == DTLS_OPEN && dtls_state(server) == DTLS_OPEN;
}

static bool run_ours(struct sides *s)
{
	uint64_t t0 = clock_mono_ns(), t1, t2;
	struct dtls *client = create(DTLS_ROLE_CLIENT), *server;
	bool ok;

	t1 = clock_mono_ns();
	server = create(DTLS_ROLE_SERVER);
	t2 = clock_mono_ns();
	ok = handshake(client, server, s);
	s->ns[0] += t1 - t0;
	s->ns[1] += t2 - t1;
	t0 = clock_mono_ns();
	dtls_destroy(client);
	t1 = clock_mono_ns();
	dtls_destroy(server);
	s->ns[0] += t1 - t0;
	s->ns[1] += clock_mono_ns() - t1;
	return ok;
}

/* --- OpenSSL alone ---------------------------------------------------------------------------- */

static int accept_any(X509_STORE_CTX *x, void *unused)
{
	(void)x;
	(void)unused;
	return 1;
}

static SSL_CTX *floor_ctx(void)
{
	SSL_CTX *ctx = SSL_CTX_new(DTLS_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();

	if (!ctx || !key || !x)
		exit(1);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400);
	X509_set_pubkey(x, key);
	X509_sign(x, key, EVP_sha256());
	SSL_CTX_use_certificate(ctx, x);
	SSL_CTX_use_PrivateKey(ctx, key);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_cert_verify_callback(ctx, accept_any, NULL);
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_QUERY_MTU);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set1_groups_list(ctx, "X25519:P-256");
	SSL_CTX_set_tlsext_use_srtp(ctx, "SRTP_AEAD_AES_256_GCM");
	X509_free(x);
	EVP_PKEY_free(key);
	return ctx;
}

/* Memory BIOs join datagrams, but records stay whole, which OpenSSL accepts. */
static bool run_floor(SSL_CTX *ctx, struct sides *s)
{
	SSL *ssl[2];
	BIO *to[2] = {BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem())}; /* to client, to server */
	uint8_t material[88];
	int done[2] = {0, 0};
	uint64_t t0;

	for (int i = 0; i < 2; i++) {
		t0 = clock_mono_ns();
		BIO_set_mem_eof_return(to[i], -1);
		BIO_up_ref(to[i]);
		BIO_up_ref(to[!i]);
		ssl[i] = SSL_new(ctx);
		SSL_set_mtu(ssl[i], 1200);
		SSL_set_bio(ssl[i], to[i], to[!i]);
		if (i)
			SSL_set_accept_state(ssl[i]);
		else
			SSL_set_connect_state(ssl[i]);
		s->ns[i] += clock_mono_ns() - t0;
	}
	for (int turn = 0; turn < TURNS && !(done[0] && done[1]); turn++) {
		int i = turn & 1;

		t0 = clock_mono_ns();
		done[i] = SSL_do_handshake(ssl[i]) == 1;
		if (done[i])
			SSL_export_keying_material(ssl[i], material, sizeof(material),
				"EXTRACTOR-dtls_srtp", 19, NULL, 0, 0);
		s->ns[i] += clock_mono_ns() - t0;
	}
	for (int i = 0; i < 2; i++) {
		t0 = clock_mono_ns();
		SSL_free(ssl[i]);
		BIO_free(to[i]);
		s->ns[i] += clock_mono_ns() - t0;
	}
	return done[0] && done[1];
}

/* --- Figures ---------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static bool speed(unsigned count)
{
	static const char *const names[] = {"client", "server"};
	SSL_CTX *ctx = floor_ctx();
	double us[2][2][ROUNDS]; /* ours or floor, side, round */
	bool ok = true;

	for (int r = 0; r < ROUNDS; r++)
		for (int floor = 0; floor < 2; floor++) {
			struct sides s = {{0, 0}};

			for (unsigned i = 0; i < count; i++)
				ok = (floor ? run_floor(ctx, &s) : run_ours(&s)) && ok;
			for (int i = 0; i < 2; i++)
				us[floor][i][r] = (double)s.ns[i] / count / 1000;
		}
	SSL_CTX_free(ctx);
	printf("%-8s %28s %28s %6s\n", "role", "ours", "OpenSSL alone (floor)", "ratio");
	for (int i = 0; i < 2; i++) {
		for (int floor = 0; floor < 2; floor++)
			qsort(us[floor][i], ROUNDS, sizeof(double), by_value);
		printf("%-8s %7.0f us %8.0f per second %7.0f us %8.0f per second %6.2f\n", names[i],
			us[0][i][ROUNDS / 2], 1e6 / us[0][i][ROUNDS / 2], us[1][i][ROUNDS / 2],
			1e6 / us[1][i][ROUNDS / 2], us[0][i][ROUNDS / 2] / us[1][i][ROUNDS / 2]);
	}
	return ok;
}

static size_t in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static bool memory(void)
{
	static struct dtls *client[ASSOCIATIONS], *server[ASSOCIATIONS];
	struct sides s;
	size_t at[5];
	bool ok = true;

	at[0] = in_use();
	for (int i = 0; i < ASSOCIATIONS; i++)
		server[i] = create(DTLS_ROLE_SERVER);
	at[1] = in_use();
	for (int i = 0; i < ASSOCIATIONS; i++)
		client[i] = create(DTLS_ROLE_CLIENT);
	at[2] = in_use();
	for (int i = 0; i < ASSOCIATIONS; i++)
		ok = handshake(client[i], server[i], &s) && ok;
	at[3] = in_use();
	for (int i = 0; i < ASSOCIATIONS; i++) {
		dtls_settle(client[i], 1);
		dtls_settle(server[i], 1);
	}
	at[4] = in_use();
	printf("bytes per association: %zu created, %zu open and held, %zu after the hold\n",
		(at[1] - at[0]) / ASSOCIATIONS, (at[3] - at[0]) / ASSOCIATIONS / 2,
		(at[4] - at[0]) / ASSOCIATIONS / 2);
	for (int i = 0; i < ASSOCIATIONS; i++) {
		dtls_destroy(client[i]);
		dtls_destroy(server[i]);
	}
	return ok;
}

static bool flood(void)
{
	struct endpoint src = {.family = AF_INET, .port = 4000};
	struct dtls *client = create(DTLS_ROLE_CLIENT);
	struct dtls_gate_reply reply;
	uint8_t buf[DTLS_PACKET_MAX];
	struct dtls_gate *g;
	uint64_t t0;
	bool ok = true;
	int n;

	if (dtls_gate_create(&g, 1))
		return false;
	(void)dtls_start(client, 1);
	n = dtls_next(client, buf, sizeof(buf));
	t0 = clock_mono_ns();
	for (uint32_t i = 0; n > 0 && i < HELLOS; i++) {
		put_be32(src.addr, i);
		ok = ok && dtls_gate_take(g, &src, buf, (size_t)n, 1, &reply) == DTLS_GATE_REPLY;
	}
	printf("ClientHello of an unproven source: %.0f ns, no allocation\n",
		(double)(clock_mono_ns() - t0) / HELLOS);
	dtls_gate_destroy(g);
	dtls_destroy(client);
	return ok && n > 0 && bench_flood(buf, (uint32_t)n);
}

int bench_dtls(int argc, char **argv)
{
	static const struct option options[] = {
		{"count", required_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'}, {0}};
	unsigned count = 100;
	bool ok;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'c') {
			count = (unsigned)strtoul(optarg, NULL, 10);
			continue;
		}
		printf("usage: xcipher-bench dtls [--count=N]   N: handshakes per round (100)\n");
		return c == 'h' ? 0 : 2;
	}
	if (!count || dtls_cert_create(&cert, 1700000000, 86400) ||
		dtls_cert_fingerprint(&prints.f[0], cert, DTLS_SHA256))
		return 1;
	prints.count = 1;
	ok = speed(count);
	ok = memory() && ok;
	ok = flood() && ok;
	dtls_cert_put(cert);
	if (!ok)
		fprintf(stderr, "bench: a handshake failed\n");
	return ok ? 0 : 1;
}
