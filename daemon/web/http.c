/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP requests and their replies. guard.c decides about access before the request is looked at.
 * Each connection carries one request: libwebsockets 4.1 loops forever over a POST that it read
 * together with an earlier request. */
#include "web/http.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/secmem.h"
#include "proto/bencode.h"
#include "proto/ngval.h"
#include "web/client.h"

#define TEXT    "text/plain; charset=utf-8"
#define METRICS "d7:command7:metricse"

/* Allow only our own files, and no foreign frames around them. */
#define CSP                                                                             \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
	"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const struct {
	int status;
	const char *reason, *fields;
} statuses[] = {
	{200, "OK", ""},
	{400, "Bad Request", ""},
	{401, "Unauthorized", "WWW-Authenticate: Bearer\r\n"},
	{403, "Forbidden", ""},
	{404, "Not Found", ""},
	{405, "Method Not Allowed", "Allow: GET, HEAD, POST\r\n"},
	{411, "Length Required", ""},
	{413, "Content Too Large", ""},
	{417, "Expectation Failed", ""},
	{426, "Upgrade Required", "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"},
	{500, "Internal Server Error", ""},
	{501, "Not Implemented", ""},
	{503, "Service Unavailable", "Retry-After: 1\r\n"},
};

/* --- Heads ------------------------------------------------------------------------------------ */

/* Several fields of one name are joined. A value longer than size is unknown to us. */
static struct str field(struct web_client *c, enum lws_token_indexes which, char *buf, size_t size)
{
	int n = lws_hdr_copy(c->wsi, buf, (int)size, which);

	if (n < 0)
		return STR("(too long)");
	return (struct str){buf, (size_t)n};
}

const char *web_http_stranger(struct web_client *c)
{
	struct web *w = c->web;
	char a[512], b[512];
	struct str host = field(c, WSI_TOKEN_HOST, a, sizeof(a));

	if (!http_host_known(host, str_from(w->machine), str_from(w->cfg.hosts)))
		return "this name is not known to be ours: see --http-host\n";
	if (!http_origin_ours(field(c, WSI_TOKEN_ORIGIN, b, sizeof(b)), host))
		return "requests from other sites are refused\n";
	return NULL;
}

static bool web_may_ask(struct web_client *c)
{
	char buf[HTTP_TOKEN_MAX + 64];
	bool may = http_authorized(
		&c->web->token, field(c, WSI_TOKEN_HTTP_AUTHORIZATION, buf, sizeof(buf)));

	secmem_wipe(buf, sizeof(buf));
	return may;
}

bool web_may_command(struct web_client *c)
{
	bool may = web_may_ask(c);

	c->proven = may && c->web->token.set;
	return may && (c->proven || !link_needs_token(c->web->link));
}

bool web_may_view(struct web_client *c)
{
	char buf[512];

	return c->web->token.set ||
		(http_peer_loopback(&c->from) &&
			http_host_loopback(field(c, WSI_TOKEN_HOST, buf, sizeof(buf))));
}

/* --- Replies ---------------------------------------------------------------------------------- */

static void add_head(struct sbuf *b, int status, const char *type, size_t len)
{
	const char *reason = "", *fields = "";
	char date[64];
	time_t now = time(NULL);
	struct tm tm;

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i].status == status) {
			reason = statuses[i].reason;
			fields = statuses[i].fields;
		}
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	sbuf_printf(b,
		"HTTP/1.1 %d %s\r\nDate: %s\r\nServer: xcipher-web\r\nContent-Type: %s\r\n"
		"Content-Length: %zu\r\nCache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\nContent-Security-Policy: " CSP "\r\n"
		"Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"
		"%sConnection: close\r\n\r\n",
		status, reason, date, type, len, fields);
}

/* Builds the reply as sent. -1: out of memory. */
static int prepare(struct web_client *c, int status, const char *type, struct str body)
{
	struct sbuf b;

	sbuf_init(&b, LWS_PRE + 4096 + NG_PROXY_REPLY_MAX);
	sbuf_put(&b, (char[LWS_PRE]){0}, LWS_PRE);
	add_head(&b, status, type, body.len);
	if (!c->bodiless)
		sbuf_str(&b, body);
	c->waits = false;
	if (b.err) {
		sbuf_fini(&b);
		return -1;
	}
	c->reply = (uint8_t *)b.p;
	c->reply_len = b.len - LWS_PRE;
	return 0;
}

/* False: it could not be sent. */
static bool send_reply(struct web_client *c)
{
	int n = lws_write(c->wsi, c->reply + LWS_PRE, c->reply_len, LWS_WRITE_HTTP_FINAL);

	secmem_wipe(c->reply, LWS_PRE + c->reply_len);
	free(c->reply);
	c->reply = NULL;
	sbuf_fini(&c->body);
	c->closing = true;
	return n >= 0;
}

