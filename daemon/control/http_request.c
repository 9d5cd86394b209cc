/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests over HTTP and their replies. Asks http_guard.c who may speak before it looks at what is wanted. A request that is
 * refused before its body was read ends the connection, since what follows may be a body that nobody wants. */
#include "control/http_int.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"

#define TEXT "text/plain; charset=utf-8"

/* --- Replies --------------------------------------------------------------------------------------------------- */

/* Nothing but our own files, and no frames of others around them. */
#define CSP                                                                             \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
	"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* What the status demands besides (RFC 9110 15.5). */
static const char *more_fields(int status, bool post)
{
	switch (status) {
	case 401:
		return "WWW-Authenticate: Bearer\r\n";
	case 405:
		return post ? "Allow: POST\r\n" : "Allow: GET, HEAD, POST\r\n";
	case 426:
		return "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
	default:
		return "";
	}
}

static void reply_with(
	struct http_client *c, int status, const char *type, const char *more, struct str body)
{
	char date[HTTP_DATE_LEN];

	sbuf_printf(&c->out,
		"HTTP/1.1 %d %s\r\nDate: %s\r\nServer: xcipherd\r\nContent-Type: %s\r\n"
		"Content-Length: %zu\r\nCache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\nContent-Security-Policy: " CSP "\r\n"
		"Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"
		"%s%s\r\n",
		status, http_reason(status),
		http_date(date, (time_t)(clock_real_ns() / NS_PER_SEC)), type, body.len, more,
		!c->keep         ? "Connection: close\r\n"
			: c->old ? "Connection: keep-alive\r\n"
				 : "");
	if (!c->bodiless)
		sbuf_str(&c->out, body);
	http_client_state(c, c->keep ? HTTP_IDLE : HTTP_ENDING);
}

static void reply(struct http_client *c, const char *type, struct str body)
{
	reply_with(c, 200, type, "", body);
}

void http_refuse(struct http_client *c, int status, const char *why)
{
	reply_with(c, status, TEXT, more_fields(status, true), str_from(why));
}

/* --- Who asks -------------------------------------------------------------------------------------------------- */

/* By what name we were reached and where from. NULL, or what is wrong. */
static const char *stranger(struct http *h, const struct http_head *head)
{
	if (!http_host_known(head->host, str_from(h->machine), str_from(h->cfg.hosts)))
		return "this name is not known to be ours: see --http-host\n";
	if (!http_origin_ours(http_head_field(head, "Origin"), head->host))
		return "requests from other sites are refused\n";
	return NULL;
}

bool http_may_ask(struct http *h, const struct http_head *head)
{
	return http_authorized(&h->token, http_head_field(head, "Authorization"));
}

bool http_may_command(struct http *h, const struct http_head *head)
{
	return http_may_ask(h, head) && (h->token.set || !h->cfg.no_ng_without_token);
}

bool http_may_view(struct http_client *c, const struct http_head *head)
{
	return c->http->token.set ||
		(http_peer_loopback(&c->from) && http_host_loopback(head->host));
}

/* --- Requests -------------------------------------------------------------------------------------------------- */

static void get_metrics(struct http_client *c)
{
	struct http *h = c->http;
	struct sbuf text;

	sbuf_init(&text, HTTP_REPLY_MAX);
	h->cfg.metrics(h->cfg.arg, &text);
	if (text.err)
		http_refuse(c, 500, "no reply could be made\n");
	else
		reply(c, "text/plain; version=0.0.4; charset=utf-8", sbuf_view(&text));
	sbuf_fini(&text);
}

static void get(struct http_client *c, const struct http_head *head)
{
	struct http *h = c->http;
	const struct web_file *f = h->cfg.page.calls ? http_page_file(head->path) : NULL;

	if (f && !http_may_view(c, head))
		http_refuse(c, 403, "the page is only for this machine: see --http-token-file\n");
	else if (f)
		reply(c, f->type, (struct str){(const char *)f->bytes, f->len});
	else if (str_eq(head->path, STR("/ping")))
		reply(c, TEXT, STR("pong\n"));
	else if (str_eq(head->path, STR("/ng")) || str_eq(head->path, STR("/ng-plain")))
		http_refuse(c, 405, "POST it\n");
	else if (!str_eq(head->path, STR("/metrics")) || !h->cfg.metrics)
		http_refuse(c, 404, "there is nothing here\n");
	else if (!http_may_ask(h, head))
		http_refuse(c, 401, "the token is needed\n");
	else
		get_metrics(c);
}

