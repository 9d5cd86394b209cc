/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The server thread: HTTP/1.1 and WebSocket by libwebsockets. Everything about a client is bounded: its request, its one
 * job on its way, its reply, and the time it may take for them. Asks http_guard.c who may speak, and the control thread
 * (by jobs) for everything that needs calls. Sends nothing that it was not asked for. */
#include "control/http_client.h"
#include "control/web.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/secmem.h"

#define TRANSACTION_SEC 60 /* a request and its reply */
#define KEEPALIVE_SEC   60 /* between requests */
#define HEADER_SEC      15
#define HEADER_LEN      4096

struct http *http_of(struct lws *wsi)
{
	return lws_context_user(lws_get_context(wsi));
}

struct str http_header(struct lws *wsi, char *buf, int len, enum lws_token_indexes token)
{
	int n = lws_hdr_copy(wsi, buf, len, token);

	return n < 0 && lws_hdr_total_length(wsi, token) > 0 ? STR("?")
		: n > 0                                      ? (struct str){buf, (size_t)n}
							     : STR_NONE;
}

static void peer_of(struct lws *wsi, struct endpoint *from)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	*from = (struct endpoint){0};
	if (getpeername(lws_get_socket_fd(wsi), (struct sockaddr *)&sa, &len) == 0)
		endpoint_from_sockaddr(from, &sa);
}

void http_client_reset(struct http_client *c)
{
	if (c->job) {
		if (c->answered)
			http_job_free(c->job);
		else
			c->job->client = NULL; /* freed when it comes back */
	}
	sbuf_fini(&c->in);
	*c = (struct http_client){0};
}

void http_client_begin(struct http_client *c, struct lws *wsi)
{
	http_client_reset(c);
	c->wsi = wsi;
	peer_of(wsi, &c->from);
	sbuf_init(&c->in, HTTP_BODY_MAX);
}

/* Hands what c->in holds to the control thread. */
int http_client_ask(struct http_client *c)
{
	struct http *h = http_of(c->wsi);
	struct http_job *j = http_job_take(h);

	if (!j)
		return -EBUSY;
	j->kind = c->kind;
	j->from = c->from;
	j->body = c->in;
	sbuf_init(&c->in, HTTP_BODY_MAX);
	j->client = c;
	c->job = j;
	c->answered = false;
	http_job_ask(h, j);
	return 0;
}

/* --- Replies over HTTP ----------------------------------------------------------------------------------------- */

static void reply(struct http_client *c, int status, const char *type, struct str body)
{
	c->status = status;
	c->type = type;
	c->out = body;
	c->sent = 0;
	c->head_sent = false;
	lws_callback_on_writable(c->wsi);
}

#define TEXT "text/plain; charset=utf-8"

/* What is wrong, in a line; the connection ends, since a body may follow that nobody wants. */
static int refuse(struct http_client *c, int status, const char *why)
{
	c->close = true;
	reply(c, status, TEXT, str_from(why));
	return 0;
}

static int add(struct lws *wsi, const char *name, const char *value, uint8_t **p, uint8_t *end)
{
	return lws_add_http_header_by_name(
		wsi, (const uint8_t *)name, (const uint8_t *)value, (int)strlen(value), p, end);
}

/* Nothing but our own files, and no frames of others around them. */
#define CSP                                                                             \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
	"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static int send_head(struct http *h, struct http_client *c)
{
	uint8_t *start = h->chunk + LWS_PRE, *p = start, *end = h->chunk + sizeof(h->chunk);
	struct lws *wsi = c->wsi;
	int err =
		lws_add_http_common_headers(wsi, (unsigned)c->status, c->type, c->out.len, &p, end);

	err = err || add(wsi, "cache-control:", "no-store", &p, end);
	err = err || add(wsi, "x-content-type-options:", "nosniff", &p, end);
	err = err || add(wsi, "content-security-policy:", CSP, &p, end);
	err = err || add(wsi, "referrer-policy:", "no-referrer", &p, end);
	err = err || add(wsi, "cross-origin-resource-policy:", "same-origin", &p, end);
	if (c->status == 401)
		err = err || add(wsi, "www-authenticate:", "Bearer", &p, end);
	err = err || lws_finalize_write_http_header(wsi, start, &p, end);
	c->head_sent = true;
	return err ? -1 : 0;
}

