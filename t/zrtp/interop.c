/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our ZRTP exchange against that of libbzrtp, in memory: all combinations of common algorithms,
 * in both roles, with a=zrtp-hash both ways and a second stream in Multistream mode. Keys and SAS
 * must be equal at both ends. libbzrtp is GPL-3, so this is a separate program: make check-zrtp. */
#include <bzrtp/bzrtp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/secmem.h"
#include "keying/zrtp.h"

#define MS        1000000ull
#define SSRC      2u
#define SSRC_MORE 3u
#define QUEUE     64u
#define TYPE      16u /* offset of a message's type in a packet */

static const uint8_t type[ZRTP_KINDS] = {ZRTP_HASH_TYPE, ZRTP_CIPHERBLOCK_TYPE, ZRTP_AUTHTAG_TYPE,
	ZRTP_KEYAGREEMENT_TYPE, ZRTP_SAS_TYPE};
/* Our algorithms, as libbzrtp numbers them. */
static const uint8_t theirs[ZRTP_KINDS][ZRTP_LIST] = {
	[ZRTP_K_HASH] = {[ZRTP_S256] = ZRTP_HASH_S256, [ZRTP_S384] = ZRTP_HASH_S384},
	[ZRTP_K_CIPHER] = {[ZRTP_AES1] = ZRTP_CIPHER_AES1,
		[ZRTP_AES2] = ZRTP_CIPHER_AES2,
		[ZRTP_AES3] = ZRTP_CIPHER_AES3},
	[ZRTP_K_TAG] = {[ZRTP_HS80] = ZRTP_AUTHTAG_HS80, [ZRTP_HS32] = ZRTP_AUTHTAG_HS32},
	[ZRTP_K_AGREEMENT] = {[ZRTP_EC25] = ZRTP_KEYAGREEMENT_EC25,
		[ZRTP_X255] = ZRTP_KEYAGREEMENT_X255,
		[ZRTP_DH3K] = ZRTP_KEYAGREEMENT_DH3k,
		[ZRTP_EC38] = ZRTP_KEYAGREEMENT_EC38,
		[ZRTP_DH2K] = ZRTP_KEYAGREEMENT_DH2k},
	[ZRTP_K_SAS] = {[ZRTP_B32] = ZRTP_SAS_B32, [ZRTP_B256] = ZRTP_SAS_B256},
};

struct one { /* an exchange */
	uint8_t alg[ZRTP_KINDS];
	bool we_begin, wrong_hash;
};

struct channel { /* what libbzrtp says of one stream */
	uint32_t ssrc;
	bool started;
	char sas[ZRTP_SAS_MAX];
	struct srtp_master own, peer; /* it sends by own */
	struct {
		uint8_t p[1500];
		uint16_t len;
	} to_us[QUEUE];
	uint32_t n;
};

static int send_data(void *arg, const uint8_t *p, uint16_t len)
{
	struct channel *c = arg;

	if (c->n < QUEUE && len <= sizeof(c->to_us[0].p)) {
		memcpy(c->to_us[c->n].p, p, len);
		c->to_us[c->n++].len = len;
	}
	return 0;
}

static int secrets(void *arg, const bzrtpSrtpSecrets_t *s, uint8_t part)
{
	struct channel *c = arg;

	if (part & ZRTP_SRTP_SECRETS_FOR_SENDER) {
		memcpy(c->own.key, s->selfSrtpKey, s->selfSrtpKeyLength);
		memcpy(c->own.salt, s->selfSrtpSalt, s->selfSrtpSaltLength);
	}
	if (part & ZRTP_SRTP_SECRETS_FOR_RECEIVER) {
		memcpy(c->peer.key, s->peerSrtpKey, s->peerSrtpKeyLength);
		memcpy(c->peer.salt, s->peerSrtpSalt, s->peerSrtpSaltLength);
	}
	return 0;
}

static int start(void *arg, const bzrtpSrtpSecrets_t *s, int32_t verified)
{
	struct channel *c = arg;

	(void)verified;
	c->started = true;
	snprintf(c->sas, sizeof(c->sas), "%s", s->sas ? s->sas : "");
	return 0;
}

/* A side that gets no HelloACK sends no Commit. */
static bool is_lost(const uint8_t *p, bool to_us, bool we_begin)
{
	return to_us != we_begin && memcmp(p + TYPE, "HelloACK", 8) == 0;
}

