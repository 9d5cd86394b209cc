/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of an open exchange: GoClear, SASrelay, Ping (RFC 6189 4.7.2, 5.11 to 5.16, 7.3). */
#include "keying/zrtp_int.h"

#include <errno.h>

#include "base/secmem.h"

#define BODY         40u /* of SASrelay: flags, rendering scheme, hash of the SAS */
#define RELAY_SCHEME 4u
#define RELAY_SAS    8u
#define CLEAR_DENIED 0x100u

static enum zrtp_hash hash_of(const struct zrtp *z)
{
	return (enum zrtp_hash)z->alg[ZRTP_K_HASH];
}

static int mac_of(
	uint8_t mac[ZRTP_MAC], const struct zrtp *z, bool initiator, const void *p, size_t len)
{
	const struct zrtp_part key = {z->s.mac_key[initiator], zrtp_digest_len(hash_of(z))};

	return zrtp_mac(mac, ZRTP_MAC, hash_of(z), key, (struct zrtp_part){p, len});
}

bool zrtp_is_open(const struct zrtp *z)
{
	return z->phase == PH_OPEN || (z->phase == PH_RESTORED && z->with_keys);
}

/* The exchange was completed, and both sides have its ZRTP keys. */
static bool was_open(const struct zrtp *z)
{
	return zrtp_is_open(z) || (z->phase == PH_CLEAR && (!z->restored || z->with_keys));
}

/* --- GoClear ---------------------------------------------------------------------------------- */

int zrtp_clear(struct zrtp *z, uint64_t now_ns)
{
	uint8_t mac[ZRTP_MAC];

	if (z->phase != PH_OPEN)
		return -EAGAIN;
	if (!z->peer_allows_clear)
		return -EPERM;
	if (mac_of(mac, z, z->initiator, "GoClear ", 8) || zrtp_renew_session(z))
		return -EAGAIN;
	zrtp_msg_begin(&z->relay, ZRTP_M_GOCLEAR);
	zrtp_msg_end(&z->relay, ZRTP_MAC);
	zrtp_msg_add(&z->relay, mac, ZRTP_MAC);
	zrtp_repeat(z, &z->relay, false, now_ns);
	z->phase = PH_CLEAR;
	return 0;
}

static int on_goclear(struct zrtp *z, const uint8_t *m)
{
	uint8_t mac[ZRTP_MAC];

	if (!was_open(z))
		return zrtp_drop(z, ZRTP_DROP_STATE);
	if (mac_of(mac, z, !z->initiator, "GoClear ", 8) ||
		!secmem_equal(mac, m + ZRTP_PREAMBLE, ZRTP_MAC))
		return zrtp_drop(z, ZRTP_DROP_MAC);
	if (!z->cfg.may_clear || zrtp_asks_enrol(z)) {
		zrtp_reply_error(z, CLEAR_DENIED);
		return 0;
	}
	if (z->phase != PH_CLEAR && zrtp_renew_session(z))
		return zrtp_drop(z, ZRTP_DROP_STATE);
	z->phase = PH_CLEAR;
	zrtp_reply_empty(z, ZRTP_M_CLEAR_ACK);
	return 0;
}

/* --- SASrelay --------------------------------------------------------------------------------- */

/* They replace those of our Confirm (5.13). The terminal may end SRTP with us as before: without A,
 * it would not any more. */
static uint32_t relay_flags(const struct zrtp *z, const struct zrtp_far_sas *far)
{
	uint32_t flags = z->cfg.disclose || far->discloses ? FLAG_DISCLOSE : 0;

	if (z->cfg.may_clear && !zrtp_asks_enrol(z))
		flags |= FLAG_CLEAR;
	return flags | (far->verified ? FLAG_VERIFIED : 0);
}

int zrtp_relay_sas(struct zrtp *z, const struct zrtp_far_sas *far, uint64_t now_ns)
{
	uint8_t body[BODY] = {0}, iv[16], mac[ZRTP_MAC];

	if (!zrtp_is_open(z) || secmem_random(iv, sizeof(iv)))
		return -EAGAIN;
	if (!z->matched_pbx)
		return -EPERM;
	put_be32(body, relay_flags(z, far));
	memcpy(body + RELAY_SCHEME, zrtp_alg_name(ZRTP_K_SAS, far->kind), 4);
	memcpy(body + RELAY_SAS, far->hash, 32);
	if (zrtp_cfb(body, BODY, (enum zrtp_cipher)z->alg[ZRTP_K_CIPHER], z->s.key[z->initiator],
		    iv, true) ||
		mac_of(mac, z, z->initiator, body, BODY))
		return -EAGAIN;
	zrtp_msg_begin(&z->relay, ZRTP_M_SASRELAY);
	zrtp_msg_add(&z->relay, mac, sizeof(mac));
	zrtp_msg_add(&z->relay, iv, sizeof(iv));
	zrtp_msg_add(&z->relay, body, sizeof(body));
	zrtp_msg_end(&z->relay, 0);
	zrtp_repeat(z, &z->relay, false, now_ns);
	return 0;
}

