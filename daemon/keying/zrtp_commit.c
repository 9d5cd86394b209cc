/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commit (RFC 6189 5.4): one side becomes the initiator, and chooses the algorithms. */
#include "keying/zrtp_int.h"

#include <errno.h>

#include "base/secmem.h"
#include "keying/zrtp_agree.h"

#define NONCE 16u

static bool by_public_keys(enum zrtp_agreement a)
{
	return zrtp_value_len(a) != 0;
}

static uint32_t commit_len(enum zrtp_agreement a)
{
	return COMMIT_HVI +
		(a == ZRTP_MULT                  ? NONCE
				: a == ZRTP_PRSH ? NONCE + ZRTP_ID
						 : 32) +
		ZRTP_MAC;
}

static enum zrtp_agreement agreement(const struct zrtp *z)
{
	return (enum zrtp_agreement)z->alg[ZRTP_K_AGREEMENT];
}

/* --- Our Commit ------------------------------------------------------------------------------- */

static int add_proof(struct zrtp *z, struct zrtp_msg *m)
{
	uint8_t hvi[32], key[ZRTP_DIGEST_MAX], id[ZRTP_ID];
	int err;

	if (by_public_keys(agreement(z))) {
		err = zrtp_dhpart_make(z, ZRTP_M_DHPART2);
		err = err ? err
			  : zrtp_hvi(hvi, (enum zrtp_hash)z->alg[ZRTP_K_HASH], &z->me.dhpart,
				    &z->peer.hello);
		if (!err)
			zrtp_msg_add(m, hvi, sizeof(hvi));
		return err;
	}
	err = secmem_random(z->nonce, NONCE);
	if (err)
		return err;
	/* A peer that commits, too, has the greater nonce and stays the initiator (4.2): its Hello
	 * may have been lost, and we would need it for a Commit of ours. */
	if (z->further)
		memset(z->nonce, 0, 4);
	zrtp_msg_add(m, z->nonce, NONCE);
	if (agreement(z) == ZRTP_PRSH) {
		err = zrtp_preshared(z, key, id);
		secmem_wipe(key, sizeof(key));
		if (!err)
			zrtp_msg_add(m, id, sizeof(id));
	}
	return err;
}

int zrtp_commit_make(struct zrtp *z)
{
	struct zrtp_msg *m = &z->me.commit;
	int err;

	z->stale = false;
	zrtp_msg_begin(m, ZRTP_M_COMMIT);
	zrtp_msg_add(m, z->image[2], ZRTP_IMAGE);
	zrtp_msg_add(m, z->me.zid, ZRTP_ZID);
	for (uint32_t k = 0; k < ZRTP_KINDS; k++)
		zrtp_msg_add(m, zrtp_alg_name((enum zrtp_kind)k, z->alg[k]), 4);
	err = add_proof(z, m);
	return err ? err : zrtp_add_mac(m, z->image[1]);
}

void zrtp_may_commit(struct zrtp *z, uint64_t now_ns)
{
	if (z->phase != PH_HELLO || !z->hello_acked || !z->peer_known || z->wants_secrets ||
		z->cfg.passive)
		return;
	z->initiator = true;
	zrtp_choose(z);
	if (zrtp_commit_make(z)) {
		zrtp_fail(z, ZRTP_FAIL_INTERNAL);
		return;
	}
	z->phase = PH_COMMIT;
	zrtp_repeat(z, &z->me.commit, false, now_ns);
}

/* --- The peer's ------------------------------------------------------------------------------- */

/* Both sent one: that with the greater value stays (4.2). One with public keys stays before one
 * without. In preshared mode that of a man in the middle is discarded. */
static bool ours_stays(const struct zrtp *z, const uint8_t *m, enum zrtp_agreement theirs)
{
	bool we = by_public_keys(agreement(z)), they = by_public_keys(theirs);

	if (we != they)
		return we;
	if (agreement(z) == ZRTP_PRSH && theirs == ZRTP_PRSH &&
		z->cfg.not_mitm != !zrtp_peer_is_mitm(z))
		return z->cfg.not_mitm;
	return memcmp(z->me.commit.b + COMMIT_HVI, m + COMMIT_HVI, we ? 32 : NONCE) > 0;
}

uint32_t zrtp_commit_algorithms(uint8_t alg[ZRTP_KINDS], const struct zrtp *z, const uint8_t *m)
{
	static const uint8_t code[ZRTP_KINDS] = {0x51, 0x52, 0x54, 0x53, 0x55};

	for (uint32_t k = 0; k < ZRTP_KINDS; k++) {
		int a = zrtp_alg_find(z, (enum zrtp_kind)k, m + COMMIT_ALGS + 4 * k);

		if (a < 0)
			return code[k];
		alg[k] = (uint8_t)a;
	}
	return 0;
}

/* Whether we have the secret that a Commit with z->alg refers to, if it needs one. */
static bool has_secret(const struct zrtp *z, const uint8_t *m)
{
	uint8_t key[ZRTP_DIGEST_MAX], id[ZRTP_ID];
	int err;

	if (by_public_keys(agreement(z)))
		return true;
	if (agreement(z) == ZRTP_MULT)
		return z->multi && z->alg[ZRTP_K_HASH] == z->multi_hash;
	err = zrtp_preshared(z, key, id);
	secmem_wipe(key, sizeof(key));
	return !err && secmem_equal(id, m + COMMIT_HVI + NONCE, ZRTP_ID);
}

