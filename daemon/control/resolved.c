/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See resolved.h. The address is checked when libcurl opens the socket, so it is the one that the
 * socket connects to. */
#include "control/resolved.h"

#include <strings.h>
#include <sys/socket.h>

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct resolved *r = arg;
	struct sockaddr_storage sa = {0};
	struct endpoint e;

	(void)purpose;
	if (a->addrlen > sizeof(sa))
		return CURL_SOCKET_BAD;
	memcpy(&sa, &a->addr, a->addrlen);
	if (endpoint_from_sockaddr(&e, &sa) || !r->may(r->arg, &e)) {
		r->refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* The operator wrote an address or localhost, so DNS is not involved. */
static bool is_name(const char *url)
{
	CURLU *u = curl_url();
	struct endpoint e;
	char *host = NULL;
	bool name = true;

	if (u && !curl_url_set(u, CURLUPART_URL, url, 0) &&
		!curl_url_get(u, CURLUPART_HOST, &host, 0))
		name = endpoint_parse_addr(&e, str_from(host)) != 0 &&
			strcasecmp(host, "localhost") != 0;
	curl_free(host);
	curl_url_cleanup(u);
	return name;
}

void resolved_watch(CURL *c, const char *url, struct resolved *r)
{
	r->refused = false;
	if (!r->may || !is_name(url))
		return;
	curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, r);
}
