/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The web page in the server thread: its files, and its WebSocket, over which it gets a snapshot each second. A client says
 * what it looks at, and may end calls if it said the token. One job at a time: who reads slowly gets fewer snapshots. With
 * a token nothing is told to who does not say it within UNKNOWN_SEC. */
#include <errno.h>

#include "base/log.h"
#include "base/secmem.h"
#include "control/http_client.h"
#include "control/web.h"
#include "proto/ngval.h"

#define UNKNOWN_SEC 10
#define MESSAGE_MAX 4096u

const struct web_file *http_page_file(struct str path)
{
	for (const struct web_file *f = web_files; f->path; f++)
		if (str_eq(path, str_from(f->path)))
			return f;
	return NULL;
}

bool http_page_allowed(struct http *h, struct lws *wsi)
{
	struct http_client c = {0};
	char host[300];

	if (h->token.set)
		return true;
	http_client_begin(&c, wsi);
	return http_peer_loopback(&c.from) &&
		http_host_loopback(http_header(wsi, host, sizeof(host), WSI_TOKEN_HOST));
}

/* What comes next: a call to be ended, or a snapshot. */
static int ask(struct http_client *c)
{
	/* in: a message is arriving */
	if (c->job || c->say || c->in.len)
		return 0;
	c->kind = c->end_len ? HTTP_JOB_END : HTTP_JOB_PAGE;
	sbuf_fini(&c->in);
	sbuf_put(&c->in, c->end_len ? c->end : c->look, c->end_len ? c->end_len : c->look_len);
	c->end_len = 0;
	c->seconds = 0;
	return http_client_ask(c) ? -1 : 0;
}

static void say(struct http_client *c, const char *what)
{
	c->say = what;
	lws_callback_on_writable(c->wsi);
}

/* --- What the page says ---------------------------------------------------------------------------------------- */

static int hear_token(struct http *h, struct http_client *c, struct str token)
{
	char text[ENDPOINT_STRLEN];

	if (!http_token_is(&h->token, token)) {
		log_warn("page: wrong token from %s", endpoint_fmt(&c->from, text));
		lws_close_reason(c->wsi, LWS_CLOSE_STATUS_POLICY_VIOLATION,
			(unsigned char *)"wrong token", 11);
		return -1;
	}
	c->known = true;
	say(c, "{\"hello\":\"xcipher\",\"may end\":1}");
	return 0;
}

static int hear_look(struct http_client *c, struct str filter, struct str call)
{
	if (filter.len + call.len + 1 > sizeof(c->look) ||
		(filter.len && memchr(filter.s, '\n', filter.len)))
		return 0;
	if (filter.len)
		memcpy(c->look, filter.s, filter.len);
	c->look[filter.len] = '\n';
	if (call.len)
		memcpy(c->look + filter.len + 1, call.s, call.len);
	c->look_len = filter.len + 1 + call.len;
	return ask(c);
}

static int hear_end(struct http *h, struct http_client *c, struct str call)
{
	char text[ENDPOINT_STRLEN];

	if (!h->token.set) {
		say(c, "{\"error\":\"ending calls needs --http-token-file\"}");
		return 0;
	}
	if (call.len == 0 || call.len > sizeof(c->end))
		return 0;
	memcpy(c->end, call.s, call.len);
	c->end_len = call.len;
	log_info("page: %s ends a call", endpoint_fmt(&c->from, text));
	return ask(c);
}

static int hear(struct http *h, struct http_client *c, struct str message)
{
	struct ngval *d = NULL;
	struct pool *p;
	size_t pos;
	int ret = 0;

	if (pool_create(&p, 256 << 10))
		return -1;
	if (json_parse(&d, p, message, &pos) || d->type != NGVAL_DICT)
		ret = -1;
	else if (ngval_get(d, STR("token")))
		ret = hear_token(h, c, ngval_str(p, ngval_get(d, STR("token"))));
	else if (!c->known)
		ret = -1;
	else if (ngval_get(d, STR("end")))
		ret = hear_end(h, c, ngval_str(p, ngval_get(d, STR("end"))));
	else
		ret = hear_look(c, ngval_str(p, ngval_get(d, STR("filter"))),
			ngval_str(p, ngval_get(d, STR("call"))));
	pool_destroy(p);
	return ret;
}

static int receive(struct http_client *c, const void *in, size_t len)
{
	struct sbuf message;
	int ret;

	if (c->in.len + len > MESSAGE_MAX)
		return -1;
	sbuf_put(&c->in, in, len);
	if (c->in.err)
		return -1;
	if (!lws_is_final_fragment(c->wsi) || lws_remaining_packet_payload(c->wsi))
		return 0;
	message = c->in;
	sbuf_init(&c->in, HTTP_BODY_MAX);
	ret = hear(http_of(c->wsi), c, sbuf_view(&message));
	sbuf_fini(&message);
	return ret;
}

/* --- What the page hears --------------------------------------------------------------------------------------- */

static int writeable(struct http_client *c)
{
	struct http *h = http_of(c->wsi);
	const char *what = c->say;
	int ret;

	if (what && !c->sent) {
		size_t len = strlen(what);

		memcpy(h->chunk + LWS_PRE, what, len);
		c->say = NULL;
		if (lws_write(c->wsi, h->chunk + LWS_PRE, len, LWS_WRITE_TEXT) < (int)len)
			return -1;
		if (c->job) {
			lws_callback_on_writable(c->wsi);
			return 0;
		}
		return c->known ? ask(c) : 0;
	}
	ret = http_ws_send(c);
	if (ret > 0 && c->say)
		lws_callback_on_writable(c->wsi);
	else if (ret > 0 && c->end_len)
		return ask(c);
	return ret < 0 ? -1 : 0;
}

static int each_second(struct http_client *c)
{
	lws_set_timer_usecs(c->wsi, LWS_USEC_PER_SEC);
	c->seconds++;
	if (!c->known)
		return c->seconds > UNKNOWN_SEC ? -1 : 0;
	return ask(c);
}

static int established(struct http_client *c, struct lws *wsi)
{
	struct http *h = http_of(wsi);

	http_client_begin(c, wsi);
	if (h->pages >= HTTP_PAGES)
		return -1;
	c->counted = true;
	h->pages++;
	c->known = !h->token.set;
	c->look[0] = '\n';
	c->look_len = 1;
	lws_set_timer_usecs(wsi, LWS_USEC_PER_SEC);
	say(c, h->token.set ? "{\"need\":\"token\"}" : "{\"hello\":\"xcipher\",\"may end\":0}");
	return 0;
}

int http_page_callback(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct http_client *c = user;

	switch (reason) {
	case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
		return http_page_allowed(http_of(wsi), wsi) ? 0 : -1;
	case LWS_CALLBACK_ESTABLISHED:
		return established(c, wsi);
	case LWS_CALLBACK_RECEIVE:
		return receive(c, in, len);
	case LWS_CALLBACK_SERVER_WRITEABLE:
		return writeable(c);
	case LWS_CALLBACK_TIMER:
		return c && c->wsi ? each_second(c) : 0;
	case LWS_CALLBACK_CLOSED:
		if (c->counted)
			http_of(wsi)->pages--;
		http_client_reset(c);
		return 0;
	default:
		return 0;
	}
}
