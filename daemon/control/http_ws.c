/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WebSockets: ng with a cookie, ng without, and the page, told apart by their sub-protocols. */
#include "control/http_int.h"

#include <errno.h>

#include "base/clock.h"
#include "proto/utf8.h"

#define PAGE_MESSAGE_MAX 4096u

static const struct {
	const char *name;
	enum http_kind kind;
} protocols[] = {
	{"ng.rtpengine.com", HTTP_NG},
	{"ng-plain.rtpengine.com", HTTP_NG_PLAIN},
	{"page.xcipher", HTTP_PAGE},
};

/* The first that we know too, in the order that the client has them. NULL: none. */
static const char *choose(enum http_kind *kind, struct http *h, const struct http_head *head)
{
	struct http_list l = {.name = "Sec-WebSocket-Protocol"};
	struct str one;

	while (http_list_next(&l, head, &one))
		for (size_t i = 0; i < ARRAY_LEN(protocols); i++)
			if (str_eq(one, str_from(protocols[i].name)) &&
				(protocols[i].kind != HTTP_PAGE || h->cfg.page.calls)) {
				*kind = protocols[i].kind;
				return protocols[i].name;
			}
	return NULL;
}

void http_ws_upgrade(struct http_client *c, const struct http_head *head)
{
	const char *protocol = choose(&c->kind, c->http, head);
	char accept[WS_ACCEPT_LEN];

	if (!str_eq(http_head_field(head, "Sec-WebSocket-Version"), STR("13"))) {
		http_refuse(c, 426, "WebSocket version 13 is spoken here\n");
	} else if (ws_accept(accept, http_head_field(head, "Sec-WebSocket-Key")) ||
		head->framing != HTTP_BODY_NONE) {
		http_refuse(c, 400, "this is no WebSocket\n");
	} else if (!protocol) {
		http_refuse(c, 400, "a WebSocket needs a sub-protocol that is known here\n");
	} else if (c->kind == HTTP_PAGE ? !http_may_view(c, head)
					: !http_may_command(c->http, head)) {
		http_refuse(c, c->kind == HTTP_PAGE ? 403 : 401, "the token is needed\n");
	} else if (c->kind == HTTP_PAGE && c->http->pages >= HTTP_PAGES) {
		http_refuse(c, 503, "enough pages are open\n");
	} else {
		sbuf_printf(&c->out,
			"HTTP/1.1 101 %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
			"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
			http_reason(101), accept, protocol);
		c->ws = (struct ws_reader){
			.max = c->kind == HTTP_PAGE ? PAGE_MESSAGE_MAX : HTTP_BODY_MAX};
		c->heard_ns = clock_mono_ns();
		c->message_ns = 0;
		c->pinged = false;
		http_client_state(c, HTTP_IN_WEBSOCKET);
		if (c->kind == HTTP_PAGE && http_page_begin(c))
			http_ws_close(c, WS_CODE_INTERNAL, "");
	}
}

/* --- Sending --------------------------------------------------------------------------------------------------- */

void http_ws_send(struct http_client *c, enum ws_opcode opcode, struct str payload)
{
	uint8_t head[WS_HEAD_MAX];

	sbuf_put(&c->out, head, ws_write_head(head, opcode, payload.len));
	sbuf_str(&c->out, payload);
}

void http_ws_close(struct http_client *c, int code, const char *reason)
{
	char payload[WS_CONTROL_MAX];
	size_t len = strlen(reason);

	put_be16((uint8_t *)payload, (uint16_t)code);
	len = len < sizeof(payload) - 2 ? len : sizeof(payload) - 2;
	memcpy(payload + 2, reason, len);
	http_ws_send(
		c, WS_CLOSE, code == WS_CODE_NO_STATUS ? STR_NONE : (struct str){payload, 2 + len});
	http_client_state(c, HTTP_ENDING);
}

void http_ws_ping(struct http_client *c)
{
	http_ws_send(c, WS_PING, STR_NONE);
	c->pinged = true;
}

/* --- Hearing --------------------------------------------------------------------------------------------------- */

/* As the request was, but text only if it is text: Call-IDs need not be UTF-8. */
static void answer(struct http_client *c, enum ws_opcode opcode, struct str message)
{
	struct ng_front *front = c->http->front;
	struct sbuf out;
	int err;

	sbuf_init(&out, HTTP_REPLY_MAX);
	err = c->kind == HTTP_NG ? ng_front_http(front, &c->from, message, clock_real_ns(), &out)
				 : ng_front_plain(front, message, clock_real_ns(), &out);
	/* a message without cookie gets none, as over UDP */
	if (!err && out.len)
		http_ws_send(c, utf8_valid(sbuf_view(&out)) ? opcode : WS_BINARY, sbuf_view(&out));
	sbuf_fini(&out);
}

static void hear(struct http_client *c, int what, struct str message)
{
	struct str control = {(const char *)c->ws.control, c->ws.control_len};
	int code;

	switch (what) {
	case WS_TEXT:
	case WS_BINARY:
		if (c->kind == HTTP_PAGE)
			http_page_hear(c, message);
		else
			answer(c, (enum ws_opcode)what, message);
		ws_reader_next(&c->ws);
		break;
	case WS_PING:
		http_ws_send(c, WS_PONG, control);
		break;
	case WS_CLOSE:
		code = ws_close_code(c->ws.control, c->ws.control_len);
		http_ws_close(c, code < 0 ? -code : code, "");
		break;
	default: /* a pong: c->heard_ns was set already */
		break;
	}
}

bool http_ws_serve(struct http_client *c)
{
	uint8_t *p = (uint8_t *)c->in.p + c->in_at;
	size_t len = c->in.len - c->in_at;
	int what = len ? ws_read(&c->ws, p, &len) : 0;

	c->in.len = c->in_at + len;
	if (what < 0)
		http_ws_close(c, -what, "");
	else if (what > 0)
		hear(c, what, (struct str){(const char *)p, c->ws.len});
	/* its time begins when it does, and anew with the next one */
	if ((len == 0 && c->ws.opcode == 0) || what == WS_TEXT || what == WS_BINARY)
		c->message_ns = 0;
	else if (what == 0 && c->message_ns == 0)
		c->message_ns = clock_mono_ns();
	return what != 0;
}
