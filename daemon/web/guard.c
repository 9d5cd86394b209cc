/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Protects the HTTP server from browsers that visit foreign pages: checks the host name (DNS
 * rebinding), the origin of a request (cross-site requests and WebSockets), and a token. Pure. */
#include "web/guard.h"

#include <errno.h>

#include "base/secmem.h"

int http_token_set(struct http_token *t, struct str text)
{
	if (text.len < HTTP_TOKEN_MIN || text.len > HTTP_TOKEN_MAX)
		return -EINVAL;
	for (size_t i = 0; i < text.len; i++)
		if (text.s[i] <= 0x20 || text.s[i] > 0x7e)
			return -EINVAL;
	*t = (struct http_token){.set = true};
	memcpy(t->text, text.s, text.len);
	return 0;
}

bool http_token_is(const struct http_token *t, struct str text)
{
	char padded[sizeof(t->text)] = {0};
	bool same;

	if (!t->set || text.len > HTTP_TOKEN_MAX)
		return false;
	if (text.len)
		memcpy(padded, text.s, text.len);
	same = secmem_equal(padded, t->text, sizeof(padded));
	secmem_wipe(padded, sizeof(padded));
	return same;
}

bool http_authorized(const struct http_token *t, struct str authorization)
{
	struct str rest = authorization, scheme;

	if (!t->set)
		return true;
	scheme = str_cut(&rest, ' ');
	return str_eq_nocase(scheme, STR("Bearer")) && http_token_is(t, str_trim(rest));
}

/* Removes the port: "name:80", "[::1]:80". */
static struct str host_name(struct str host)
{
	const char *end = NULL;

	if (host.len && host.s[0] == '[')
		end = memchr(host.s, ']', host.len);
	if (end)
		return (struct str){host.s, (size_t)(end - host.s) + 1};
	return str_cut(&host, ':');
}

bool http_host_known(struct str host, struct str machine, struct str names)
{
	struct str name = host_name(host);
	struct endpoint e;

	if (host.len == 0)
		return true;
	if (endpoint_parse_addr(&e, name) == 0 || str_eq_nocase(name, STR("localhost")))
		return true;
	if (machine.len && str_eq_nocase(name, machine))
		return true;
	while (names.len) {
		struct str one = str_trim(str_cut(&names, ','));

		if (one.len && str_eq_nocase(name, one))
			return true;
	}
	return false;
}

bool http_host_loopback(struct str host)
{
	struct str name = host_name(host);
	struct endpoint e;

	return str_eq_nocase(name, STR("localhost")) ||
		(endpoint_parse_addr(&e, name) == 0 && http_peer_loopback(&e));
}

bool http_origin_ours(struct str origin, struct str host)
{
	static const char *const schemes[] = {"http://", "https://"};

	if (origin.len == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		struct str scheme = str_from(schemes[i]);

		if (str_starts(origin, scheme))
			return str_eq_nocase(
				(struct str){origin.s + scheme.len, origin.len - scheme.len}, host);
	}
	return false; /* includes "null" */
}

bool http_peer_loopback(const struct endpoint *peer)
{
	return peer->family == AF_INET ? peer->addr[0] == 127
				       : memcmp(peer->addr, &in6addr_loopback, 16) == 0;
}
