/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The web page: its files, and its WebSocket, over which it gets a snapshot each second. A client says what it looks at, and
 * may end calls if it said the token. Who reads slowly gets fewer snapshots, and nobody gets them faster than each
 * SHOW_AGAIN_NS, whatever it says. With a token nothing is told to who does not say it within UNKNOWN_SEC. */
#include "control/http_int.h"

#include <errno.h>

#include "base/clock.h"
#include "proto/ngval.h"

#define UNKNOWN_SEC   10
#define SHOW_AGAIN_NS (NS_PER_SEC / 10)

const struct web_file *http_page_file(struct str path)
{
	for (const struct web_file *f = web_files; f->path; f++)
		if (str_eq(path, str_from(f->path)))
			return f;
	return NULL;
}

static int write_and_free(struct pool *p, const struct ngval *tree, struct sbuf *out)
{
	int err = pool_failed(p) ? -ENOMEM : 0;

	if (!err)
		json_write(out, tree, false);
	pool_destroy(p);
	return err ? err : out->err;
}

/* --- What is looked at ------------------------------------------------------------------------------------------ */

static void page_look_read(struct page_look *out, struct str text)
{
	out->show = str_cut(&text, '\n');
	out->filter = str_cut(&text, '\n');
	out->sort = str_cut(&text, '\n');
	out->after = str_cut(&text, '\n');
	out->ended = str_cut(&text, '\n');
	out->call = text;
}

static size_t page_look_write(char *buf, size_t size, const struct page_look *look)
{
	const struct str field[] = {
		look->show, look->filter, look->sort, look->after, look->ended, look->call};
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_LEN(field); i++) {
		bool last = i + 1 == ARRAY_LEN(field);

		if (len + field[i].len + !last > size)
			return 0;
		if (!last && field[i].len && memchr(field[i].s, '\n', field[i].len))
			return 0;
		if (field[i].len)
			memcpy(buf + len, field[i].s, field[i].len);
		len += field[i].len;
		if (!last)
			buf[len++] = '\n';
	}
	return len;
}

/* --- Ending a call ---------------------------------------------------------------------------------------------- */

static int page_end_call(struct ng_front *f, struct str call_id, uint64_t now_ns, struct sbuf *out)
{
	struct sbuf request, reply;
	struct ngval *d;
	struct pool *p;
	int err = pool_create(&p, HANDLER_POOL_LIMIT);

	if (err)
		return err;
	sbuf_init(&request, 0);
	sbuf_init(&reply, 0);
	d = ngval_dict(p);
	ngval_add_str(p, d, STR("command"), STR("delete"));
	ngval_add_str(p, d, STR("call-id"), call_id);
	ngval_add_int(p, d, STR("delete delay"), 0);
	ngval_add_str(p, d, STR("flags"), STR("fast"));
	/* bencode: Call-IDs need not be UTF-8 */
	bencode_write(&request, d);
	err = request.err ? request.err : ng_front_plain(f, sbuf_view(&request), now_ns, &reply);
	d = ngval_dict(p);
	ngval_add_str(p, d, STR("ended"), call_id);
	ngval_add_int(p, d, STR("ok"),
		!err && reply.len && memmem(reply.p, reply.len, "6:result2:ok", 12) &&
			!memmem(reply.p, reply.len, "7:warning", 9));
	sbuf_fini(&request);
	sbuf_fini(&reply);
	return write_and_free(p, d, out);
}

static int snapshot(struct http_client *c, const struct page_look *look, struct sbuf *out)
{
	struct ngval *d;
	struct pool *p;
	int err = pool_create(&p, HANDLER_POOL_LIMIT);

	if (err)
		return err;
	d = ngval_dict(p);
	if (look)
		page_snapshot(&c->http->cfg.page, look, p, clock_real_ns(), d);
	else
		page_history(&c->http->cfg.page, p, d);
	return write_and_free(p, d, out);
}

static void say(struct http_client *c, const char *what)
{
	http_ws_send(c, WS_TEXT, str_from(what));
}

/* --- What the page hears --------------------------------------------------------------------------------------- */

/* What was told before is read first. */
static void show(struct http_client *c)
{
	struct http_viewer *v = &c->view;
	struct page_look look;
	struct sbuf out;

	if (http_client_unsent(c))
		return;
	v->shown_ns = clock_mono_ns();
	sbuf_init(&out, HTTP_REPLY_MAX);
	page_look_read(&look, (struct str){v->look, v->look_len});
	if (snapshot(c, &look, &out) == 0)
		http_ws_send(c, WS_TEXT, sbuf_view(&out));
	sbuf_fini(&out);
}

