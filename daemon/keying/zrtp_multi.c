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
	return z->phase == PH_RESTORED;
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
	memcpy(z->s.sess, first->s.sess, sizeof(z->s.sess));
	z->multi_hash = hash_of(first);
	z->multi = true;
	if (z->further)
		zrtp_further_of(z, first);
	return 0;
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
	return 0;
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
	z->peer.hello.b[HELLO_FLAGS] = s->passive ? HELLO_PASSIVE : 0;
	z->peer_known = true;
	z->alg[ZRTP_K_HASH] = s->hash;
	z->alg[ZRTP_K_CIPHER] = s->cipher;
	z->alg[ZRTP_K_TAG] = s->tag;
	z->phase = PH_RESTORED;
	return 0;
}
