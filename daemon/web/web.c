/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The server: the context of libwebsockets, and its callbacks, one line each. */
#include "web/web.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/secmem.h"
#include "base/secret_file.h"
#include "web/client.h"
#include "web/http.h"
#include "web/page.h"
#include "web/ws.h"

#define CHUNK        65536u /* bytes per read */
#define HEAD_MAX     16384u
#define LOG_EVERY_NS (10 * NS_PER_SEC)
#define LISTEN_FDS   256 /* descriptors that can be open at start */

static struct web *web_of(struct lws *wsi)
{
	return lws_context_user(lws_get_context(wsi));
}

/* --- Callbacks -------------------------------------------------------------------------------- */

/* Callbacks of WebSockets. */
static int on_websocket(
	struct web_client *c, enum lws_callback_reasons reason, struct str in, const char *protocol)
{
	switch (reason) {
	case LWS_CALLBACK_ESTABLISHED:
		return web_ws_open(c, protocol);
	case LWS_CALLBACK_RECEIVE:
		return web_ws_receive(c, in);
	case LWS_CALLBACK_SERVER_WRITEABLE:
		return web_ws_write(c);
	case LWS_CALLBACK_TIMER:
		return c->kind == WEB_PAGE && !c->closing ? web_page_second(c) : 0;
	default:
		return 0;
	}
}

static int on_http(struct web_client *c, enum lws_callback_reasons reason, struct str in)
{
	switch (reason) {
	case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
		return web_ws_confirm(c, in.s);
	case LWS_CALLBACK_HTTP:
		return web_http_begin(c, in);
	case LWS_CALLBACK_HTTP_BODY:
		return web_http_body(c, in);
	case LWS_CALLBACK_HTTP_BODY_COMPLETION:
		return web_http_complete(c);
	default:
		return 0;
	}
}

static int on_client(struct web_client *c, struct lws *wsi, enum lws_callback_reasons reason,
	void *in, size_t len)
{
	struct str bytes = {in, len};

	if (c->closing && c->kind == WEB_HTTP)
		return -1;
	switch (reason) {
	case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
	case LWS_CALLBACK_HTTP:
	case LWS_CALLBACK_HTTP_BODY:
	case LWS_CALLBACK_HTTP_BODY_COMPLETION:
		return on_http(c, reason, bytes);
	default:
		return on_websocket(c, reason, bytes, lws_get_protocol(wsi)->name);
	}
}

/* Excludes our connection to the daemon. */
static bool is_client(struct lws *wsi)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	return getsockopt(lws_get_socket_fd(wsi), SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
		domain != AF_UNIX;
}

static int on_event(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct web_client *c = lws_get_opaque_user_data(wsi);

	(void)user;
	switch (reason) {
	case LWS_CALLBACK_FILTER_NETWORK_CONNECTION:
		return !web_client_admit(web_of(wsi), (int)(intptr_t)in);
	case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
		return is_client(wsi) && !web_client_open(web_of(wsi), wsi) ? -1 : 0;
	case LWS_CALLBACK_WSI_DESTROY:
		if (c)
			web_client_close(c);
		return 0;
	default:
		return c ? on_client(c, wsi, reason, in, len) : 0;
	}
}

static int on_link(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct web *w = web_of(wsi);

	(void)user;
	return w->link ? link_event(w->link, reason, in, len) : 0;
}

const struct lws_protocols web_protocols[] = {
	{.name = "http", .callback = on_event, .rx_buffer_size = CHUNK},
	{.name = "ng.rtpengine.com", .callback = on_event, .rx_buffer_size = CHUNK},
	{.name = "ng-plain.rtpengine.com", .callback = on_event, .rx_buffer_size = CHUNK},
	{.name = "page.xcipher", .callback = on_event, .rx_buffer_size = CHUNK},
	{.name = LINK_PROTOCOL, .callback = on_link, .rx_buffer_size = CHUNK},
	{0},
};

/* --- Start and stop --------------------------------------------------------------------------- */

static void link_changed(void *arg)
{
	struct web *w = arg;

	if (!link_is_up(w->link)) {
		for (struct web_client *c = w->first; c; c = c->next)
			if (c->kind == WEB_PAGE && !c->closing)
				web_page_gone(c);
	} else if (link_needs_token(w->link) && !w->token.set) {
		log_warn(
			"--listen-http refuses ng commands: with --ng-key-file of xcipherd it needs --http-token-file");
	}
}

static void on_second(lws_sorted_usec_list_t *sul)
{
	struct web *w = lws_container_of(sul, struct web, second);

	link_tick(w->link, clock_mono_ns());
	web_client_sweep(w);
	lws_sul_schedule(w->context, 0, &w->second, on_second, LWS_US_PER_SEC);
}

static int read_token(struct web *w, char *err, size_t err_len)
{
	const char *path = w->cfg.token_file;
	char text[4096];
	int len = secret_file_read("--http-token-file", path, text, sizeof(text), err, err_len);
	int ret = len < 0 ? len : 0;

	if (!ret && http_token_set(&w->token, secret_file_line(text, (size_t)len))) {
		ret = -EINVAL;
		snprintf(err, err_len,
			"--http-token-file=%s: its first line must be a token of %d to %d letters or digits, as \"openssl rand -hex 24\" makes them",
			path, HTTP_TOKEN_MIN, HTTP_TOKEN_MAX);
	}
	secmem_wipe(text, sizeof(text));
	return ret;
}

