/* SPDX-License-Identifier: GPL-2.0-or-later */
/* s0, and all that follows from it: SRTP keys, the SAS, the keys of Confirm, retained secrets (RFC
 * 6189 4.4.1.4, 4.5). */
#include "keying/zrtp_int.h"

#include "base/secmem.h"
#include "keying/zrtp_agree.h"

#define SALT 14u

static const uint8_t *zid(const struct zrtp *z, bool initiator)
{
	return z->initiator == initiator ? z->me.zid : z->peer.zid;
}

static int total_hash(uint8_t *out, const struct zrtp *z)
{
	const struct zrtp_party *i = z->initiator ? &z->me : &z->peer;
	const struct zrtp_party *r = z->initiator ? &z->peer : &z->me;
	const struct zrtp_part part[] = {{r->hello.b, r->hello.len}, {i->commit.b, i->commit.len},
		{r->dhpart.b, r->dhpart.len}, {i->dhpart.b, i->dhpart.len}};
	bool with_values = zrtp_value_len((enum zrtp_agreement)z->alg[ZRTP_K_AGREEMENT]) != 0;

	return zrtp_hash(out, (enum zrtp_hash)z->alg[ZRTP_K_HASH], part, with_values ? 4 : 2);
}

/* s1, s2 and s3: those that both sides have. */
static void shared(struct zrtp_part out[3], const struct zrtp *z)
{
	out[0] = out[1] = out[2] = (struct zrtp_part){"", 0};
	if (z->matched >= 0)
		out[0] = (struct zrtp_part){
			z->matched == ZRTP_RS1 ? z->secrets.rs1 : z->secrets.rs2, ZRTP_SECRET};
	if (z->matched_aux)
		out[1] = (struct zrtp_part){z->secrets.aux, ZRTP_SECRET};
	if (z->matched_pbx)
		out[2] = (struct zrtp_part){z->secrets.pbx, ZRTP_SECRET};
}

static int s0_of_values(uint8_t *s0, const struct zrtp *z, struct zrtp_part result,
	const uint8_t *total, uint32_t n)
{
	static const uint8_t one[4] = {0, 0, 0, 1};
	uint8_t len[3][4];
	struct zrtp_part s[3];

	shared(s, z);
	for (int i = 0; i < 3; i++)
		put_be32(len[i], (uint32_t)s[i].len);
	const struct zrtp_part part[] = {{one, 4}, result, {"ZRTP-HMAC-KDF", 13},
		{zid(z, true), ZRTP_ZID}, {zid(z, false), ZRTP_ZID}, {total, n}, {len[0], 4}, s[0],
		{len[1], 4}, s[1], {len[2], 4}, s[2]};

	return zrtp_hash(s0, (enum zrtp_hash)z->alg[ZRTP_K_HASH], part, ARRAY_LEN(part));
}

static int s0_of_secret(uint8_t *s0, const struct zrtp *z, struct zrtp_kdf k)
{
	bool multi = z->alg[ZRTP_K_AGREEMENT] == ZRTP_MULT;
	uint8_t key[ZRTP_DIGEST_MAX], id[ZRTP_ID];
	int err = multi ? 0 : zrtp_preshared(z, key, id);

	k.key = (struct zrtp_part){multi ? z->multi_sess : key, zrtp_digest_len(k.h)};
	err = err ? err : zrtp_kdf(s0, k.key.len, &k, multi ? "ZRTP MSK" : "ZRTP PSK");
	secmem_wipe(key, sizeof(key));
	return err;
}

