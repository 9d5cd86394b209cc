/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page's WebSocket, which gets a snapshot each second. A client names what it displays, and may
 * end calls if it sent the token. A slow client gets fewer snapshots, and no client gets them
 * faster than each SHOW_AGAIN_NS. With a token, a client that does not send it within UNKNOWN_SEC
 * gets nothing. The page also learns when the daemon does not reply. */
#include "web/page.h"

#include <stdlib.h>

#include "proto/bencode.h"
#include "proto/json.h"
#include "proto/ngval.h"
#include "web/client.h"
#include "web/ws.h"

#define UNKNOWN_SEC   10
#define SHOW_AGAIN_NS (NS_PER_SEC / 10)
#define CALL_ID_MAX   1536u

static const struct ng_proxy_request own = {.plain = true};

static void say(struct web_client *c, const char *what)
{
	web_ws_send(c, LWS_WRITE_TEXT, str_from(what));
}

void web_page_gone(struct web_client *c)
{
	struct web_viewer *v = &c->view;

	if (v->known && !v->gone_shown)
		say(c, "{\"daemon\":0}");
	v->gone_shown = v->wants_history = true;
}

/* --- Daemon to page --------------------------------------------------------------------------- */

/* Successful replies of the daemon go to the page unchanged. */
static void forward(struct web_client *c, struct str reply)
{
	if (str_starts(reply, STR("{\"result\":\"ok\"")))
		web_ws_send(c, LWS_WRITE_TEXT, reply);
}

static void on_snapshot(void *arg, enum link_result result, struct str reply)
{
	struct web_client *c = arg;

	c->view.asked = false;
	if (result == LINK_OK)
		forward(c, reply);
	else if (result == LINK_GONE)
		web_page_gone(c);
}

static void on_history(void *arg, enum link_result result, struct str reply)
{
	if (result == LINK_OK)
		forward(arg, reply);
}

/* No new snapshot before the last one was sent. */
static void show(struct web_client *c)
{
	struct web_viewer *v = &c->view;

	if (v->asked || c->out || lws_partial_buffered(c->wsi))
		return;
	if (v->wants_history &&
		link_ask(c->web->link, &own, STR("{\"command\":\"page history\"}"), on_history,
			c) == 0)
		v->wants_history = false;
	v->shown_ns = clock_mono_ns();
	if (link_ask(c->web->link, &own, (struct str){v->look, v->look_len}, on_snapshot, c)) {
		web_page_gone(c);
		return;
	}
	v->asked = true;
	v->gone_shown = false;
}

/* A client with access first gets the last ten minutes, so that charts are complete at once. */
static void welcome(struct web_client *c)
{
	say(c,
		c->web->token.set ? "{\"hello\":\"xcipher\",\"may end\":1}"
				  : "{\"hello\":\"xcipher\",\"may end\":0}");
	c->view.known = c->view.wants_history = true;
	c->web->pages++;
}

/* Builds the request for snapshots from the page's settings. False: they did not change. */
static bool set_look(struct web_viewer *v, struct pool *p, const struct ngval *said)
{
	static const char *const names[][2] = {{"show", "show"}, {"filter", "filter"},
		{"sort", "sort"}, {"after", "after"}, {"ended", "ended"}, {"call", "call-id"}};
	struct ngval *d = ngval_dict(p);
	struct sbuf b;

	ngval_add_str(p, d, STR("command"), STR("page"));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct str value = ngval_str(p, ngval_get(said, str_from(names[i][0])));

		if (str_has_control(value))
			return false;
		if (value.len)
			ngval_add_str(p, d, str_from(names[i][1]), value);
	}
	sbuf_init(&b, WEB_LOOK_MAX);
	json_write(&b, d, false);
	if (b.err || pool_failed(p)) {
		sbuf_fini(&b);
		return false;
	}
	free(v->look);
	v->look = b.p;
	v->look_len = b.len;
	return true;
}

void web_page_begin(struct web_client *c)
{
	struct web_viewer *v = &c->view;
	struct pool *p;

	*v = (struct web_viewer){0};
	if (pool_create(&p, 65536)) {
		web_client_kill(c);
		return;
	}
	if (!set_look(v, p, NULL))
		web_client_kill(c);
	pool_destroy(p);
	if (c->web->token.set)
		say(c, "{\"need\":\"token\"}");
	else
		welcome(c);
}

void web_page_end(struct web_client *c)
{
	if (c->view.known)
		c->web->pages--;
	free(c->view.look);
	free(c->view.ending);
	c->view = (struct web_viewer){0};
}