/* Everything that can be wrong before the body is there. */
static void post(struct http_client *c, const struct http_head *head, bool keep)
{
	bool plain = str_eq(head->path, STR("/ng-plain"));

	if (!plain && !str_eq(head->path, STR("/ng"))) {
		http_refuse(c, 404, "there is nothing here\n");
	} else if (!http_may_command(c->http, head)) {
		http_refuse(c, 401, "the token is needed\n");
	} else if (head->framing == HTTP_BODY_NONE) {
		http_refuse(c, 411, "a body is needed, with its length or in chunks\n");
	} else if (head->framing == HTTP_BODY_LENGTH && head->length > HTTP_BODY_MAX) {
		http_refuse(c, 413, "the body is too long\n");
	} else {
		c->kind = plain ? HTTP_NG_PLAIN : HTTP_NG;
		c->keep = keep;
		http_body_init(&c->body, head, HTTP_BODY_MAX);
		c->state = HTTP_IN_BODY; /* its time began with the head */
		if (head->expects)
			sbuf_str(&c->out, STR("HTTP/1.1 100 Continue\r\n\r\n"));
	}
}

static void begin(struct http_client *c, const struct http_head *head)
{
	const char *wrong = stranger(c->http, head);
	bool keep = head->keep;

	c->old = head->minor == 0;
	c->bodiless = str_eq(head->method, STR("HEAD"));
	c->keep = keep &&
		(head->framing == HTTP_BODY_NONE ||
			(head->framing == HTTP_BODY_LENGTH && head->length == 0));
	if (wrong)
		http_refuse(c, 403, wrong);
	else if (head->websocket)
		http_ws_upgrade(c, head);
	else if (c->bodiless || str_eq(head->method, STR("GET")))
		get(c, head);
	else if (str_eq(head->method, STR("POST")))
		post(c, head, keep);
	else
		reply_with(c, 405, TEXT, more_fields(405, false), STR("GET or POST\n"));
}

/* The body is there. */
static void carry_out(struct http_client *c, struct str body)
{
	struct ng_front *front = c->http->front;
	struct sbuf out;
	bool bencode;
	int err;

	if (body.len == 0) {
		http_refuse(c, 400, "the body is empty\n");
		return;
	}
	sbuf_init(&out, HTTP_REPLY_MAX);
	err = c->kind == HTTP_NG_PLAIN
		? ng_front_plain(front, body, clock_real_ns(), &out)
		: ng_front_http(front, &c->from, body, clock_real_ns(), &out);
	bencode = c->kind == HTTP_NG || (out.len && out.p[0] == 'd');
	if (err == -ENOMSG)
		http_refuse(c, 400, "a cookie, a space and a dictionary are needed\n");
	else if (err)
		http_refuse(c, 500, "no reply could be made\n");
	else
		reply(c, bencode ? "application/x-rtpengine-ng" : "application/json",
			sbuf_view(&out));
	sbuf_fini(&out);
}

/* --- From bytes ------------------------------------------------------------------------------------------------ */

/* What it sent is no request that could be read. */
static void refuse_unread(struct http_client *c, int status)
{
	c->keep = c->old = c->bodiless = false;
	http_refuse(c, status,
		status == 431           ? "the head is too long\n"
			: status == 413 ? "the body is too long\n"
			: status == 501 ? "chunked is the only transfer coding that is known\n"
			: status == 505 ? "HTTP/1.1 is spoken here\n"
			: status == 417 ? "100-continue is all that can be expected\n"
					: "this is no HTTP request\n");
}

static bool serve_head(struct http_client *c)
{
	struct str rest = {c->in.p + c->in_at, c->in.len - c->in_at};
	struct http_head head;
	int n = http_head_end(rest, &c->line), status;

	if (n == 0)
		return false;
	if (n < 0) {
		refuse_unread(c, n == -EMSGSIZE ? 431 : 400);
		return true;
	}
	c->line = 0;
	status = http_head_parse(&head, (struct str){rest.s, (size_t)n});
	if (status)
		refuse_unread(c, status);
	else
		begin(c, &head);
	c->in_at += (size_t)n;
	return true;
}

static bool serve_body(struct http_client *c)
{
	char *rest = c->in.p + c->in_at;
	size_t len = c->in.len - c->in_at;
	int got = http_body_read(&c->body, rest, &len);

	c->in.len = c->in_at + len;
	if (got == 0)
		return false;
	if (got < 0)
		refuse_unread(c, got == -EMSGSIZE ? 413 : 400);
	else
		carry_out(c, (struct str){rest, c->body.len});
	c->in_at += c->body.at;
	return true;
}

/* Empty lines before a request are overlooked (RFC 9112 2.2). True: there is something behind them. */
static bool skip_empty_lines(struct http_client *c)
{
	size_t left;

	while (c->in.len - c->in_at >= 2 && memcmp(c->in.p + c->in_at, "\r\n", 2) == 0)
		c->in_at += 2;
	left = c->in.len - c->in_at;
	return left > 1 || (left == 1 && c->in.p[c->in_at] != '\r');
}

bool http_request_serve(struct http_client *c)
{
	if (c->state == HTTP_IN_BODY)
		return serve_body(c);
	if (c->state == HTTP_IDLE) {
		if (!skip_empty_lines(c))
			return false;
		c->line = 0;
		http_client_state(c, HTTP_IN_HEAD);
	}
	return serve_head(c);
}