static int derive_all(struct zrtp *z, const struct zrtp_kdf *k)
{
	uint32_t digest = zrtp_digest_len(k->h);
	uint32_t key = zrtp_key_len((enum zrtp_cipher)z->alg[ZRTP_K_CIPHER]);
	struct zrtp_session *s = &z->s;
	const struct {
		uint8_t *out;
		uint32_t len;
		const char *label;
	} row[] = {
		{s->srtp_key[1], key, "Initiator SRTP master key"},
		{s->srtp_salt[1], SALT, "Initiator SRTP master salt"},
		{s->srtp_key[0], key, "Responder SRTP master key"},
		{s->srtp_salt[0], SALT, "Responder SRTP master salt"},
		{s->mac_key[1], digest, "Initiator HMAC key"},
		{s->mac_key[0], digest, "Responder HMAC key"},
		{s->key[1], key, "Initiator ZRTP key"},
		{s->key[0], key, "Responder ZRTP key"},
		{s->sas_hash, sizeof(s->sas_hash), "SAS"},
		{s->rs1, ZRTP_SECRET, "retained secret"},
	};
	int err = 0;

	for (uint32_t i = 0; i < ARRAY_LEN(row) && !err; i++)
		err = zrtp_kdf(row[i].out, row[i].len, k, row[i].label);
	if (err)
		return err;
	if (z->alg[ZRTP_K_AGREEMENT] != ZRTP_MULT)
		return zrtp_kdf(s->sess, digest, k, "ZRTP Session Key");
	/* Streams in Multistream mode have the session key of the first one. */
	memcpy(s->sess, z->multi_sess, sizeof(s->sess));
	return 0;
}

/* The secret of an enrolled terminal (7.3.1). */
static int derive_pbx(struct zrtp *z)
{
	uint8_t zids[2 * ZRTP_ZID];
	struct zrtp_kdf k = {
		.h = (enum zrtp_hash)z->alg[ZRTP_K_HASH], .context = {zids, sizeof(zids)}};

	k.key = (struct zrtp_part){z->s.sess, zrtp_digest_len(k.h)};
	memcpy(zids, zid(z, true), ZRTP_ZID);
	memcpy(zids + ZRTP_ZID, zid(z, false), ZRTP_ZID);
	return zrtp_kdf(z->s.pbx, ZRTP_SECRET, &k, "Trusted MiTM key");
}

int zrtp_renew_session(struct zrtp *z)
{
	uint8_t zids[2 * ZRTP_ZID], sess[ZRTP_DIGEST_MAX];
	struct zrtp_kdf k = {
		.h = (enum zrtp_hash)z->alg[ZRTP_K_HASH], .context = {zids, sizeof(zids)}};
	int err;

	k.key = (struct zrtp_part){z->s.sess, zrtp_digest_len(k.h)};
	memcpy(zids, zid(z, true), ZRTP_ZID);
	memcpy(zids + ZRTP_ZID, zid(z, false), ZRTP_ZID);
	err = zrtp_kdf(sess, k.key.len, &k, "New ZRTP Session");
	if (!err)
		memcpy(z->s.sess, sess, k.key.len);
	secmem_wipe(sess, sizeof(sess));
	return err;
}

int zrtp_derive(struct zrtp *z, const uint8_t *result, uint32_t result_len)
{
	uint8_t context[2 * ZRTP_ZID + ZRTP_DIGEST_MAX], s0[ZRTP_DIGEST_MAX];
	struct zrtp_kdf k = {.h = (enum zrtp_hash)z->alg[ZRTP_K_HASH]};
	uint32_t digest = zrtp_digest_len(k.h);
	uint8_t *total = context + 2 * ZRTP_ZID;
	int err = total_hash(total, z);

	memcpy(context, zid(z, true), ZRTP_ZID);
	memcpy(context + ZRTP_ZID, zid(z, false), ZRTP_ZID);
	k.context = (struct zrtp_part){context, 2 * ZRTP_ZID + digest};
	if (!err && result_len)
		err = s0_of_values(s0, z, (struct zrtp_part){result, result_len}, total, digest);
	else if (!err)
		err = s0_of_secret(s0, z, k);
	k.key = (struct zrtp_part){s0, digest};
	err = err ? err : derive_all(z, &k);
	err = err ? err : derive_pbx(z);
	if (!err)
		zrtp_render(z->s.sas, z->s.sas_hash, (enum zrtp_sas)z->alg[ZRTP_K_SAS]);
	secmem_wipe(s0, sizeof(s0));
	return err;
}
