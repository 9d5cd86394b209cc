/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-bench zrtp: exchanges per second of one core, by key agreement, beside the time that the
 * agreement alone needs (the floor: one key pair, one result); and what a forged packet costs.
 * Initiator and responder run in turns in one thread. The CPU time of each is measured apart. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/secmem.h"
#include "bench.h"
#include "keying/zrtp_agree.h"
#include "keying/zrtp_int.h"

#define TYPE (ZRTP_HEADER + 4u)

struct turn {
	struct zrtp *z[2]; /* initiator, responder */
	uint64_t ns[2];
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct zrtp *create(int agreement, bool bound)
{
	struct zrtp_prefs prefs;
	struct zrtp_config c = {.ssrc = 1, .prefs = &prefs, .bound = bound};
	struct zrtp *z;

	zrtp_prefs_all(&prefs);
	if (agreement >= 0) {
		prefs.n[ZRTP_K_AGREEMENT] = 1;
		prefs.list[ZRTP_K_AGREEMENT][0] = (uint8_t)agreement;
	}
	if (secmem_random(c.seed, sizeof(c.seed)) || zrtp_create(&z, &c))
		return NULL;
	return z;
}

/* All packets of one side. A responder gets no HelloACK, so that it sends no Commit. */
static bool carry(struct turn *t, int from)
{
	uint8_t p[ZRTP_PACKET_MAX];
	bool any = false;

	for (;;) {
		uint64_t t0 = cpu_ns(), t1;
		int n = zrtp_next(t->z[from], p, sizeof(p));

		t1 = cpu_ns();
		t->ns[from] += t1 - t0;
		if (n <= 0)
			return any;
		any = true;
		if (from == 0 && memcmp(p + TYPE, "HelloACK", 8) == 0)
			continue;
		(void)zrtp_take(t->z[!from], p, (size_t)n, 1);
		t->ns[!from] += cpu_ns() - t1;
	}
}

static bool exchange(struct turn *t, int agreement)
{
	bool ok = true;

	for (int s = 0; s < 2; s++) {
		uint64_t t0 = cpu_ns();

		t->z[s] = create(agreement, false);
		if (t->z[s])
			zrtp_start(t->z[s], 1);
		ok = ok && t->z[s];
		t->ns[s] += cpu_ns() - t0;
	}
	for (bool any = ok; any;) {
		any = carry(t, 0);
		any |= carry(t, 1);
	}
	ok = ok && zrtp_state(t->z[0]) == ZRTP_OPEN && zrtp_state(t->z[1]) == ZRTP_OPEN;
	for (int s = 0; s < 2; s++) {
		uint64_t t0 = cpu_ns();

		zrtp_destroy(t->z[s]);
		t->ns[s] += cpu_ns() - t0;
	}
	return ok;
}

/* us of one key pair and one result. */
static bool floor_of(double us[2], enum zrtp_agreement a, unsigned count)
{
	uint64_t ns[2] = {0};
	bool ok = true;

	for (unsigned i = 0; i < count && ok; i++) {
		uint8_t result[ZRTP_VALUE_MAX];
		struct zrtp_pair *mine = NULL, *theirs = NULL;
		uint64_t t0, t1;

		ok = !zrtp_pair_make(&theirs, a);
		t0 = cpu_ns();
		ok = ok && !zrtp_pair_make(&mine, a);
		t1 = cpu_ns();
		ok = ok && !zrtp_pair_agree(mine, result, zrtp_pair_value(theirs));
		ns[0] += t1 - t0;
		ns[1] += cpu_ns() - t1;
		zrtp_pair_free(mine);
		zrtp_pair_free(theirs);
	}
	for (int i = 0; i < 2; i++)
		us[i] = (double)ns[i] / 1000 / count;
	return ok;
}

static bool agreements(unsigned count)
{
	bool ok = true;

	printf("%-9s %12s %12s %9s %9s %9s %12s\n", "agreement", "initiator us", "responder us",
		"pair us", "result us", "floor us", "exchanges/s");
	for (uint8_t a = 0; a < ZRTP_PRSH && ok; a++) {
		struct turn t = {0};
		double us[2], took[2];

		for (unsigned i = 0; i < count && ok; i++)
			ok = exchange(&t, a);
		ok = ok && floor_of(us, (enum zrtp_agreement)a, count);
		if (!ok)
			break;
		for (int s = 0; s < 2; s++)
			took[s] = (double)t.ns[s] / 1000 / count;
		printf("%-9s %12.1f %12.1f %9.1f %9.1f %9.1f %12.0f\n",
			zrtp_alg_name(ZRTP_K_AGREEMENT, a), took[0], took[1], us[0], us[1],
			us[0] + us[1], 2e6 / (took[0] + took[1]));
	}
	return ok;
}

/* --- Packets of strangers --------------------------------------------------------------------- */

enum forged { HELLO, BOUND_HELLO, CHECKSUM, COMMIT, FORGED };

static const char *const forged_name[FORGED] = {"Hello, answered", "Hello with another hash",
	"Hello with a wrong checksum", "Commit of a stranger"};

#define PACKETS 256u

struct packets { /* each differs from the one before */
	uint8_t p[PACKETS][ZRTP_PACKET_MAX];
	size_t len[PACKETS];
};

static void forge(struct packets *out, enum forged kind, struct zrtp_msg *m)
{
	if (kind == COMMIT) {
		zrtp_msg_begin(m, ZRTP_M_COMMIT);
		zrtp_msg_add(m, NULL, COMMIT_HVI + 32 + ZRTP_MAC - ZRTP_PREAMBLE);
		zrtp_msg_end(m, 0);
	}
	for (uint32_t i = 0; i < PACKETS; i++) {
		put_be32(m->b + (kind == COMMIT ? COMMIT_H2 : HELLO_ZID), i);
		out->len[i] = zrtp_wrap(out->p[i], m, (uint16_t)i, 9);
		out->p[i][out->len[i] - 1] ^= kind == CHECKSUM;
	}
}

static bool stranger(enum forged kind, unsigned count)
{
	static struct packets f;
	struct zrtp *z = create(-1, kind == BOUND_HELLO), *other = create(-1, false);
	bool ok = z && other;

	if (ok) {
		uint8_t p[ZRTP_PACKET_MAX];
		struct zrtp_msg m = other->me.hello;
		uint64_t t0;

		zrtp_start(z, 1);
		(void)zrtp_take(z, p, zrtp_wrap(p, &m, 1, 9), 1);
		forge(&f, kind, &m);
		t0 = cpu_ns();
		for (uint32_t i = 0; i < PACKETS * count; i++) {
			(void)zrtp_take(z, f.p[i % PACKETS], f.len[i % PACKETS], 1);
			while (zrtp_next(z, p, sizeof(p)) > 0)
				continue;
		}
		printf("%-28s %8.0f\n", forged_name[kind],
			(double)(cpu_ns() - t0) / (PACKETS * count));
	}
	zrtp_destroy(z);
	zrtp_destroy(other);
	return ok;
}

static bool strangers(unsigned count)
{
	bool ok = true;

	printf("\n%-28s %8s\n", "forged packet", "ns");
	for (enum forged k = 0; k < FORGED && ok; k++)
		ok = stranger(k, count);
	printf("\nan exchange takes %zu bytes\n", sizeof(struct zrtp));
	return ok;
}

int bench_zrtp(int argc, char **argv)
{
	static const struct option options[] = {
		{"count", required_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'}, {0}};
	unsigned count = 200;
	bool ok;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'c') {
			count = (unsigned)strtoul(optarg, NULL, 10);
			continue;
		}
		printf("usage: xcipher-bench zrtp [--count=N]   N: exchanges by each agreement (200)\n");
		return c == 'h' ? 0 : 2;
	}
	ok = count && agreements(count) && strangers(count);
	if (!ok)
		fprintf(stderr, "bench: an exchange failed\n");
	return ok ? 0 : 1;
}