/* Packets and time, until both have keys. */
static bool talk(bzrtpContext_t *b, struct channel *c, struct zrtp *z, bool we_begin)
{
	const uint32_t ssrc = c->ssrc;
	uint8_t p[ZRTP_PACKET_MAX];
	int n;

	for (uint64_t ms = 10; ms < 20000 && zrtp_state(z) != ZRTP_FAILED; ms += 10) {
		bzrtp_iterate(b, ssrc, ms);
		zrtp_tick(z, ms * MS);
		while ((n = zrtp_next(z, p, sizeof(p))) > 0)
			if (!is_lost(p, false, we_begin))
				(void)bzrtp_processMessage(b, ssrc, p, (uint16_t)n);
		for (uint32_t i = 0; i < c->n; i++)
			if (!is_lost(c->to_us[i].p, true, we_begin))
				(void)zrtp_take(z, c->to_us[i].p, c->to_us[i].len, ms * MS);
		c->n = 0;
		if (c->started && zrtp_state(z) == ZRTP_OPEN)
			return true;
	}
	return false;
}

static bool same_keys(const struct zrtp *z, const struct channel *c)
{
	struct srtp_master rx, tx;

	return zrtp_keys(z, &rx, &tx) == 0 && memcmp(rx.key, c->own.key, sizeof(rx.key)) == 0 &&
		memcmp(tx.key, c->peer.key, sizeof(tx.key)) == 0 &&
		memcmp(rx.salt, c->own.salt, sizeof(rx.salt)) == 0 &&
		memcmp(tx.salt, c->peer.salt, sizeof(tx.salt)) == 0;
}

static void config(struct zrtp_config *c, struct zrtp_prefs *prefs, const struct one *o)
{
	*prefs = (struct zrtp_prefs){0};
	for (int k = 0; k < ZRTP_KINDS; k++) {
		prefs->n[k] = 1;
		prefs->list[k][0] = o->alg[k];
	}
	prefs->list[ZRTP_K_AGREEMENT][prefs->n[ZRTP_K_AGREEMENT]++] = ZRTP_MULT;
	*c = (struct zrtp_config){
		.ssrc = 1, .prefs = prefs, .zid = (const uint8_t *)"gateway..zid"};
	if (secmem_random(c->seed, sizeof(c->seed)))
		abort();
}

static bzrtpContext_t *their_side(const struct one *o, struct channel *c)
{
	static const bzrtpCallbacks_t cb = {.bzrtp_sendData = send_data,
		.bzrtp_srtpSecretsAvailable = secrets,
		.bzrtp_startSrtpSession = start};
	bzrtpContext_t *b = bzrtp_createBzrtpContext();

	for (int k = 0; k < ZRTP_KINDS; k++) {
		uint8_t list[ZRTP_LIST] = {theirs[k][o->alg[k]], ZRTP_KEYAGREEMENT_Mult};

		bzrtp_setSupportedCryptoTypes(b, type[k], list, k == ZRTP_K_AGREEMENT ? 2 : 1);
	}
	bzrtp_setCallbacks(b, &cb);
	bzrtp_initBzrtpContext(b, SSRC);
	bzrtp_setClientData(b, SSRC, c);
	bzrtp_startChannelEngine(b, SSRC);
	return b;
}

/* Each side learns the hash of the other's Hello, as by SDP. */
static void tell_hashes(bzrtpContext_t *b, struct zrtp_config *c, bool wrong)
{
	char ours[80] = "1.10 ", said[80] = "";
	uint8_t hash[ZRTP_HASH];

	if (zrtp_hello_hash(hash, c))
		abort();
	for (uint32_t i = 0; i < ZRTP_HASH; i++)
		snprintf(ours + 5 + 2 * i, 3, "%02x", hash[i]);
	bzrtp_setPeerHelloHash(b, SSRC, (uint8_t *)ours, strlen(ours));
	bzrtp_getSelfHelloHash(b, SSRC, (uint8_t *)said, sizeof(said));
	for (uint32_t i = 0; i < ZRTP_HASH; i++)
		c->bound_hash[i] = (uint8_t)strtoul(
			(const char[3]){said[5 + 2 * i], said[6 + 2 * i], 0}, NULL, 16);
	c->bound_hash[0] ^= wrong;
	c->bound = true;
}