/* -1: the connection ends. */
static int send_some(struct http *h, struct http_client *c)
{
	size_t n = c->out.len - c->sent < HTTP_CHUNK ? c->out.len - c->sent : HTTP_CHUNK;
	bool last = c->sent + n == c->out.len;
	struct lws *wsi = c->wsi;

	if (n)
		memcpy(h->chunk + LWS_PRE, c->out.s + c->sent, n);
	if (n &&
		lws_write(wsi, h->chunk + LWS_PRE, n,
			last ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < (int)n)
		return -1;
	secmem_wipe(h->chunk, LWS_PRE + n);
	c->sent += n;
	if (!last) {
		lws_callback_on_writable(wsi);
		return 0;
	}
	http_client_reset(c);
	/* no further request: libwebsockets 4.1 goes wrong over those that came early */
	return -1;
}

static int http_writeable(struct http_client *c)
{
	struct http *h = http_of(c->wsi);

	if (c->job && c->answered && !c->status) {
		static const char *const type[] = {[HTTP_JOB_NG] = "application/x-rtpengine-ng",
			[HTTP_JOB_NG_PLAIN] = "application/json",
			[HTTP_JOB_METRICS] = "text/plain; version=0.0.4; charset=utf-8"};
		struct str body = sbuf_view(&c->job->reply);

		if (c->job->err == -ENOMSG)
			reply(c, 400, TEXT, STR("a cookie, a space and a dictionary are needed\n"));
		else if (c->job->err)
			reply(c, 500, TEXT, STR("no reply could be made\n"));
		else
			reply(c, 200,
				c->job->kind == HTTP_JOB_NG_PLAIN && body.len && body.s[0] == 'd'
					? type[HTTP_JOB_NG]
					: type[c->job->kind],
				body);
		return 0;
	}
	if (!c->status)
		return 0;
	if (!c->head_sent) {
		lws_callback_on_writable(c->wsi);
		return send_head(h, c);
	}
	return send_some(h, c);
}

/* --- Requests over HTTP ---------------------------------------------------------------------------------------- */

/* By what name we were reached and where from. NULL, or what is wrong. */
static const char *stranger(struct http *h, struct lws *wsi)
{
	char buf[300], origin[300];
	struct str host = http_header(wsi, buf, sizeof(buf), WSI_TOKEN_HOST);

	if (!http_host_known(host, str_from(h->machine), str_from(h->cfg.hosts)))
		return "this name is not known to be ours: see --http-host\n";
	if (!http_origin_ours(http_header(wsi, origin, sizeof(origin), WSI_TOKEN_ORIGIN), host))
		return "requests from other sites are refused\n";
	return NULL;
}

static bool authorized(struct http *h, struct lws *wsi)
{
	char buf[HTTP_TOKEN_MAX + 64];
	bool ok = http_authorized(
		&h->token, http_header(wsi, buf, sizeof(buf), WSI_TOKEN_HTTP_AUTHORIZATION));

	secmem_wipe(buf, sizeof(buf));
	return ok;
}

static int get_page(struct http *h, struct http_client *c, const struct web_file *f)
{
	if (!http_page_allowed(h, c->wsi))
		return refuse(c, 403, "the page is only for this machine: see --http-token-file\n");
	reply(c, 200, f->type, (struct str){(const char *)f->bytes, f->len});
	return 0;
}

static int get(struct http *h, struct http_client *c, struct str path)
{
	const struct web_file *file = h->cfg.page.calls ? http_page_file(path) : NULL;

	if (file)
		return get_page(h, c, file);
	if (str_eq(path, STR("/ping"))) {
		reply(c, 200, TEXT, STR("pong\n"));
		return 0;
	}
	if (str_eq(path, STR("/metrics")) && h->cfg.metrics) {
		if (!authorized(h, c->wsi))
			return refuse(c, 401, "the token is needed\n");
		c->kind = HTTP_JOB_METRICS;
		return http_client_ask(c) ? refuse(c, 503, "busy\n") : 0;
	}
	if (str_eq(path, STR("/ng")) || str_eq(path, STR("/ng-plain")))
		return refuse(c, 405, "POST it\n");
	return refuse(c, 404, "there is nothing here\n");
}

static int post(struct http *h, struct http_client *c, struct str path)
{
	char buf[32];
	struct str length = http_header(c->wsi, buf, sizeof(buf), WSI_TOKEN_HTTP_CONTENT_LENGTH);
	uint64_t len;

	if (!str_eq(path, STR("/ng")) && !str_eq(path, STR("/ng-plain")))
		return refuse(c, 404, "there is nothing here\n");
	if (!authorized(h, c->wsi))
		return refuse(c, 401, "the token is needed\n");
	if (length.len == 0)
		return refuse(c, 411, "a content length is needed\n");
	if (str_to_u64(&len, str_trim(length), HTTP_BODY_MAX))
		return refuse(c, 413, "the body is too long\n");
	if (len == 0)
		return refuse(c, 400, "the body is empty\n");
	c->kind = str_eq(path, STR("/ng")) ? HTTP_JOB_NG : HTTP_JOB_NG_PLAIN;
	c->expected = (size_t)len;
	return 0;
}

static int http_begin(struct http_client *c, struct lws *wsi, struct str path)
{
	struct http *h = http_of(wsi);
	const char *wrong;

	http_client_begin(c, wsi);
	lws_set_timer_usecs(wsi, TRANSACTION_SEC * LWS_USEC_PER_SEC);
	wrong = stranger(h, wsi);
	if (wrong)
		return refuse(c, 403, wrong);
	if (lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI))
		return get(h, c, path);
	if (lws_hdr_total_length(wsi, WSI_TOKEN_POST_URI))
		return post(h, c, path);
	return refuse(c, 405, "GET or POST\n");
}

