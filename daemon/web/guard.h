/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access to xcipher-web, decided by the header fields of a request. Pure. */
#ifndef WEB_GUARD_H
#define WEB_GUARD_H

#include "base/endpoint.h"

#define HTTP_TOKEN_MIN 16
#define HTTP_TOKEN_MAX 255

struct http_token {
	bool set;
	char text[HTTP_TOKEN_MAX + 1]; /* the rest is zero, as the whole is compared */
};

/* Sets the token: printable, without blanks. 0, or -EINVAL if it is too short, too long or has
 * other characters. */
int http_token_set(struct http_token *t, struct str text);
/* Takes constant time. False if no token is set. */
bool http_token_is(const struct http_token *t, struct str text);
/* Whether the field is "Bearer TOKEN" (RFC 6750 2.1), or no token is set. */
bool http_authorized(const struct http_token *t, struct str authorization);

/* Whether a Host header (RFC 9110 7.2) is ours: an address, localhost, this machine's name, or one
 * of names (separated by ','). A foreign page cannot have it by pointing its own name to us. A
 * missing header is accepted: every browser sends one. */
bool http_host_known(struct str host, struct str machine, struct str names);
/* localhost or a loopback address. */
bool http_host_loopback(struct str host);
/* Whether an Origin header (RFC 6454 7) is ours. A missing one is accepted: it is not a browser. */
bool http_origin_ours(struct str origin, struct str host);
bool http_peer_loopback(const struct endpoint *peer);

#endif
