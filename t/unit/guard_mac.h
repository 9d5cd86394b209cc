/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tag of scheme header-siphash that a guard expects, for tests. */
#ifndef GUARD_MAC_H
#define GUARD_MAC_H

#include "base/bytes.h"
#include "base/hash.h"
#include "packet/guard.h"

/* By the library's SipHash, over the bytes on the wire. */
static inline uint32_t guard_mac(const struct guard *g, const struct guard_packet *p)
{
	uint8_t hdr[12] = {p->first, p->second}, key[16];

	for (int i = 0; i < 16; i++)
		key[i] = (uint8_t)(g->sip[i / 8] >> i % 8 * 8);
	put_be16(hdr + 2, p->seq);
	put_be32(hdr + 4, p->time);
	put_be32(hdr + 8, p->ssrc);
	return (uint32_t)hash_siphash(key, hdr, sizeof(hdr));
}

#endif
