/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Retained secrets (RFC 6189 4.3): which of them both sides have, and what is kept for the next
 * call. */
#include "keying/zrtp_int.h"

#include <errno.h>

#include "base/secmem.h"

void zrtp_secrets(struct zrtp *z, const struct zrtp_secrets *s, uint64_t now_ns)
{
	if (!z->wants_secrets)
		return;
	z->wants_secrets = false;
	z->has_secrets = s != NULL;
	secmem_wipe(&z->secrets, sizeof(z->secrets));
	if (s)
		z->secrets = *s;
	zrtp_may_commit(z, now_ns);
}

static int id_of(uint8_t out[ZRTP_ID], const struct zrtp *z, const uint8_t secret[ZRTP_SECRET],
	struct zrtp_part of)
{
	return zrtp_mac(out, ZRTP_ID, (enum zrtp_hash)z->alg[ZRTP_K_HASH],
		(struct zrtp_part){secret, ZRTP_SECRET}, of);
}

int zrtp_ids(uint8_t out[ZRTP_SECRETS_N][ZRTP_ID], const struct zrtp *z, bool of_initiator)
{
	const bool has[] = {
		z->secrets.has_rs1, z->secrets.has_rs2, z->secrets.has_aux, z->secrets.has_pbx};
	const uint8_t *const secret[] = {
		z->secrets.rs1, z->secrets.rs2, z->secrets.aux, z->secrets.pbx};
	const struct zrtp_part role = {of_initiator ? "Initiator" : "Responder", 9};
	/* aux is bound to the H3 of the end that sends the identifier (RFC 6189 4.3.1). */
	const struct zrtp_msg *own = of_initiator == z->initiator ? &z->me.hello : &z->peer.hello;
	/* In place of a secret that we do not have: the same whenever the message is made. */
	static const char *const none[2][ZRTP_SECRETS_N] = {
		{"rs1r", "rs2r", "auxr", "pbxr"}, {"rs1i", "rs2i", "auxi", "pbxi"}};
	int err = 0;

	for (int i = 0; i < ZRTP_SECRETS_N && !err; i++) {
		if (!z->has_secrets || !has[i])
			err = zrtp_from_seed(out[i], ZRTP_ID, z->cfg.seed, none[of_initiator][i]);
		else
			err = id_of(out[i], z, secret[i],
				i == ZRTP_AUX ? (struct zrtp_part){own->b + HELLO_H3, ZRTP_IMAGE}
					      : role);
	}
	return err;
}

int zrtp_match(struct zrtp *z)
{
	const uint8_t(*theirs)[ZRTP_ID] = (const void *)(z->peer.dhpart.b + DHPART_IDS);
	uint8_t expected[ZRTP_SECRETS_N][ZRTP_ID];
	int err = zrtp_ids(expected, z, !z->initiator);

	z->matched = -1;
	z->matched_aux = z->matched_pbx = z->mismatched = false;
	if (err || !z->has_secrets)
		return err;
	/* The initiator's first secret goes before its second, so that both find the same one. */
	for (int i = 0; i < 2 && z->matched < 0; i++)
		for (int r = 0; r < 2 && z->matched < 0; r++) {
			int mine = z->initiator ? i : r, their = z->initiator ? r : i;

			if (secmem_equal(expected[mine], theirs[their], ZRTP_ID) &&
				(mine == ZRTP_RS1 ? z->secrets.has_rs1 : z->secrets.has_rs2))
				z->matched = (int8_t)mine;
		}
	z->matched_aux =
		z->secrets.has_aux && secmem_equal(expected[ZRTP_AUX], theirs[ZRTP_AUX], ZRTP_ID);
	z->matched_pbx =
		z->secrets.has_pbx && secmem_equal(expected[ZRTP_PBX], theirs[ZRTP_PBX], ZRTP_ID);
	z->mismatched = z->secrets.has_rs1 && z->matched < 0;
	return 0;
}

void zrtp_match_preshared(struct zrtp *z)
{
	z->matched = ZRTP_RS1;
	z->matched_aux = z->secrets.has_aux;
	z->matched_pbx = z->secrets.has_pbx;
	z->mismatched = false;
}

int zrtp_preshared(const struct zrtp *z, uint8_t key[ZRTP_DIGEST_MAX], uint8_t id[ZRTP_ID])
{
	const struct zrtp_secrets *s = &z->secrets;
	enum zrtp_hash h = (enum zrtp_hash)z->alg[ZRTP_K_HASH];
	static const uint8_t none[4], full[4] = {0, 0, 0, ZRTP_SECRET};
	const struct zrtp_part part[] = {{full, 4}, {s->rs1, ZRTP_SECRET},
		{s->has_aux ? full : none, 4}, {s->aux, s->has_aux ? ZRTP_SECRET : 0},
		{s->has_pbx ? full : none, 4}, {s->pbx, s->has_pbx ? ZRTP_SECRET : 0}};
	int err;

	if (!z->has_secrets || !s->has_rs1)
		return -ENOENT;
	err = zrtp_hash(key, h, part, ARRAY_LEN(part));
	return err ? err
		   : zrtp_mac(id, ZRTP_ID, h, (struct zrtp_part){key, zrtp_digest_len(h)},
			     (struct zrtp_part){"Prsh", 4});
}

bool zrtp_mismatched(const struct zrtp *z)
{
	return z->mismatched;
}

/* Whether this exchange is an enrolment: we asked the peer for one, or it asked us. */
static bool enrols(const struct zrtp *z)
{
	return z->cfg.enrol || z->peer_enrols;
}

int zrtp_new_secrets(const struct zrtp *z, struct zrtp_secrets *out, uint32_t *seconds)
{
	enum zrtp_agreement a = (enum zrtp_agreement)z->alg[ZRTP_K_AGREEMENT];
	/* If the peer does not have our rs1, a lost or forged packet ended the exchange before. The
	 * secret that it does have stays, or the next such packet would leave none in common. */
	const uint8_t *before = z->matched == ZRTP_RS2 ? z->secrets.rs2 : z->secrets.rs1;
	bool keeps = z->secrets.has_pbx && (z->matched_pbx || !enrols(z));

	if (z->phase != PH_OPEN || !z->confirmed || a == ZRTP_MULT)
		return -EAGAIN;
	*out = (struct zrtp_secrets){.has_rs1 = true,
		.has_rs2 = z->secrets.has_rs1,
		.has_aux = z->secrets.has_aux,
		.has_pbx = keeps || enrols(z),
		.verified = z->secrets.verified && z->matched >= 0};
	memcpy(out->rs1, z->s.rs1, ZRTP_SECRET);
	memcpy(out->rs2, before, ZRTP_SECRET);
	memcpy(out->aux, z->secrets.aux, ZRTP_SECRET);
	memcpy(out->pbx, keeps ? z->secrets.pbx : z->s.pbx, ZRTP_SECRET);
	*seconds = z->expires;
	return 0;
}