/* Closes the client from one of its own callbacks. */
static int write_now(struct web_client *c)
{
	(void)send_reply(c);
	return -1;
}

/* Closes the client while the callback of another connection runs. An immediate close could send a
 * reset that overtakes the reply. So the sending direction ends first, after all data; then
 * libwebsockets calls again, and gets -1. */
static void write_later(struct web_client *c)
{
	if (!send_reply(c)) {
		web_client_kill(c);
	} else if (lws_partial_buffered(c->wsi)) {
		lws_rx_flow_control(c->wsi, 1);
		lws_callback_on_writable(c->wsi);
	} else {
		shutdown(lws_get_socket_fd(c->wsi), SHUT_WR);
		lws_set_timeout(c->wsi, PENDING_TIMEOUT_SHUTDOWN_FLUSH, WEB_LINGER_SEC);
	}
}

static int reply_now(struct web_client *c, int status, const char *type, struct str body)
{
	return prepare(c, status, type, body) ? -1 : write_now(c);
}

int web_http_refuse(struct web_client *c, int status, const char *why)
{
	return reply_now(c, status, TEXT, str_from(why));
}

/* Refuses from a reply of the daemon, while the callback of another connection runs. */
static void reply_later(struct web_client *c, int status, const char *type, struct str body)
{
	if (prepare(c, status, type, body))
		web_client_kill(c);
	else
		write_later(c);
}

static void refuse_later(struct web_client *c, int status, const char *why)
{
	reply_later(c, status, TEXT, str_from(why));
}

/* --- Replies of the daemon -------------------------------------------------------------------- */

static void reply_metrics(struct web_client *c, struct str reply)
{
	struct ngval *d = NULL;
	struct sbuf out;
	struct str text;
	struct pool *p;
	size_t pos;

	if (pool_create(&p, 4u << 20)) {
		web_client_kill(c);
		return;
	}
	sbuf_init(&out, NG_PROXY_REPLY_MAX);
	if (bencode_parse(&d, p, reply, &pos) == 0) {
		text = ngval_str(p, ngval_get(d, STR("metrics")));
		sbuf_str(&out, text);
		sbuf_printf(&out,
			"# HELP xcipher_web_connections Open connections of clients by HTTP.\n"
			"# TYPE xcipher_web_connections gauge\nxcipher_web_connections %u\n",
			c->web->clients);
	}
	if (out.len && !out.err && text.len)
		reply_later(c, 200, "text/plain; version=0.0.4; charset=utf-8", sbuf_view(&out));
	else
		refuse_later(c, 500, "no reply could be made\n");
	sbuf_fini(&out);
	pool_destroy(p);
}

static void on_reply(void *arg, enum link_result result, struct str reply)
{
	struct web_client *c = arg;

	if (result == LINK_GONE)
		refuse_later(c, 503, "xcipherd does not answer\n");
	else if (result == LINK_DENIED)
		refuse_later(c, 401, "the token is needed\n");
	else if (result == LINK_DROPPED)
		refuse_later(c, 400, "a cookie, a space and a dictionary are needed\n");
	else if (result == LINK_FAILED)
		refuse_later(c, 500, "no reply could be made\n");
	else if (c->metrics)
		reply_metrics(c, reply);
	else if (!c->plain || (reply.len && reply.s[0] == 'd'))
		reply_later(c, 200, "application/x-rtpengine-ng", reply);
	else
		reply_later(c, 200, "application/json", reply);
}

/* Reading stops until the reply is there: libwebsockets would loop over bytes after a body. */
static int ask(struct web_client *c, const struct ng_proxy_request *request, struct str message)
{
	if (link_ask(c->web->link, request, message, on_reply, c))
		return web_http_refuse(c, 503, "xcipherd does not answer\n");
	c->waits = true;
	lws_set_timeout(c->wsi, NO_PENDING_TIMEOUT, 0);
	lws_rx_flow_control(c->wsi, 0);
	return 0;
}

/* --- Requests --------------------------------------------------------------------------------- */

static const struct web_file *file_at(struct str path)
{
	for (const struct web_file *f = web_files; f->path; f++)
		if (str_eq(path, str_from(f->path)))
			return f;
	return NULL;
}

static int get(struct web_client *c, struct str path)
{
	const struct web_file *f = file_at(path);

	if (f && !web_may_view(c))
		return web_http_refuse(
			c, 403, "the page is only for this machine: see --http-token-file\n");
	if (f)
		return reply_now(c, 200, f->type, (struct str){(const char *)f->bytes, f->len});
	if (str_eq(path, STR("/ping")))
		return link_is_up(c->web->link)
			? reply_now(c, 200, TEXT, STR("pong\n"))
			: web_http_refuse(c, 503, "xcipherd does not answer\n");
	if (str_eq(path, STR("/ng")) || str_eq(path, STR("/ng-plain")))
		return web_http_refuse(c, 405, "POST it\n");
	if (!str_eq(path, STR("/metrics")))
		return web_http_refuse(c, 404, "not found\n");
	if (!web_may_ask(c))
		return web_http_refuse(c, 401, "the token is needed\n");
	c->metrics = true;
	return ask(c, &(struct ng_proxy_request){.plain = true}, STR(METRICS));
}

