/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See zrtp_self.h. RFC 6189 5, 5.2, 8. */
#include "keying/zrtp_self.h"

#include "base/hash.h"
#include "base/secmem.h"
#include "keying/zrtp_crypto.h"

#define HEADER   12u /* of a packet; the CRC after the message has 4 bytes */
#define CRC      4u
#define PREAMBLE 0x505au
#define TYPE     4u /* offset in a message */

/* The SSRC of media is the other terminal's, and not known yet. */
static uint32_t ssrc_of(const uint8_t seed[ZRTP_SEED])
{
	static const uint8_t label[16] = "zrtp ssrc";
	uint32_t ssrc = (uint32_t)hash_siphash(label, seed, ZRTP_SEED);

	return ssrc ? ssrc : 1;
}

static bool has_zid(const struct zrtp_self *self)
{
	static const uint8_t none[ZRTP_ZID];

	return memcmp(self->zid, none, sizeof(none)) != 0;
}

void zrtp_self_config(
	struct zrtp_config *out, struct zrtp_prefs *prefs, const struct zrtp_self *self)
{
	const uint8_t kind = ZRTP_K_AGREEMENT;
	struct zrtp_prefs all;
	uint8_t n = 0, *list;

	zrtp_prefs_all(&all);
	*prefs = all;
	list = prefs->list[kind];
	if (self->preshared)
		list[n++] = ZRTP_PRSH; /* preferred */
	for (uint8_t i = 0; i < all.n[kind]; i++)
		if (all.list[kind][i] != ZRTP_PRSH &&
			(all.list[kind][i] != ZRTP_MULT || has_zid(self)))
			list[n++] = all.list[kind][i];
	prefs->n[kind] = n;
	*out = (struct zrtp_config){.ssrc = ssrc_of(self->seed),
		.zid = has_zid(self) ? self->zid : NULL,
		.prefs = prefs};
	memcpy(out->seed, self->seed, ZRTP_SEED);
}

int zrtp_self_hash(uint8_t hash[ZRTP_HASH], const struct zrtp_self *self)
{
	struct zrtp_prefs prefs;
	struct zrtp_config c;
	int err;

	zrtp_self_config(&c, &prefs, self);
	err = zrtp_hello_hash(hash, &c);
	secmem_wipe(&c, sizeof(c));
	return err;
}

bool zrtp_self_is_hello(const uint8_t *p, size_t len, const uint8_t hash[ZRTP_HASH])
{
	uint8_t own[ZRTP_HASH];
	size_t message;

	if (len < HEADER + TYPE + 8 + CRC || be16(p + HEADER) != PREAMBLE)
		return false;
	message = 4 * (size_t)be16(p + HEADER + 2);
	if (len != HEADER + message + CRC || memcmp(p + HEADER + TYPE, "Hello   ", 8))
		return false;
	return zrtp_hash(own, ZRTP_S256, &(struct zrtp_part){p + HEADER, message}, 1) == 0 &&
		memcmp(own, hash, sizeof(own)) == 0;
}
