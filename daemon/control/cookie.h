/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies already given, so that a repeated request gets the same reply and is not executed again.
 * A proxy repeats a request with the same cookie from the same socket, so the key is (source,
 * cookie): no client receives the reply to another one. Sources share the memory fairly (source.h):
 * a source that fills it loses its own oldest replies, never those of a source that uses less. */
#ifndef CONTROL_COOKIE_H
#define CONTROL_COOKIE_H

#include "base/endpoint.h"

#define COOKIE_LIFE_NS \
	60000000000ull /* other clients repeat a request for 5 s, ours for less than 30 s */

struct cookie_cache;

struct cookie_limits {
	size_t bytes; /* limit for replies, cookies and their entries */
	uint32_t entries;
};

/* hash_key: random, since strangers choose cookies. 0 or -ENOMEM. */
int cookie_create(
	struct cookie_cache **out, const uint8_t hash_key[16], struct cookie_limits limits);
/* Wipes: replies hold keys. NULL is fine. */
void cookie_destroy(struct cookie_cache *c);

/* Frees replies older than COOKIE_LIFE_NS, a bounded number per call. Time advances only by these
 * calls. */
void cookie_tick(struct cookie_cache *c, uint64_t now_ns);
/* The stored reply, valid until the next change; s = NULL if there is none. */
struct str cookie_get(const struct cookie_cache *c, const struct endpoint *from, struct str cookie);
/* When full, the oldest replies of the source that uses most make room. 0; -EMSGSIZE: larger than
 * half the cache, not kept; -ENOMEM. */
int cookie_put(
	struct cookie_cache *c, const struct endpoint *from, struct str cookie, struct str reply);

#endif
