/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Confirm1 and Confirm2 (RFC 6189 5.7): both prove the keys, and the rest of their hash chain. */
#include "keying/zrtp_int.h"

#include <errno.h>

#include "base/secmem.h"
#include "keying/zrtp_agree.h"

#define BODY         40u /* H0, flags, cache expiration interval; without signature */
#define BODY_FLAGS   32u
#define BODY_EXPIRES 36u
/* 9 bits, above the flags. We ask for no signature, and check none. */
#define SIGNATURE_WORDS 511u
#define FLAG_ENROL      8u

static enum zrtp_hash hash_of(const struct zrtp *z)
{
	return (enum zrtp_hash)z->alg[ZRTP_K_HASH];
}

static int confirm_mac(
	uint8_t mac[ZRTP_MAC], const struct zrtp *z, bool initiator, const uint8_t *p, size_t len)
{
	const struct zrtp_part key = {z->s.mac_key[initiator], zrtp_digest_len(hash_of(z))};

	return zrtp_mac(mac, ZRTP_MAC, hash_of(z), key, (struct zrtp_part){p, len});
}

bool zrtp_asks_enrol(const struct zrtp *z)
{
	return !z->cfg.not_mitm && z->cfg.cache && z->cfg.enrol && !z->matched_pbx;
}

/* For how long the peer should keep its secret: not at all if we keep none (4.9.1). A further
 * stream has no retained secret. */
static uint32_t lifetime(const struct zrtp *z)
{
	return z->cfg.cache || z->alg[ZRTP_K_AGREEMENT] == ZRTP_MULT ? UINT32_MAX : 0;
}

int zrtp_confirm_make(struct zrtp *z)
{
	uint8_t body[BODY] = {0}, iv[16], mac[ZRTP_MAC];
	uint32_t flags = z->cfg.disclose ? FLAG_DISCLOSE : 0;
	int err = secmem_random(iv, sizeof(iv));

	if (z->matched >= 0 && z->secrets.verified)
		flags |= FLAG_VERIFIED;
	if (zrtp_asks_enrol(z))
		flags |= FLAG_ENROL;
	else if (z->cfg.may_clear)
		flags |= FLAG_CLEAR;
	memcpy(body, z->image[0], ZRTP_IMAGE);
	put_be32(body + BODY_FLAGS, flags);
	put_be32(body + BODY_EXPIRES, lifetime(z));
	err = err ? err
		  : zrtp_cfb(body, BODY, (enum zrtp_cipher)z->alg[ZRTP_K_CIPHER],
			    z->s.key[z->initiator], iv, true);
	err = err ? err : confirm_mac(mac, z, z->initiator, body, BODY);
	if (err)
		return err;
	zrtp_msg_begin(&z->confirm, z->initiator ? ZRTP_M_CONFIRM2 : ZRTP_M_CONFIRM1);
	zrtp_msg_add(&z->confirm, mac, sizeof(mac));
	zrtp_msg_add(&z->confirm, iv, sizeof(iv));
	zrtp_msg_add(&z->confirm, body, sizeof(body));
	zrtp_msg_end(&z->confirm, 0);
	return 0;
}

/* H0 ends the chain. Without public keys there was no DHPart, and it proves the messages before. */
static bool chain_ends(struct zrtp *z, const uint8_t *h0)
{
	uint8_t h1[ZRTP_IMAGE], h2[ZRTP_IMAGE];

	if (zrtp_value_len((enum zrtp_agreement)z->alg[ZRTP_K_AGREEMENT]))
		return zrtp_image_fits(h0, z->peer.dhpart.b + DHPART_H1) &&
			zrtp_has_mac_of(&z->peer.dhpart, h0);
	if (zrtp_hash(h1, ZRTP_S256, &(struct zrtp_part){h0, ZRTP_IMAGE}, 1) ||
		zrtp_hash(h2, ZRTP_S256, &(struct zrtp_part){h1, ZRTP_IMAGE}, 1))
		return false;
	if (!z->initiator)
		return secmem_equal(h2, z->peer.commit.b + COMMIT_H2, ZRTP_IMAGE) &&
			zrtp_has_mac_of(&z->peer.commit, h1);
	return zrtp_image_fits(h2, z->peer.hello.b + HELLO_H3) &&
		zrtp_has_mac_of(&z->peer.hello, h2);
}

