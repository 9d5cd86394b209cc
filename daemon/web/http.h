/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests over HTTP: access, ng, /metrics. Functions that return int return the result for
 * libwebsockets: -1 closes the connection. */
#ifndef WEB_HTTP_H
#define WEB_HTTP_H

#include "web/web.h"

int web_http_begin(struct web_client *c, struct str path);
int web_http_body(struct web_client *c, struct str bytes);
int web_http_complete(struct web_client *c);
/* Sends a refusal at once. */
int web_http_refuse(struct web_client *c, int status, const char *why);
/* Checks "Host" and "Origin": NULL, or why the request is refused. */
const char *web_http_stranger(struct web_client *c);
bool web_may_command(struct web_client *c);
bool web_may_view(struct web_client *c);

#endif
