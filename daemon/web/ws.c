/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WebSockets: ng with a cookie, ng without, and the page, selected by sub-protocol. */
#include "web/ws.h"

#include <stdlib.h>

#include "base/secmem.h"
#include "proto/utf8.h"
#include "web/client.h"
#include "web/http.h"
#include "web/page.h"

#define PAGE_MESSAGE_MAX 4096u

static const struct {
	const char *name;
	enum web_kind kind;
} kinds[] = {
	{"ng.rtpengine.com", WEB_NG},
	{"ng-plain.rtpengine.com", WEB_NG_PLAIN},
	{"page.xcipher", WEB_PAGE},
};

/* Whether it is a list of tokens (RFC 6455 4.1, RFC 9110 5.6.2). libwebsockets ends a name at other
 * separators, too, and would select another sub-protocol than choose(). */
static bool is_list(struct str list)
{
	static const char allowed[] = "!#$%&'*+-.^_`|~, \t";

	for (size_t i = 0; i < list.len; i++) {
		char a = list.s[i], low = (char)(a | 0x20);

		if (!(a >= '0' && a <= '9') && !(low >= 'a' && low <= 'z') &&
			(a == '\0' || !strchr(allowed, a)))
			return false;
	}
	return true;
}

/* The first sub-protocol of the client's list that we know; libwebsockets selects the same. False:
 * none. */
static bool choose(struct web_client *c, enum web_kind *kind)
{
	char buf[256];
	int n = lws_hdr_copy(c->wsi, buf, sizeof(buf), WSI_TOKEN_PROTOCOL);
	struct str list = {buf, n > 0 ? (size_t)n : 0};

	while (list.len && is_list(list)) {
		struct str one = str_trim(str_cut(&list, ','));

		for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
			if (str_eq(one, str_from(kinds[i].name))) {
				*kind = kinds[i].kind;
				return true;
			}
	}
	return false;
}

static int refuse(struct web_client *c, int status, const char *why)
{
	return web_http_refuse(c, status, why) ? -1 : 1;
}

int web_ws_confirm(struct web_client *c, const char *upgrade)
{
	enum web_kind kind;
	const char *wrong;
	char version[8];

	wrong = web_http_stranger(c);
	if (wrong)
		return refuse(c, 403, wrong);
	if (!str_eq_nocase(str_from(upgrade), STR("websocket")))
		return refuse(c, 400, "a WebSocket is the only upgrade that is known\n");
	if (lws_hdr_copy(c->wsi, version, sizeof(version), WSI_TOKEN_VERSION) != 2 ||
		strcmp(version, "13") != 0)
		return refuse(c, 426, "WebSocket version 13 is spoken here\n");
	if (!choose(c, &kind))
		return refuse(c, 400, "a WebSocket needs a sub-protocol that is known here\n");
	if (kind == WEB_PAGE && !web_may_view(c))
		return refuse(c, 403, "the token is needed\n");
	if (kind != WEB_PAGE && !web_may_command(c))
		return refuse(c, 401, "the token is needed\n");
	if (kind == WEB_PAGE && c->web->pages >= WEB_PAGES)
		return refuse(c, 503, "enough pages are open\n");
	c->granted = kind;
	return 0;
}

int web_ws_open(struct web_client *c, const char *protocol)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(protocol, kinds[i].name) == 0)
			c->kind = kinds[i].kind;
	if (c->kind == WEB_HTTP || c->kind != c->granted)
		return -1;
	c->idle = false;
	sbuf_init(&c->message, c->kind == WEB_PAGE ? PAGE_MESSAGE_MAX : WEB_BODY_MAX);
	if (c->kind == WEB_PAGE)
		web_page_begin(c);
	return 0;
}

/* --- Sending ---------------------------------------------------------------------------------- */

/* Stops reading from a client with many unsent bytes or unanswered requests. */
static void set_flow(struct web_client *c)
{
	bool reads = c->asked < WEB_ASKED_HIGH && c->out_len < WEB_OUT_HIGH;

	lws_rx_flow_control(c->wsi, reads);
}

void web_ws_send(struct web_client *c, enum lws_write_protocol type, struct str text)
{
	struct web_message *m = malloc(sizeof(*m) + LWS_PRE + text.len);

	if (!m) {
		web_client_kill(c);
		return;
	}
	*m = (struct web_message){.type = type, .len = text.len};
	if (text.len)
		memcpy(m->bytes + LWS_PRE, text.s, text.len);
	*c->out_last = m;
	c->out_last = &m->next;
	c->out_len += text.len;
	lws_callback_on_writable(c->wsi);
}

int web_ws_write(struct web_client *c)
{
	struct web_message *m = c->out;
	int n;

	if (!m)
		return 0;
	n = lws_write(c->wsi, m->bytes + LWS_PRE, m->len, m->type);
	c->out = m->next;
	if (!c->out)
		c->out_last = &c->out;
	c->out_len -= m->len;
	secmem_wipe(m->bytes, LWS_PRE + m->len);
	free(m);
	if (n < 0)
		return -1;
	if (c->out)
		lws_callback_on_writable(c->wsi);
	set_flow(c);
	return 0;
}

int web_ws_close(struct web_client *c, enum lws_close_status code, const char *reason)
{
	lws_close_reason(c->wsi, code, (unsigned char *)reason, strlen(reason));
	c->closing = true;
	return -1;
}

/* --- Receiving -------------------------------------------------------------------------------- */

/* A reply has the form of its request, but text only if it is UTF-8: Call-IDs need not be. A
 * message without a cookie gets no reply, as over UDP. */
static void answer(struct web_client *c, bool binary, enum link_result result, struct str reply)
{
	c->asked--;
	if (result == LINK_OK)
		web_ws_send(
			c, binary || !utf8_valid(reply) ? LWS_WRITE_BINARY : LWS_WRITE_TEXT, reply);
	else if (result != LINK_DROPPED)
		web_client_kill(c);
	if (!c->closing)
		set_flow(c);
}

static void answer_text(void *arg, enum link_result result, struct str reply)
{
	answer(arg, false, result, reply);
}

static void answer_binary(void *arg, enum link_result result, struct str reply)
{
	answer(arg, true, result, reply);
}

static int hear(struct web_client *c, struct str message)
{
	const struct ng_proxy_request request = {
		.plain = c->kind == WEB_NG_PLAIN, .token = c->proven, .client = c->from};

	if (c->kind == WEB_PAGE)
		return web_page_hear(c, message);
	if (link_ask(c->web->link, &request, message, c->binary ? answer_binary : answer_text, c))
		return web_ws_close(
			c, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "xcipherd does not answer");
	c->asked++;
	set_flow(c);
	return 0;
}

int web_ws_receive(struct web_client *c, struct str bytes)
{
	int ret;

	if (c->closing)
		return 0;
	if (lws_is_first_fragment(c->wsi)) {
		c->binary = lws_frame_is_binary(c->wsi);
		c->message_ns = clock_mono_ns();
	}
	sbuf_str(&c->message, bytes);
	if (c->message.err)
		return web_ws_close(c, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "");
	if (!lws_is_final_fragment(c->wsi))
		return 0;
	c->message_ns = 0;
	ret = hear(c, sbuf_view(&c->message));
	secmem_wipe(c->message.p, c->message.len);
	c->message.len = 0;
	return ret;
}
