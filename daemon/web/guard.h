/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may speak to xcipher-web: decided by what the request says of itself. Pure. */
#ifndef WEB_GUARD_H
#define WEB_GUARD_H

#include "base/endpoint.h"

#define HTTP_TOKEN_MIN 16
#define HTTP_TOKEN_MAX 255

struct http_token {
	bool set;
	char text[HTTP_TOKEN_MAX + 1]; /* rest zero: compared as a whole */
};

/* A token is printable and has no blanks. 0, or -EINVAL for what is too short, too long or neither.
 */
int http_token_set(struct http_token *t, struct str text);
/* Time does not depend on where they differ. False when none is set. */
bool http_token_is(const struct http_token *t, struct str text);
/* "Bearer TOKEN" (RFC 6750 2.1), or no token is set at all. */
bool http_authorized(const struct http_token *t, struct str authorization);

/* A Host header (RFC 9110 7.2) that a page of somebody else's cannot have by letting its name point
 * to us: an address, localhost, this machine's name, or one of names (with ',' between). None at
 * all is fine: no browser leaves it out. */
bool http_host_known(struct str host, struct str machine, struct str names);
/* localhost or an address of the loopback. */
bool http_host_loopback(struct str host);
/* No Origin header (RFC 6454 7): no browser; else it must be ours. */
bool http_origin_ours(struct str origin, struct str host);
bool http_peer_loopback(const struct endpoint *peer);

#endif