/* Without public keys an initiator derives its keys when the responder has accepted. */
static bool expects(struct zrtp *z, bool from_initiator)
{
	bool without = !zrtp_value_len((enum zrtp_agreement)z->alg[ZRTP_K_AGREEMENT]);

	if (from_initiator)
		return z->phase == PH_CONFIRM1;
	if (z->phase == PH_COMMIT && without)
		return zrtp_derive(z, NULL, 0) == 0;
	return z->phase == PH_DHPART2;
}

static int confirmed(struct zrtp *z, const uint8_t *body, uint64_t now_ns)
{
	uint32_t flags = be32(body + BODY_FLAGS);

	zrtp_rivals_free(z);
	z->failure = ZRTP_FAIL_NONE;
	if (z->alg[ZRTP_K_AGREEMENT] == ZRTP_PRSH)
		zrtp_match_preshared(z);
	z->peer_verified = flags & FLAG_VERIFIED;
	z->peer_allows_clear = flags & FLAG_CLEAR && !(flags & FLAG_ENROL);
	z->peer_discloses = flags & FLAG_DISCLOSE;
	z->peer_enrols = flags & FLAG_ENROL && zrtp_peer_is_mitm(z) && z->cfg.not_mitm;
	z->expires = be32(body + BODY_EXPIRES);
	if (!z->initiator) {
		zrtp_stop(z);
		z->phase = PH_OPEN;
		z->confirmed = true;
		zrtp_reply_empty(z, ZRTP_M_CONF2_ACK);
	} else if (zrtp_confirm_make(z)) {
		zrtp_fail(z, ZRTP_FAIL_INTERNAL);
	} else {
		z->phase = PH_CONFIRM2;
		zrtp_repeat(z, &z->confirm, false, now_ns);
	}
	return 0;
}

int zrtp_confirm_try(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	const bool from_initiator = m[11] == '2';
	uint8_t body[ZRTP_MESSAGE_MAX], mac[ZRTP_MAC];
	uint32_t n = len - CONFIRM_BODY;
	int res = 0;

	if (confirm_mac(mac, z, from_initiator, m + CONFIRM_BODY, n) ||
		!secmem_equal(mac, m + CONFIRM_MAC, ZRTP_MAC))
		return 1 + ZRTP_DROP_MAC;
	memcpy(body, m + CONFIRM_BODY, n);
	if (zrtp_cfb(body, n, (enum zrtp_cipher)z->alg[ZRTP_K_CIPHER], z->s.key[from_initiator],
		    m + CONFIRM_IV, false))
		res = 1 + ZRTP_DROP_MAC;
	else if (n != BODY + 4 * (be32(body + BODY_FLAGS) >> 8 & SIGNATURE_WORDS))
		res = 1 + ZRTP_DROP_MESSAGE;
	else if (!chain_ends(z, body))
		res = 1 + ZRTP_DROP_CHAIN;
	else
		res = confirmed(z, body, now_ns);
	secmem_wipe(body, sizeof(body));
	return res;
}

int zrtp_on_confirm(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	const bool from_initiator = m[11] == '2';
	int res;

	if (zrtp_is_open(z) && from_initiator && !z->initiator) {
		/* Our Conf2ACK was lost. Whatever it says, nothing changes. */
		zrtp_reply_empty(z, ZRTP_M_CONF2_ACK);
		return 0;
	}
	res = from_initiator == z->initiator || !expects(z, from_initiator)
		? 1 + ZRTP_DROP_STATE
		: zrtp_confirm_try(z, m, len, now_ns);
	if (!res || zrtp_rivals_confirm(z, m, len, now_ns))
		return 0;
	return zrtp_drop(z, (enum zrtp_drop)(res - 1));
}