/* As a terminal. Only an enrolled one uses the SAS; but each one acknowledges it (5.13), because a
 * gateway tells others how SAS are shown, with zeros in place of the hash. */
static int on_sasrelay(struct zrtp *z, const uint8_t *m, uint32_t len)
{
	uint8_t body[ZRTP_MESSAGE_MAX], mac[ZRTP_MAC];
	uint32_t n = len - CONFIRM_BODY;

	if (!zrtp_is_open(z))
		return zrtp_drop(z, ZRTP_DROP_STATE);
	if (mac_of(mac, z, !z->initiator, m + CONFIRM_BODY, n) ||
		!secmem_equal(mac, m + CONFIRM_MAC, ZRTP_MAC))
		return zrtp_drop(z, ZRTP_DROP_MAC);
	memcpy(body, m + CONFIRM_BODY, n);
	if (zrtp_cfb(body, n, (enum zrtp_cipher)z->alg[ZRTP_K_CIPHER], z->s.key[!z->initiator],
		    m + CONFIRM_IV, false))
		return zrtp_drop(z, ZRTP_DROP_MAC);
	z->peer_discloses |= be32(body) & FLAG_DISCLOSE;
	if (z->matched_pbx && zrtp_peer_is_mitm(z)) {
		memcpy(z->relayed, body + RELAY_SAS, sizeof(z->relayed));
		z->was_relayed = true;
	}
	zrtp_reply_empty(z, ZRTP_M_RELAY_ACK);
	return 0;
}

const uint8_t *zrtp_relayed_sas(const struct zrtp *z)
{
	return z->was_relayed ? z->relayed : NULL;
}

bool zrtp_enrolled(const struct zrtp *z)
{
	return (z->phase == PH_OPEN || z->phase == PH_CONFIRM2 || z->phase == PH_CLEAR) &&
		z->matched_pbx;
}

bool zrtp_peer_discloses(const struct zrtp *z)
{
	return z->peer_discloses;
}

enum zrtp_sas zrtp_sas_kind(const struct zrtp *z)
{
	return (enum zrtp_sas)z->alg[ZRTP_K_SAS];
}

bool zrtp_peer_is_mitm(const struct zrtp *z)
{
	return z->peer_known && z->peer.hello.b[HELLO_FLAGS] & HELLO_MITM;
}

/* --- Ping ------------------------------------------------------------------------------------- */

static void on_ping(struct zrtp *z, const uint8_t *m)
{
	struct zrtp_msg out;

	zrtp_msg_begin(&out, ZRTP_M_PING_ACK);
	zrtp_msg_add(&out, "1.10", 4);
	zrtp_msg_add(&out, z->image[3], 8); /* names our end, as its H3 is unique */
	zrtp_msg_add(&out, m + ZRTP_PREAMBLE + 4, 8);
	zrtp_msg_add32(&out, z->peer_ssrc);
	zrtp_msg_end(&out, 0);
	zrtp_reply(z, &out);
}

/* Anybody can forge it, and it may be late: it must not end the repetition of another message. */
static int on_ack(struct zrtp *z, enum zrtp_message type)
{
	const char *of = type == ZRTP_M_CLEAR_ACK ? "GoClear " : "SASrelay";

	if (!was_open(z) || z->timer.msg != &z->relay || memcmp(z->relay.b + 4, of, 8) != 0)
		return zrtp_drop(z, ZRTP_DROP_STATE);
	zrtp_acked(z);
	return 0;
}

int zrtp_on_after(struct zrtp *z, enum zrtp_message type, const uint8_t *m, uint32_t len)
{
	switch (type) {
	case ZRTP_M_GOCLEAR:
		return on_goclear(z, m);
	case ZRTP_M_SASRELAY:
		return on_sasrelay(z, m, len);
	case ZRTP_M_CLEAR_ACK:
	case ZRTP_M_RELAY_ACK:
		return on_ack(z, type);
	case ZRTP_M_PING:
		on_ping(z, m);
		return 0;
	case ZRTP_M_PING_ACK:
		return 0;
	default:
		return zrtp_drop(z, ZRTP_DROP_STATE);
	}
}
