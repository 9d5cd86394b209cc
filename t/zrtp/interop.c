/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our ZRTP exchange against that of libbzrtp, in memory: every agreement of both, both roles, one
 * of each other algorithm in turn. Keys and SAS must be equal at both ends. libbzrtp is GPL-3, so
 * this is a program of its own: make check-zrtp. */
#include <bzrtp/bzrtp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/secmem.h"
#include "keying/zrtp.h"

#define MS 1000000ull

struct rig {
	struct zrtp *z;
	bzrtpContext_t *b;
	uint64_t now_ns;
	bool started;
	char sas[32];
	uint8_t key[2][64], key_len[2]; /* [ours to it] */
	struct {
		uint8_t p[1500];
		uint16_t len;
	} to_us[64];
	uint32_t n;
};

static int send_data(void *arg, const uint8_t *p, uint16_t len)
{
	struct rig *r = arg;

	if (r->n < 64 && len <= 1500) {
		memcpy(r->to_us[r->n].p, p, len);
		r->to_us[r->n++].len = len;
	}
	return 0;
}

static int secrets(void *arg, const bzrtpSrtpSecrets_t *s, uint8_t part)
{
	struct rig *r = arg;

	if (part == ZRTP_SRTP_SECRETS_FOR_SENDER) {
		memcpy(r->key[0], s->selfSrtpKey, s->selfSrtpKeyLength);
		r->key_len[0] = s->selfSrtpKeyLength;
	} else {
		memcpy(r->key[1], s->peerSrtpKey, s->peerSrtpKeyLength);
		r->key_len[1] = s->peerSrtpKeyLength;
	}
	return 0;
}

static int start(void *arg, const bzrtpSrtpSecrets_t *s, int32_t verified)
{
	struct rig *r = arg;

	(void)verified;
	r->started = true;
	snprintf(r->sas, sizeof(r->sas), "%s", s->sas ? s->sas : "");
	return 0;
}

static int message(void *arg, uint8_t level, uint8_t id, const char *text)
{
	(void)arg;
	if (getenv("VERBOSE"))
		fprintf(stderr, "bzrtp: level %u, id %u %s\n", level, id, text ? text : "");
	return 0;
}

static void pass(struct rig *r)
{
	uint8_t p[ZRTP_PACKET_MAX];
	int n;

	for (int turns = 0; turns < 20; turns++) {
		bool any = false;

		while ((n = zrtp_next(r->z, p, sizeof(p))) > 0) {
			int err = bzrtp_processMessage(r->b, 2, p, (uint16_t)n);

			if (getenv("VERBOSE"))
				fprintf(stderr, "%.8s -> %x\n", p + 16, err);
			any = true;
		}
		for (uint32_t i = 0; i < r->n; i++) {
			int err = zrtp_take(r->z, r->to_us[i].p, r->to_us[i].len, r->now_ns);

			if (getenv("VERBOSE"))
				fprintf(stderr, "%.8s <- %d\n", r->to_us[i].p + 16, err);
			any = true;
		}
		r->n = 0;
		if (!any)
			return;
	}
}