/* The library uses a connection after a body's callback asked it to end it: it is ended from elsewhere. */
static void end_soon(struct http_client *c)
{
	lws_set_timeout(c->wsi, PENDING_TIMEOUT_HTTP_CONTENT, LWS_TO_KILL_ASYNC);
}

static int http_body(struct http_client *c, const void *in, size_t len)
{
	if (c->status || c->job)
		return 0; /* refused already */
	if (len > c->expected - c->in.len) {
		end_soon(c);
		return 0;
	}
	sbuf_put(&c->in, in, len);
	if (c->in.err)
		end_soon(c);
	return 0;
}

/* libwebsockets 4.1 comes here over and over while something waits behind a body that is not answered yet. Where the body itself
 * came behind another request it never does anything else, so such a connection ends. Clients that send a request after a POST
 * before they have its reply are not known (RFC 9112 9.3.2 tells them not to). */
static int http_body_end(struct http_client *c)
{
	if (c->body_ends++) {
		if (c->body_ends == 2)
			end_soon(c);
		return 0;
	}
	if (c->status)
		return 0;
	return http_client_ask(c) ? refuse(c, 503, "busy\n") : 0;
}

/* --- Connections ----------------------------------------------------------------------------------------------- */

static void take_accepted(struct http *h)
{
	int fd;

	while (ring_pop(&h->accepted, &fd)) {
		struct lws *wsi = lws_adopt_socket_vhost(h->vhost, fd);

		if (wsi)
			lws_set_opaque_user_data(wsi, h); /* counted */
		else
			atomic_fetch_sub(&h->connections, 1);
	}
}