static bool another_stream(bzrtpContext_t *b, const struct one *o, const struct zrtp *first)
{
	static struct channel c;
	struct zrtp_prefs prefs;
	struct zrtp_config cfg;
	struct zrtp *z;
	bool good;

	memset(&c, 0, sizeof(c));
	c.ssrc = SSRC_MORE;
	config(&cfg, &prefs, o);
	if (zrtp_create(&z, &cfg))
		abort();
	good = !zrtp_multi(z, first) && !bzrtp_addChannel(b, SSRC_MORE) &&
		!bzrtp_setClientData(b, SSRC_MORE, &c) && !bzrtp_startChannelEngine(b, SSRC_MORE);
	zrtp_start(z, 0);
	good = good && talk(b, &c, z, o->we_begin) && same_keys(z, &c) &&
		strcmp(zrtp_algorithm(z, ZRTP_K_AGREEMENT), "Mult") == 0;
	zrtp_destroy(z);
	return good;
}

static bool try(const struct one *o)
{
	static struct channel c;
	struct zrtp_prefs prefs;
	struct zrtp_config cfg;
	bzrtpContext_t *b;
	struct zrtp *z;
	bool good;

	memset(&c, 0, sizeof(c));
	c.ssrc = SSRC;
	config(&cfg, &prefs, o);
	b = their_side(o, &c);
	tell_hashes(b, &cfg, o->wrong_hash);
	if (zrtp_create(&z, &cfg))
		abort();
	zrtp_start(z, 0);
	good = talk(b, &c, z, o->we_begin);
	if (o->wrong_hash) {
		good = !good && zrtp_state(z) != ZRTP_OPEN;
	} else {
		good = good && same_keys(z, &c) && strcmp(zrtp_sas(z), c.sas) == 0 &&
			zrtp_initiated(z) == o->we_begin && another_stream(b, o, z);
	}
	for (int k = 0; !good && k < ZRTP_KINDS; k++)
		printf("%s ", zrtp_algorithm(z, (enum zrtp_kind)k));
	if (!good)
		printf("%s%s: FAILED: %s; SAS \"%s\" and \"%s\"\n",
			o->we_begin ? "initiator" : "responder",
			o->wrong_hash ? ", wrong hash" : "", zrtp_failure_text(zrtp_failure(z)),
			zrtp_sas(z), c.sas);
	zrtp_destroy(z);
	bzrtp_destroyBzrtpContext(b, SSRC_MORE);
	bzrtp_destroyBzrtpContext(b, SSRC);
	return good;
}

/* Whether libbzrtp was built with the algorithm: it removes others from its list. */
static bool is_known(enum zrtp_kind kind, uint8_t alg)
{
	bzrtpContext_t *b = bzrtp_createBzrtpContext();
	uint8_t list[ZRTP_LIST] = {theirs[kind][alg]}, got[ZRTP_LIST] = {0};
	bool known = false;
	uint8_t n;

	bzrtp_setSupportedCryptoTypes(b, type[kind], list, 1);
	n = bzrtp_getSupportedCryptoTypes(b, type[kind], got);
	for (uint8_t i = 0; i < n; i++)
		known |= got[i] == list[0];
	bzrtp_initBzrtpContext(b, SSRC);
	bzrtp_destroyBzrtpContext(b, SSRC);
	return known;
}

int main(void)
{
	static const uint8_t count[ZRTP_KINDS] = {
		ZRTP_HASH_N, ZRTP_CIPHER_N, ZRTP_TAG_N, ZRTP_PRSH, ZRTP_SAS_N};
	struct one o = {.wrong_hash = true};
	uint32_t done = 0, failed = 0, combinations = 1;

	o.alg[ZRTP_K_AGREEMENT] = ZRTP_DH3K;
	failed += !try(&o);
	o.wrong_hash = false;
	for (int k = 0; k < ZRTP_KINDS; k++)
		combinations *= count[k];
	for (uint32_t i = 0; i < 2 * combinations; i++) {
		bool known = true;
		uint32_t rest = i / 2;

		o.we_begin = i & 1;
		for (int k = 0; k < ZRTP_KINDS; k++) {
			o.alg[k] = (uint8_t)(rest % count[k]);
			rest /= count[k];
			known = known && is_known((enum zrtp_kind)k, o.alg[k]);
		}
		if (!known)
			continue;
		done++;
		failed += !try(&o);
	}
	for (uint8_t a = 0; a < ZRTP_PRSH; a++)
		if (!is_known(ZRTP_K_AGREEMENT, a))
			printf("key agreement %u: libbzrtp does not have it\n", a);
	printf("%u exchanges and a wrong hash, %u failed\n", done, failed);
	return failed || !done;
}
