/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signed requests that were already received, so that a captured request is never executed again.
 * An entry lives until the request's time is outside the window of ng_auth.h; from then on its time
 * alone refuses it. If the clock is set back by more than the window, requests are refused until
 * the clock shows seconds that it has not shown before. Control thread only. */
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

/* Checks a request whose MAC and time were verified at now_s. 0: it is new, and is stored;
 * -EALREADY: this source sent it before; -EADDRINUSE: another source did; -ETIME: entries of its
 * second were forgotten before the clock was set, so it may be a copy; -ENOBUFS or -ENOMEM: it
 * cannot be stored, so it must not be executed. */
int once_check(struct once *o, const struct ng_signed *request, const struct endpoint *from,
	uint64_t now_s);
/* The request was not executed: the next copy from the same source counts as new. */
void once_again(struct once *o, const struct ng_signed *request);
/* Frees entries outside the window. Call at any interval. */
void once_tick(struct once *o, uint64_t now_s);
uint32_t once_entries(const struct once *o);

#endif