static void take_done(struct http *h)
{
	uint32_t number;

	while (ring_pop(&h->done, &number)) {
		struct http_job *j = &h->job[number];

		if (!j->client) {
			http_job_free(j);
			continue;
		}
		j->client->answered = true;
		lws_callback_on_writable(j->client->wsi);
	}
}

/* An upgrade to WebSocket; >0: refused with a reply. */
static int upgrade(struct lws *wsi, const char *to)
{
	struct http *h = http_of(wsi);
	const char *wrong;

	if (!to || strcasecmp(to, "websocket"))
		return -1; /* HTTP/2 has nothing for us */
	wrong = stranger(h, wsi);
	if (!wrong && !lws_hdr_total_length(wsi, WSI_TOKEN_PROTOCOL))
		wrong = "a WebSocket needs a sub-protocol\n";
	if (!wrong)
		return 0;
	return lws_return_http_status(wsi, 403, wrong) ? -1 : 1;
}

static int on_http(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct http_client *c = user;

	switch (reason) {
	case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
		take_accepted(http_of(wsi));
		take_done(http_of(wsi));
		return 0;
	case LWS_CALLBACK_WSI_DESTROY:
		if (lws_get_opaque_user_data(wsi))
			atomic_fetch_sub(&http_of(wsi)->connections, 1);
		return 0;
	case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
		return upgrade(wsi, in);
	case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
		return -1; /* not a sub-protocol */
	case LWS_CALLBACK_HTTP:
		return http_begin(c, wsi, (struct str){in, len});
	case LWS_CALLBACK_HTTP_BODY:
		return http_body(c, in, len);
	case LWS_CALLBACK_HTTP_BODY_COMPLETION:
		return http_body_end(c);
	case LWS_CALLBACK_HTTP_WRITEABLE:
		return c && c->wsi ? http_writeable(c) : 0;
	case LWS_CALLBACK_TIMER:
		return c && c->wsi ? -1 : 0; /* took too long, or was answered long ago */
	case LWS_CALLBACK_CLOSED_HTTP:
	case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
		if (c)
			http_client_reset(c);
		return 0;
	default:
		return 0;
	}
}

/* --- ng over WebSocket ----------------------------------------------------------------------------------------- */

/* One request at a time: what comes meanwhile waits in the socket. */
static int ws_receive(struct http_client *c, const void *in, size_t len)
{
	if (c->job)
		return -1;
	if (lws_is_first_fragment(c->wsi))
		c->binary = lws_frame_is_binary(c->wsi);
	sbuf_put(&c->in, in, len);
	if (c->in.err) {
		lws_close_reason(c->wsi, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, NULL, 0);
		return -1;
	}
	if (!lws_is_final_fragment(c->wsi) || lws_remaining_packet_payload(c->wsi))
		return 0;
	lws_rx_flow_control(c->wsi, 0);
	return http_client_ask(c) ? -1 : 0;
}

int http_ws_send(struct http_client *c)
{
	struct http *h = http_of(c->wsi);
	struct str out = c->job && c->answered ? sbuf_view(&c->job->reply) : STR_NONE;
	size_t n = out.len - c->sent < HTTP_CHUNK ? out.len - c->sent : HTTP_CHUNK;
	int how = c->sent ? LWS_WRITE_CONTINUATION : c->binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT;

	if (!c->job || !c->answered)
		return 0;
	/* a message without cookie gets none, as over UDP */
	if (n && !c->job->err) {
		bool last = c->sent + n == out.len;

		memcpy(h->chunk + LWS_PRE, out.s + c->sent, n);
		if (lws_write(c->wsi, h->chunk + LWS_PRE, n,
			    (enum lws_write_protocol)(last ? how : how | LWS_WRITE_NO_FIN)) <
			(int)n)
			return -1;
		secmem_wipe(h->chunk, LWS_PRE + n);
		c->sent += n;
		lws_callback_on_writable(c->wsi);
		if (!last)
			return 0;
	}
	http_job_free(c->job);
	c->job = NULL;
	c->answered = false;
	c->sent = 0;
	return 1;
}