/* 0: equal keys and SAS. */
static int try(const uint8_t ours[ZRTP_KINDS], const uint8_t theirs[5], bool we_first)
{
	static const uint8_t type[5] = {ZRTP_HASH_TYPE, ZRTP_CIPHERBLOCK_TYPE, ZRTP_AUTHTAG_TYPE,
		ZRTP_KEYAGREEMENT_TYPE, ZRTP_SAS_TYPE};
	struct zrtp_prefs prefs = {0};
	struct zrtp_config c = {.ssrc = 1, .prefs = &prefs};
	const bzrtpCallbacks_t cb = {.bzrtp_sendData = send_data,
		.bzrtp_srtpSecretsAvailable = secrets,
		.bzrtp_startSrtpSession = start,
		.bzrtp_statusMessage = message,
		.bzrtp_messageLevel = 3};
	struct rig r = {.b = bzrtp_createBzrtpContext()};
	struct srtp_master rx, tx;
	int res = 1;

	for (int k = 0; k < ZRTP_KINDS; k++) {
		prefs.n[k] = 1;
		prefs.list[k][0] = ours[k];
		bzrtp_setSupportedCryptoTypes(r.b, type[k], (uint8_t[7]){theirs[k]}, 1);
	}
	if (secmem_random(c.seed, sizeof(c.seed)) || zrtp_create(&r.z, &c))
		return 2;
	bzrtp_setCallbacks(r.b, &cb);
	bzrtp_initBzrtpContext(r.b, 2);
	bzrtp_setClientData(r.b, 2, &r);
	if (we_first)
		zrtp_start(r.z, 0);
	else
		bzrtp_startChannelEngine(r.b, 2);
	for (int i = 0; i < 2000 && !(r.started && zrtp_state(r.z) == ZRTP_OPEN); i++) {
		r.now_ns += 10 * MS;
		if (i == 3 && we_first)
			bzrtp_startChannelEngine(r.b, 2);
		if (i == 3)
			zrtp_start(r.z, r.now_ns);
		zrtp_tick(r.z, r.now_ns);
		bzrtp_iterate(r.b, 2, r.now_ns / MS);
		pass(&r);
	}
	if (r.started && zrtp_keys(r.z, &rx, &tx) == 0)
		res = strcmp(r.sas, zrtp_sas(r.z)) != 0 ||
			memcmp(r.key[0], rx.key, r.key_len[0]) != 0 ||
			memcmp(r.key[1], tx.key, r.key_len[1]) != 0;
	printf("%s %s %s %s, %s: %s%s%s, SAS %s and %s\n", zrtp_algorithm(r.z, ZRTP_K_AGREEMENT),
		zrtp_algorithm(r.z, ZRTP_K_HASH), zrtp_algorithm(r.z, ZRTP_K_CIPHER),
		zrtp_algorithm(r.z, ZRTP_K_TAG), zrtp_initiated(r.z) ? "initiator" : "responder",
		res ? "FAILED" : "equal", zrtp_failure(r.z) ? ": " : "",
		zrtp_failure_text(zrtp_failure(r.z)), zrtp_sas(r.z), r.sas);
	bzrtp_destroyBzrtpContext(r.b, 2);
	zrtp_destroy(r.z);
	return res;
}

int main(void)
{
	static const uint8_t agreement[][2] = {{ZRTP_X255, ZRTP_KEYAGREEMENT_X255},
		{ZRTP_DH3K, ZRTP_KEYAGREEMENT_DH3k}, {ZRTP_DH2K, ZRTP_KEYAGREEMENT_DH2k}};
	static const uint8_t cipher[][2] = {
		{ZRTP_AES1, ZRTP_CIPHER_AES1}, {ZRTP_AES3, ZRTP_CIPHER_AES3}};
	static const uint8_t tag[][2] = {
		{ZRTP_HS80, ZRTP_AUTHTAG_HS80}, {ZRTP_HS32, ZRTP_AUTHTAG_HS32}};
	static const uint8_t hash[][2] = {{ZRTP_S256, ZRTP_HASH_S256}, {ZRTP_S384, ZRTP_HASH_S384}};
	int failed = 0;

	for (uint32_t i = 0; i < ARRAY_LEN(agreement); i++)
		for (uint32_t k = 0; k < 8; k++) {
			const uint8_t *a = agreement[i], *c = cipher[k & 1], *t = tag[k >> 1 & 1],
				      *h = hash[k >> 2 & 1];
			const uint8_t ours[] = {h[0], c[0], t[0], a[0], ZRTP_B32};
			const uint8_t theirs[] = {h[1], c[1], t[1], a[1], ZRTP_SAS_B32};

			failed += try(ours, theirs, k & 1) != 0;
		}
	printf("%d failed\n", failed);
	return failed != 0;
}
