/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which signed requests were received already, so that a captured one is never executed again. An entry lives until the request's time
 * is outside the window of ng_auth.h; after that the time alone refuses it. If the clock is set back further than the window, requests are
 * refused until it shows seconds that it never showed before. Control thread only. */
#ifndef CONTROL_ONCE_H
#define CONTROL_ONCE_H

#include "base/endpoint.h"
#include "proto/ng_auth.h"

struct once;

/* hash_key: random. entries: maximum; 0 = ONCE_ENTRIES. 0 or -ENOMEM. */
#define ONCE_ENTRIES \
	524288u /* 8,000 requests per second over the whole window, about 40 MB; 2,000 take 10 MB */
int once_create(struct once **out, const uint8_t hash_key[16], uint32_t entries);
void once_destroy(struct once *o); /* NULL is fine */

/* A request whose MAC and time were verified at now_s. 0: it is new, and is remembered; -EALREADY: this source sent it before;
 * -EADDRINUSE: another source did; -ETIME: its second was forgotten before the clock was set, so it may be a copy; -ENOBUFS or -ENOMEM: it
 * cannot be remembered, so it must not be executed. */
int once_check(struct once *o, const struct ng_signed *request, const struct endpoint *from,
	uint64_t now_s);
/* Frees entries outside the window. Call at any interval. */
void once_tick(struct once *o, uint64_t now_s);
uint32_t once_entries(const struct once *o);

#endif
