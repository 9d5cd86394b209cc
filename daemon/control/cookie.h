/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies already given, so that a repeated request is answered again without being carried out
 * again. A proxy repeats a request with the same cookie from the same socket, so the key is
 * (source, cookie): nobody gets another client's reply. */
#ifndef CONTROL_COOKIE_H
#define CONTROL_COOKIE_H

#include "base/endpoint.h"

#define COOKIE_GENERATION_NS \
	30000000000ull /* a reply lives for one to two of these; proxies repeat for 5 s */

struct cookie_cache;

struct cookie_limits { /* both generations together; for as long as an old one is being freed, up to half as much more */
	size_t bytes;
	uint32_t entries;
};

/* hash_key: random, since strangers choose cookies. 0 or -ENOMEM. */
int cookie_create(
	struct cookie_cache **out, const uint8_t hash_key[16], struct cookie_limits limits);
/* Wipes: replies hold keys. NULL is fine. */
void cookie_destroy(struct cookie_cache *c);

/* Ends generations whose time is over. Call at any interval. */
void cookie_tick(struct cookie_cache *c, uint64_t now_ns);
/* The stored reply, valid until the next call of anything but this; s = NULL if there is none. */
struct str cookie_get(const struct cookie_cache *c, const struct endpoint *from, struct str cookie);
/* When full, the older generation goes early. 0; -EMSGSIZE: larger than half the cache, not
 * kept; -ENOMEM. */
int cookie_put(
	struct cookie_cache *c, const struct endpoint *from, struct str cookie, struct str reply);

#endif