int web_page_second(struct web_client *c)
{
	if (!c->view.known)
		return ++c->view.seconds > UNKNOWN_SEC ? -1 : 0;
	show(c);
	return 0;
}

/* --- Page to daemon --------------------------------------------------------------------------- */

static int hear_token(struct web_client *c, struct str token)
{
	char text[ENDPOINT_STRLEN];

	if (!http_token_is(&c->web->token, token)) {
		log_warn("page: wrong token from %s", endpoint_fmt(&c->from, text));
		return web_ws_close(c, LWS_CLOSE_STATUS_POLICY_VIOLATION, "wrong token");
	}
	if (c->view.known)
		return 0;
	if (c->web->pages >= WEB_PAGES)
		return web_ws_close(c, LWS_CLOSE_STATUS_POLICY_VIOLATION, "enough pages are open");
	welcome(c);
	return 0;
}

static void on_ended(void *arg, enum link_result result, struct str reply)
{
	struct web_client *c = arg;
	struct ngval *d;
	struct sbuf out;
	struct pool *p;

	if (pool_create(&p, 65536)) {
		web_client_kill(c);
		return;
	}
	sbuf_init(&out, 0);
	d = ngval_dict(p);
	ngval_add_str(p, d, STR("ended"), str_from(c->view.ending));
	ngval_add_int(p, d, STR("ok"),
		result == LINK_OK && memmem(reply.s, reply.len, "6:result2:ok", 12) &&
			!memmem(reply.s, reply.len, "7:warning", 9));
	json_write(&out, d, false);
	if (!out.err)
		web_ws_send(c, LWS_WRITE_TEXT, sbuf_view(&out));
	sbuf_fini(&out);
	pool_destroy(p);
	free(c->view.ending);
	c->view.ending = NULL;
}

/* Without delay, as ng's delete. In bencode, because Call-IDs need not be UTF-8. */
static int hear_end(struct web_client *c, struct pool *p, struct str call)
{
	struct ng_proxy_request request = {.plain = true, .token = true, .client = c->from};
	struct ngval *d = ngval_dict(p);
	char text[ENDPOINT_STRLEN];
	struct sbuf b;

	if (!c->web->token.set) {
		say(c, "{\"error\":\"ending calls needs --http-token-file\"}");
		return 0;
	}
	if (call.len == 0 || call.len > CALL_ID_MAX || c->view.ending)
		return 0;
	log_info("page: %s ends a call", endpoint_fmt(&c->from, text));
	ngval_add_str(p, d, STR("command"), STR("delete"));
	ngval_add_str(p, d, STR("call-id"), call);
	ngval_add_int(p, d, STR("delete delay"), 0);
	ngval_add_str(p, d, STR("flags"), STR("fast"));
	sbuf_init(&b, 0);
	bencode_write(&b, d);
	c->view.ending = strndup(call.s, call.len);
	if (!c->view.ending || b.err || pool_failed(p))
		web_client_kill(c);
	else if (link_ask(c->web->link, &request, sbuf_view(&b), on_ended, c))
		on_ended(c, LINK_GONE, STR_NONE);
	sbuf_fini(&b);
	return 0;
}

static int hear_look(struct web_client *c, struct pool *p, const struct ngval *said)
{
	struct web_viewer *v = &c->view;
	uint64_t now = clock_mono_ns(), next = v->shown_ns + SHOW_AGAIN_NS;

	if (!set_look(v, p, said))
		return 0;
	lws_set_timer_usecs(c->wsi, next > now ? (lws_usec_t)((next - now) / 1000) + 1 : 1);
	return 0;
}

static int hear(struct web_client *c, struct pool *p, const struct ngval *said)
{
	const struct ngval *token = ngval_get(said, STR("token"));
	const struct ngval *end = ngval_get(said, STR("end"));

	if (token)
		return hear_token(c, ngval_str(p, token));
	if (!c->view.known)
		return web_ws_close(c, LWS_CLOSE_STATUS_POLICY_VIOLATION, "the token comes first");
	return end ? hear_end(c, p, ngval_str(p, end)) : hear_look(c, p, said);
}

int web_page_hear(struct web_client *c, struct str message)
{
	struct ngval *d = NULL;
	struct pool *p;
	size_t pos;
	int ret;

	if (pool_create(&p, 256 << 10))
		return -1;
	if (json_parse(&d, p, message, &pos) || d->type != NGVAL_DICT)
		ret = web_ws_close(c, LWS_CLOSE_STATUS_POLICY_VIOLATION, "unknown message");
	else
		ret = hear(c, p, d);
	pool_destroy(p);
	return ret;
}
