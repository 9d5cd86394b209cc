/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Further streams of a terminal: they use the secret of its first exchange, which may have ended
 * with an earlier process (RFC 6189 4.4.3). */
#include "keying/zrtp_int.h"

#include <errno.h>

/* The exchange has a secret for others. */
static bool has_secret(const struct zrtp *z)
{
	return z->phase == PH_OPEN || z->phase == PH_CLEAR || z->phase == PH_RESTORED;
}

bool zrtp_is_multi(const struct zrtp *z)
{
	return z->multi && z->alg[ZRTP_K_AGREEMENT] == ZRTP_MULT;
}

bool zrtp_is_restored(const struct zrtp *z)
{
	return z->restored;
}

/* The hash that the secret was made by. */
static enum zrtp_hash hash_of(const struct zrtp *z)
{
	return zrtp_is_multi(z) ? z->multi_hash : (enum zrtp_hash)z->alg[ZRTP_K_HASH];
}

int zrtp_multi(struct zrtp *z, const struct zrtp *first)
{
	if (!has_secret(first) || z->phase != PH_IDLE)
		return -EAGAIN;
	memcpy(z->multi_sess, first->s.sess, sizeof(z->multi_sess));
	z->multi_hash = hash_of(first);
	z->multi = true;
	if (z->further)
		zrtp_further_of(z, first);
	return 0;
}

static void put_keys(struct zrtp_secret *out, const struct zrtp *z)
{
	_Static_assert(sizeof(out->mac_key) == sizeof(z->s.mac_key), "length of a hash");
	_Static_assert(sizeof(out->key) == sizeof(z->s.key), "length of a key");

	out->with_keys = true;
	out->initiator = z->initiator;
	out->enrolled = z->matched_pbx;
	out->mitm = zrtp_peer_is_mitm(z);
	out->cleared = z->phase == PH_CLEAR;
	memcpy(out->mac_key, z->s.mac_key, sizeof(out->mac_key));
	memcpy(out->key, z->s.key, sizeof(out->key));
}

int zrtp_secret(const struct zrtp *z, struct zrtp_secret *out)
{
	if (!has_secret(z) && z->phase != PH_CONFIRM2)
		return -EAGAIN;
	*out = (struct zrtp_secret){.known = true,
		.hash = (uint8_t)hash_of(z),
		.cipher = z->alg[ZRTP_K_CIPHER],
		.tag = z->alg[ZRTP_K_TAG],
		.passive = z->peer.hello.b[HELLO_FLAGS] & HELLO_PASSIVE};
	memcpy(out->sess, z->s.sess, sizeof(out->sess));
	memcpy(out->zid, z->peer.zid, sizeof(out->zid));
	memcpy(out->h3, z->peer.hello.b + HELLO_H3, sizeof(out->h3));
	if (!z->restored || z->with_keys)
		put_keys(out, z);
	return 0;
}

static void take_keys(struct zrtp *z, const struct zrtp_secret *s)
{
	z->with_keys = true;
	z->initiator = s->initiator;
	z->matched_pbx = s->enrolled;
	memcpy(z->s.mac_key, s->mac_key, sizeof(z->s.mac_key));
	memcpy(z->s.key, s->key, sizeof(z->s.key));
}

int zrtp_restore(struct zrtp *z, const struct zrtp_secret *s)
{
	if (z->phase != PH_IDLE)
		return -EAGAIN;
	if (!s->known || s->hash >= ZRTP_HASH_N || s->cipher >= ZRTP_CIPHER_N ||
		s->tag >= ZRTP_TAG_N)
		return -EINVAL;
	memcpy(z->s.sess, s->sess, sizeof(z->s.sess));
	memcpy(z->peer.zid, s->zid, sizeof(z->peer.zid));
	memcpy(z->peer.hello.b + HELLO_H3, s->h3, sizeof(s->h3));
	z->peer.hello.b[HELLO_FLAGS] =
		(uint8_t)((s->passive ? HELLO_PASSIVE : 0) | (s->mitm ? HELLO_MITM : 0));
	z->peer_known = true;
	z->alg[ZRTP_K_HASH] = s->hash;
	z->alg[ZRTP_K_CIPHER] = s->cipher;
	z->alg[ZRTP_K_TAG] = s->tag;
	z->restored = true;
	z->phase = s->cleared ? PH_CLEAR : PH_RESTORED;
	if (s->with_keys)
		take_keys(z, s);
	return 0;
}
