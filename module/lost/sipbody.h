/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Location in a SIP message (RFC 6442): values of Geolocation headers, and parts of a body by
 * Content-ID (RFC 2392). Text is never copied. */
#ifndef LOST_SIPBODY_H
#define LOST_SIPBODY_H

#include <stdbool.h>
#include <stddef.h>

struct span {
	const char *s;
	size_t len;
};

/* Takes the next URI in angle brackets from the value of a Geolocation header. False: no more. */
bool geolocation_next(struct span *value, struct span *uri);
bool span_begins(struct span s, const char *prefix); /* ignores case */

/* Finds the part with this Content-ID (without brackets, as "cid:" URIs have it, perhaps with
 * %-escapes) in a body of this Content-Type. own_id is the Content-ID header of the message, for a
 * body without parts. cid.len 0: the first part of type application/pidf+xml. False: there is none,
 * or its transfer encoding is not plain. */
bool body_part(
	struct span type, struct span own_id, struct span body, struct span cid, struct span *part);

#endif