static int ws_writeable(struct http_client *c)
{
	int ret = http_ws_send(c);

	if (ret > 0)
		lws_rx_flow_control(c->wsi, 1);
	return ret < 0 ? -1 : 0;
}

static int on_ng(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct http_client *c = user;

	switch (reason) {
	case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
		return authorized(http_of(wsi), wsi) ? 0 : -1;
	case LWS_CALLBACK_ESTABLISHED:
		http_client_begin(c, wsi);
		c->kind = strncmp(lws_get_protocol(wsi)->name, "ng-plain", 8) ? HTTP_JOB_NG
									      : HTTP_JOB_NG_PLAIN;
		return 0;
	case LWS_CALLBACK_RECEIVE:
		return ws_receive(c, in, len);
	case LWS_CALLBACK_SERVER_WRITEABLE:
		return ws_writeable(c);
	case LWS_CALLBACK_CLOSED:
		http_client_reset(c);
		return 0;
	default:
		return 0;
	}
}

/* --- The thread ------------------------------------------------------------------------------------------------ */

static const struct lws_protocols protocols[] = {
	{.name = "http", .callback = on_http, .per_session_data_size = sizeof(struct http_client)},
	{.name = "ng.rtpengine.com",
		.callback = on_ng,
		.per_session_data_size = sizeof(struct http_client),
		.rx_buffer_size = 4096},
	{.name = "ng-plain.rtpengine.com",
		.callback = on_ng,
		.per_session_data_size = sizeof(struct http_client),
		.rx_buffer_size = 4096},
	{.name = "page.xcipher",
		.callback = http_page_callback,
		.per_session_data_size = sizeof(struct http_client),
		.rx_buffer_size = 4096},
	{.name = NULL},
};

/* A half-open WebSocket is found out by pings. */
static const lws_retry_bo_t liveliness = {
	.secs_since_valid_ping = 30, .secs_since_valid_hangup = 45};

/* The library's complaints are about what clients do: nothing that an operator could act on. */
static void library_log(int level, const char *line)
{
	(void)level;
	log_debug("HTTP: %s", line);
}

static void *serve(void *arg)
{
	struct http *h = arg;

	while (!atomic_load(&h->stop) && lws_service(h->lws, 0) >= 0)
		;
	return NULL;
}

int http_server_start(struct http *h)
{
	struct lws_context_creation_info info = {
		.port = CONTEXT_PORT_NO_LISTEN,
		.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS,
		.protocols = protocols,
		.user = h,
		.gid = (gid_t)-1,
		.uid = (uid_t)-1,
		.vhost_name = "xcipher",
		.server_string = "xcipherd",
		.timeout_secs = HEADER_SEC,
		.timeout_secs_ah_idle = HEADER_SEC,
		.keepalive_timeout = KEEPALIVE_SEC,
		.max_http_header_data = HEADER_LEN,
		.max_http_header_pool = HTTP_CONNECTIONS,
		.fd_limit_per_thread = HTTP_CONNECTIONS + 8,
		.retry_and_idle_policy = &liveliness,
	};
	int err;

	lws_set_log_level(LLL_ERR | LLL_WARN, library_log);
	h->lws = lws_create_context(&info);
	if (!h->lws)
		return -ENOMEM;
	h->vhost = lws_create_vhost(h->lws, &info);
	if (!h->vhost)
		return -ENOMEM;
	err = pthread_create(&h->thread, NULL, serve, h);
	if (err)
		return -err;
	h->running = true;
	pthread_setname_np(h->thread, "http");
	return 0;
}

void http_server_wake(struct http *h)
{
	lws_cancel_service(h->lws);
}

void http_server_stop(struct http *h)
{
	if (h->running) {
		atomic_store(&h->stop, true);
		lws_cancel_service(h->lws);
		pthread_join(h->thread, NULL);
	}
	if (h->lws)
		lws_context_destroy(h->lws);
}
