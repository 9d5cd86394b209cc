/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A client of the HTTP server, for the files of the server thread only. */
#ifndef CONTROL_HTTP_CLIENT_H
#define CONTROL_HTTP_CLIENT_H

#include "control/http_int.h"

#define HTTP_LOOK_MAX 512 /* filter, line end and Call-ID of a page */

struct http_client { /* one per connection; the pss of its protocol */
	struct lws *wsi;
	struct endpoint from;
	struct http_job *job; /* asked, or answered and being sent */
	bool answered;
	struct sbuf in; /* the request so far */
	size_t expected;
	uint32_t body_ends;
	enum http_job_kind kind;
	bool binary; /* WebSocket: as the request was */
	/* The reply. */
	int status;
	const char *type;
	struct str out;
	size_t sent;
	bool head_sent, close;
	/* The page. */
	bool counted, known; /* it said the token, or needs none */
	uint32_t seconds;    /* since it came, or since it was told something */
	char look[HTTP_LOOK_MAX], end[HTTP_LOOK_MAX];
	size_t look_len, end_len;
	const char *say; /* a constant to be sent first */
};

struct http *http_of(struct lws *wsi);
/* "?" if it is too long: not the same as none. */
struct str http_header(struct lws *wsi, char *buf, int len, enum lws_token_indexes token);
void http_client_begin(struct http_client *c, struct lws *wsi);
void http_client_reset(struct http_client *c);
/* Hands what c->in holds to the control thread. 0 or -EBUSY. */
int http_client_ask(struct http_client *c);
/* Sends the next piece of the reply that c's job holds as a WebSocket message. 1: it is sent and the job free; 0: there
 * is more, or nothing to send; -1: the connection ends. */
int http_ws_send(struct http_client *c);

/* http_page.c: the page's files, and its WebSocket. */
const struct web_file *http_page_file(struct str path);
/* Whether pages are served to this client at all: with a token to anybody, without one on this machine only. */
bool http_page_allowed(struct http *h, struct lws *wsi);
int http_page_callback(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len);

#endif