static void each_second(void *arg)
{
	struct http_client *c = arg;

	if (c->state != HTTP_IN_WEBSOCKET)
		return;
	if (c->view.known)
		show(c);
	else if (++c->view.seconds > UNKNOWN_SEC)
		http_ws_close(c, WS_CODE_AWAY, "");
	http_client_turn(c);
}

/* The next snapshot, and from then on one each second. */
static int show_after(struct http_client *c, uint64_t ns)
{
	struct http_viewer *v = &c->view;

	loop_timer_remove(v->timer);
	v->timer = NULL;
	return loop_timer_add(c->http->loop, &v->timer, ns, NS_PER_SEC, each_second, c);
}

/* Who may see it gets the last ten minutes first, so that charts are full at once. */
static void welcome(struct http_client *c)
{
	struct sbuf out;

	say(c,
		c->http->token.set ? "{\"hello\":\"xcipher\",\"may end\":1}"
				   : "{\"hello\":\"xcipher\",\"may end\":0}");
	sbuf_init(&out, HTTP_REPLY_MAX);
	if (snapshot(c, NULL, &out) == 0)
		http_ws_send(c, WS_TEXT, sbuf_view(&out));
	sbuf_fini(&out);
}

int http_page_begin(struct http_client *c)
{
	struct http_viewer *v = &c->view;
	bool token = c->http->token.set;

	*v = (struct http_viewer){.counted = true, .known = !token};
	v->look_len = page_look_write(v->look, sizeof(v->look), &(struct page_look){0});
	c->http->pages++;
	if (token)
		say(c, "{\"need\":\"token\"}");
	else
		welcome(c);
	return show_after(c, NS_PER_SEC);
}

void http_page_end(struct http_client *c)
{
	loop_timer_remove(c->view.timer);
	if (c->view.counted)
		c->http->pages--;
	c->view = (struct http_viewer){0};
}

/* --- What the page says ---------------------------------------------------------------------------------------- */

static void hear_token(struct http_client *c, struct str token)
{
	char text[ENDPOINT_STRLEN];

	if (!http_token_is(&c->http->token, token)) {
		log_warn("page: wrong token from %s", endpoint_fmt(&c->from, text));
		http_ws_close(c, WS_CODE_POLICY, "wrong token");
		return;
	}
	if (!c->view.known)
		welcome(c);
	c->view.known = true;
}

static struct str field(struct pool *p, const struct ngval *d, const char *key)
{
	return ngval_str(p, ngval_get(d, str_from(key)));
}

static void hear_look(struct http_client *c, struct pool *p, const struct ngval *d)
{
	struct http_viewer *v = &c->view;
	uint64_t now = clock_mono_ns(), next = v->shown_ns + SHOW_AGAIN_NS;
	struct page_look look = {.show = field(p, d, "show"),
		.filter = field(p, d, "filter"),
		.sort = field(p, d, "sort"),
		.after = field(p, d, "after"),
		.ended = field(p, d, "ended"),
		.call = field(p, d, "call")};
	char text[HTTP_LOOK_MAX];
	size_t len = page_look_write(text, sizeof(text), &look);

	if (!len)
		return;
	memcpy(v->look, text, len);
	v->look_len = len;
	if (show_after(c, next > now ? next - now : 0))
		http_ws_close(c, WS_CODE_INTERNAL, "");
}

static void hear_end(struct http_client *c, struct str call)
{
	char text[ENDPOINT_STRLEN];
	struct sbuf out;

	if (!c->http->token.set) {
		say(c, "{\"error\":\"ending calls needs --http-token-file\"}");
		return;
	}
	if (call.len == 0 || call.len > HTTP_LOOK_MAX)
		return;
	log_info("page: %s ends a call", endpoint_fmt(&c->from, text));
	sbuf_init(&out, HTTP_REPLY_MAX);
	if (page_end_call(c->http->front, call, clock_real_ns(), &out) == 0)
		http_ws_send(c, WS_TEXT, sbuf_view(&out));
	sbuf_fini(&out);
}

void http_page_hear(struct http_client *c, struct str message)
{
	struct ngval *d = NULL;
	struct pool *p;
	size_t pos;

	if (pool_create(&p, 256 << 10)) {
		http_ws_close(c, WS_CODE_INTERNAL, "");
		return;
	}
	if (json_parse(&d, p, message, &pos) || d->type != NGVAL_DICT)
		http_ws_close(c, WS_CODE_POLICY, "this is not what the page says");
	else if (ngval_get(d, STR("token")))
		hear_token(c, ngval_str(p, ngval_get(d, STR("token"))));
	else if (!c->view.known)
		http_ws_close(c, WS_CODE_POLICY, "the token comes first");
	else if (ngval_get(d, STR("end")))
		hear_end(c, ngval_str(p, ngval_get(d, STR("end"))));
	else
		hear_look(c, p, d);
	pool_destroy(p);
}
