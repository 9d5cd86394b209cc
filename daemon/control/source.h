/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps sources of ng messages to a fixed number of shares, which bounds memory and work per source
 * without a table of all sources. A source is an IP address; programs on this machine have the same
 * one, so for loopback it is address and port. Sources that collide share one share; a secret hash
 * key keeps attackers from choosing a collision. Pure. */
#ifndef CONTROL_SOURCE_H
#define CONTROL_SOURCE_H

#include "base/endpoint.h"
#include "base/hash.h"

static inline bool source_is_loopback(const struct endpoint *e)
{
	return e->family == AF_INET ? e->addr[0] == 127
				    : memcmp(e->addr, &in6addr_loopback, 16) == 0;
}

static inline uint32_t source_share(
	const uint8_t hash_key[16], const struct endpoint *from, uint32_t shares)
{
	uint8_t id[18];

	memcpy(id, from->addr, 16);
	put_be16(id + 16, source_is_loopback(from) ? from->port : 0);
	return (uint32_t)(hash_siphash(hash_key, id, sizeof(id)) % shares);
}

#endif