/* Clients can provoke what libwebsockets logs, so it is limited. */
static void on_lws_log(int level, const char *line)
{
	static struct log_limit limit;
	uint64_t held;

	if (log_limit_pass(&limit, clock_mono_ns(), LOG_EVERY_NS, &held))
		log_write(level & LLL_ERR ? LOG_WARNING : LOG_INFO, "libwebsockets: %.*s%s",
			(int)strcspn(line, "\n"), line, log_held((char[LOG_HELD]){0}, held));
}

/* Whether every listening TCP socket of this process is at this address. Without interface
 * addresses libwebsockets would listen on all of them, and report no error. */
static bool listens_only_at(const struct endpoint *want)
{
	struct sockaddr_storage name;
	struct endpoint at;
	uint32_t found = 0;

	for (int fd = 0; fd < LISTEN_FDS; fd++) {
		socklen_t len = sizeof(int), name_len = sizeof(name);
		int accepts = 0;

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &len) || !accepts)
			continue;
		if (getsockname(fd, (struct sockaddr *)&name, &name_len) ||
			endpoint_from_sockaddr(&at, &name) || !endpoint_eq(&at, want))
			return false;
		found++;
	}
	return found > 0;
}

static int open_server(struct web *w, char *err, size_t err_len)
{
	static const lws_retry_bo_t alive = {
		.secs_since_valid_ping = WEB_PING_SEC, .secs_since_valid_hangup = WEB_HANG_UP_SEC};
	char address[ENDPOINT_STRLEN], text[ENDPOINT_STRLEN];
	bool any = endpoint_is_unspecified(&w->cfg.listen);
	struct lws_context_creation_info info = {
		.port = w->cfg.listen.port,
		.iface = any ? NULL : endpoint_fmt_addr(&w->cfg.listen, address),
		.protocols = web_protocols,
		.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_VALIDATE_UTF8 |
			LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND |
			(w->cfg.listen.family == AF_INET ? LWS_SERVER_OPTION_DISABLE_IPV6
							 : LWS_SERVER_OPTION_IPV6_V6ONLY_MODIFY),
		.user = w,
		.gid = (gid_t)-1,
		.uid = (uid_t)-1,
		.timeout_secs = WEB_HEAD_SEC,
		.keepalive_timeout = 1,
		.max_http_header_data = HEAD_MAX,
		.max_http_header_pool = 2 * WEB_CLIENTS,
		.pt_serv_buf_size = CHUNK,
		.retry_and_idle_policy = &alive,
		.ka_time = 60,
		.ka_probes = 4,
		.ka_interval = 15,
	};

	lws_set_log_level(LLL_ERR, on_lws_log);
	w->context = lws_create_context(&info);
	w->vhost = w->context ? lws_create_vhost(w->context, &info) : NULL;
	if (w->vhost && listens_only_at(&w->cfg.listen))
		return 0;
	if (w->vhost) {
		snprintf(err, err_len,
			"libwebsockets does not listen on %s only. It needs netlink sockets to find addresses (RestrictAddressFamilies=AF_NETLINK under systemd)",
			endpoint_fmt(&w->cfg.listen, text));
		return -EADDRNOTAVAIL;
	}
	snprintf(err, err_len, "cannot listen for HTTP on %s: %s",
		endpoint_fmt(&w->cfg.listen, text), errno ? strerror(errno) : "no memory");
	return -EADDRINUSE;
}

static void warn_open(const struct web *w)
{
	char text[ENDPOINT_STRLEN];

	if (!w->token.set && !http_peer_loopback(&w->cfg.listen))
		log_warn(
			"--listen-http=%s: any host that reaches this address controls the daemon: use a loopback or management address, or set --http-token-file",
			endpoint_fmt(&w->cfg.listen, text));
}

static int start(struct web *w, char *err, size_t err_len)
{
	struct link_config link = {.path = w->cfg.daemon, .changed = link_changed, .arg = w};
	int ret = w->cfg.token_file[0] ? read_token(w, err, err_len) : 0;

	gethostname(w->machine, sizeof(w->machine) - 1);
	ret = ret ? ret : open_server(w, err, err_len);
	if (ret)
		return ret;
	warn_open(w);
	link.vhost = w->vhost;
	ret = link_create(&w->link, &link);
	lws_sul_schedule(w->context, 0, &w->second, on_second, LWS_US_PER_SEC);
	return ret;
}

int web_create(struct web **out, const struct web_config *cfg, char *err, size_t err_len)
{
	struct web *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->cfg = *cfg;
	ret = start(w, err, err_len);
	if (ret) {
		web_destroy(w);
		return ret;
	}
	*out = w;
	return 0;
}

void web_destroy(struct web *w)
{
	struct link *link = w->link;

	if (w->context)
		lws_sul_schedule(w->context, 0, &w->second, on_second, LWS_SET_TIMER_USEC_CANCEL);
	while (w->first)
		web_client_close(w->first);
	w->link = NULL;
	if (w->context)
		lws_context_destroy(w->context);
	link_destroy(link);
	secmem_wipe(&w->token, sizeof(w->token));
	free(w);
}