/* The Commit refers to a secret that we do not have. Our Commit with a public value takes
 * precedence (4.2), and the Commit proves that its sender received our Hello. If we never commit,
 * an Error makes the sender commit again. In PH_DHPART1 the answered Commit may be the peer's, and
 * this one a stranger's. */
static int ask_for_value(struct zrtp *z, uint64_t now_ns)
{
	if (z->cfg.passive || z->multi || z->phase == PH_DHPART1) {
		zrtp_reply_error(z, ERROR_NO_SECRET);
		return 0;
	}
	z->needs_values = true;
	z->hello_acked = true;
	z->phase = PH_HELLO;
	zrtp_may_commit(z, now_ns);
	return 0;
}

/* As responder. */
static int answer(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	int err;

	z->initiator = false;
	if (z->phase != PH_DHPART1) { /* strangers' Commits must not extend the wait */
		zrtp_stop(z);
		zrtp_wait(z, now_ns);
	}
	memcpy(z->peer.commit.b, m, len);
	z->peer.commit.len = (uint16_t)len;
	if (by_public_keys(agreement(z))) {
		err = zrtp_dhpart_make(z, ZRTP_M_DHPART1);
		z->phase = PH_DHPART1;
		if (!err)
			zrtp_send(z, &z->me.dhpart);
	} else {
		memcpy(z->nonce, m + COMMIT_HVI, NONCE);
		if (agreement(z) == ZRTP_PRSH)
			zrtp_match_preshared(z);
		err = zrtp_derive(z, NULL, 0);
		err = err ? err : zrtp_confirm_make(z);
		z->phase = PH_CONFIRM1;
		if (!err)
			zrtp_send(z, &z->confirm);
	}
	if (err)
		zrtp_fail(z, ZRTP_FAIL_INTERNAL);
	return 0;
}

/* The Hello is that of the Commit. In PH_DHPART1 the Commit that was answered is remembered first:
 * the DHPart2 decides which of them is the peer's. */
static bool fits_a_hello(struct zrtp *z, const uint8_t *m)
{
	if (z->phase == PH_DHPART1)
		zrtp_rivals_commit(z);
	return zrtp_hello_of(z, m + COMMIT_H2) &&
		memcmp(m + COMMIT_ZID, z->peer.zid, ZRTP_ZID) == 0;
}

int zrtp_on_commit(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	const struct zrtp_msg *answered =
		zrtp_waits_for_all(z) ? zrtp_rivals_answer(z, m, len) : NULL;
	bool same = z->peer.commit.len == len && memcmp(z->peer.commit.b, m, len) == 0;
	uint8_t alg[ZRTP_KINDS], was[ZRTP_KINDS];
	uint32_t code;

	if (same && (z->phase == PH_DHPART1 || z->phase == PH_CONFIRM1)) {
		zrtp_send(z, z->phase == PH_DHPART1 ? &z->me.dhpart : &z->confirm);
		return 0;
	}
	if (answered) {
		zrtp_send(z, answered);
		return 0;
	}
	if (zrtp_yield(z, m + COMMIT_H2, now_ns)) {
		if (z->phase == PH_CONFIRM1)
			zrtp_repeat(z, &z->me.hello, true, now_ns);
		z->phase = z->phase == PH_CONFIRM1 ? PH_HELLO : PH_COMMIT;
	}
	/* In PH_DHPART1 its sender has found that its first Commit answered a stranger's Hello, or
	 * one of the two is a stranger's. */
	if (!zrtp_waits_for_all(z) || z->wants_secrets)
		return zrtp_drop(z, ZRTP_DROP_STATE);
	code = zrtp_commit_algorithms(alg, z, m);
	if (code && (z->phase == PH_DHPART1 || zrtp_rivals_has_hello(z, m + COMMIT_H2))) {
		/* The Commit or the Hello that is current may be the peer's. */
		zrtp_reply_error(z, code);
		return zrtp_drop(z, ZRTP_DROP_MESSAGE);
	}
	if (z->phase == PH_COMMIT && zrtp_rivals_has_hello(z, m + COMMIT_H2))
		zrtp_rivals_own_commit(z);
	if (!fits_a_hello(z, m))
		return zrtp_drop(z, ZRTP_DROP_CHAIN);
	if (z->wants_secrets) /* it fits another Hello; the peer repeats it */
		return 0;
	if (code) {
		zrtp_refuse(z, ZRTP_FAIL_ALGORITHM, code, now_ns);
		return 0;
	}
	if (len != commit_len((enum zrtp_agreement)alg[ZRTP_K_AGREEMENT]))
		return zrtp_drop(z, ZRTP_DROP_MESSAGE);
	if (z->phase == PH_COMMIT && ours_stays(z, m, (enum zrtp_agreement)alg[ZRTP_K_AGREEMENT])) {
		if (z->stale) {
			z->phase = PH_HELLO;
			zrtp_may_commit(z, now_ns);
		}
		return 0;
	}
	memcpy(was, z->alg, sizeof(was));
	memcpy(z->alg, alg, sizeof(alg));
	if (!has_secret(z, m)) {
		memcpy(z->alg, was, sizeof(was));
		return ask_for_value(z, now_ns);
	}
	return answer(z, m, len, now_ns);
}