/* Checks the announced body: 0, or the status of the refusal. */
static int body_announced(struct web_client *c, bool *any)
{
	char a[256], b[256];
	struct str coding = field(c, WSI_TOKEN_HTTP_TRANSFER_ENCODING, a, sizeof(a));
	struct str length = field(c, WSI_TOKEN_HTTP_CONTENT_LENGTH, b, sizeof(b));
	uint64_t n = 0;

	c->chunked = coding.len;
	c->length = 0;
	*any = coding.len || length.len;
	if (coding.len && !str_eq_nocase(coding, STR("chunked")))
		return 501;
	if (length.len && (coding.len || str_to_u64(&n, length, INT64_MAX)))
		return 400;
	c->length = n < WEB_BODY_MAX ? (size_t)n : WEB_BODY_MAX + 1;
	return 0;
}

static int post(struct web_client *c, struct str path, bool any)
{
	char buf[64];
	struct str expects = field(c, WSI_TOKEN_HTTP_EXPECT, buf, sizeof(buf));

	c->plain = str_eq(path, STR("/ng-plain"));
	if (!c->plain && !str_eq(path, STR("/ng")))
		return web_http_refuse(c, 404, "not found\n");
	if (!web_may_command(c))
		return web_http_refuse(c, 401, "the token is needed\n");
	if (!any)
		return web_http_refuse(c, 411, "a body is needed, with its length or in chunks\n");
	if (c->length > WEB_BODY_MAX)
		return web_http_refuse(c, 413, "the body is too long\n");
	if (expects.len && !str_eq_nocase(expects, STR("100-continue")))
		return web_http_refuse(c, 417, "100-continue is all that can be expected\n");
	c->chunks = (struct chunks){0};
	sbuf_init(&c->body, WEB_BODY_MAX);
	if (expects.len) {
		static uint8_t go_on[LWS_PRE + 32];
		int n = snprintf((char *)go_on + LWS_PRE, 32, "HTTP/1.1 100 Continue\r\n\r\n");

		return lws_write(c->wsi, go_on + LWS_PRE, (size_t)n, LWS_WRITE_HTTP_HEADERS) < 0
			? -1
			: 0;
	}
	return 0;
}

int web_http_begin(struct web_client *c, struct str path)
{
	const char *wrong;
	bool any;
	int status;

	c->idle = c->metrics = false;
	c->since_ns = clock_mono_ns();
	c->bodiless = lws_hdr_total_length(c->wsi, WSI_TOKEN_HEAD_URI) > 0;
	status = body_announced(c, &any);
	wrong = web_http_stranger(c);
	if (wrong)
		return web_http_refuse(c, 403, wrong);
	if (status)
		return web_http_refuse(c, status,
			status == 501 ? "chunked is the only transfer coding that is known\n"
				      : "the length of the body is not clear\n");
	if (c->bodiless || lws_hdr_total_length(c->wsi, WSI_TOKEN_GET_URI))
		return get(c, path);
	if (lws_hdr_total_length(c->wsi, WSI_TOKEN_POST_URI))
		return post(c, path, any);
	return web_http_refuse(c, 405, "GET or POST\n");
}

static int body_ends(struct web_client *c)
{
	const struct ng_proxy_request request = {
		.plain = c->plain, .token = c->proven, .client = c->from};
	int ret;

	if (c->body.err)
		return web_http_refuse(c, 500, "no reply could be made\n");
	if (c->body.len == 0)
		return web_http_refuse(c, 400, "the body is empty\n");
	ret = ask(c, &request, sbuf_view(&c->body));
	sbuf_fini(&c->body);
	return ret;
}

int web_http_body(struct web_client *c, struct str bytes)
{
	struct str piece;
	int got = 1;

	if (c->waits)
		return 0; /* bytes after a body in chunks: the connection ends */
	if (!c->chunked) {
		sbuf_str(&c->body, bytes);
		return 0;
	}
	while (got == 1) {
		got = chunks_read(&c->chunks, &bytes, &piece);
		sbuf_str(&c->body, piece);
	}
	if (got >= 0 && c->body.err == -EMSGSIZE)
		return web_http_refuse(c, 413, "the body is too long\n");
	if (got < 0)
		return web_http_refuse(c, 400, "the chunked body is malformed\n");
	return got == 2 ? body_ends(c) : 0;
}

int web_http_complete(struct web_client *c)
{
	return c->waits || c->chunked ? 0 : body_ends(c);
}
