/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sources of ng messages, spread over a fixed number of shares, so that memory and work per source are bounded without a table of all
 * sources. A source is an IP address. Programs on this machine share one, so there the port is part of it. Two sources may meet in one
 * share: which ones is a secret of this process. Pure. */
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
