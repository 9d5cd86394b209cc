/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP server: its listener, its token, its start and its end. What a client may cost is bounded: memory by HTTP_BODY_MAX
 * for what it says, and HTTP_OUT_HIGH plus one reply for what it is told; time by http_client_sweep(); the control thread's
 * attention by a budget of each client and one of all. Clients are served in http_client.c, requests in http_request.c. */
#include "control/http_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "base/secret_file.h"

static bool room(void *server, const struct endpoint *from)
{
	return http_client_make_room(server, from);
}

static void open_client(void *server, int fd, const struct endpoint *from)
{
	http_client_open(server, fd, from);
}

static void on_second(void *arg)
{
	struct http *h = arg;

	listener_resume(&h->listener);
	http_client_sweep(h);
}

/* --- Start and stop -------------------------------------------------------------------------------------------- */

static int read_token(struct http *h, const char *path, char *err, size_t err_len)
{
	char text[4096];
	struct str token;
	int ret = secret_file_line(
		&token, "--http-token-file", path, text, sizeof(text), err, err_len);

	if (!ret && http_token_set(&h->token, token)) {
		ret = -EINVAL;
		snprintf(err, err_len,
			"--http-token-file=%s: its first line must be a token of %d to %d letters or digits, as \"openssl rand -hex 24\" makes them",
			path, HTTP_TOKEN_MIN, HTTP_TOKEN_MAX);
	}
	secmem_wipe(text, sizeof(text));
	return ret;
}

static uint64_t or_default(uint64_t ns, uint64_t seconds)
{
	return ns ? ns : seconds * NS_PER_SEC;
}

static void configure(struct http *h, const struct http_config *cfg)
{
	h->cfg = *cfg;
	h->cfg.token_file = cfg->token_file ? cfg->token_file : "";
	h->cfg.hosts = cfg->hosts ? cfg->hosts : "";
	h->cfg.connections = cfg->connections ? cfg->connections : HTTP_CONNECTIONS;
	h->cfg.idle_ns = or_default(cfg->idle_ns, 60);
	h->cfg.evict_ns = or_default(cfg->evict_ns, 10);
	h->cfg.head_ns = or_default(cfg->head_ns, 15);
	h->cfg.request_ns = or_default(cfg->request_ns, 60);
	h->cfg.linger_ns = or_default(cfg->linger_ns, 2);
	h->cfg.ping_ns = or_default(cfg->ping_ns, 30);
	h->cfg.pong_ns = or_default(cfg->pong_ns, 15);
}

static int start(struct http *h, char *err, size_t err_len)
{
	uint64_t least = h->cfg.head_ns < h->cfg.linger_ns ? h->cfg.head_ns : h->cfg.linger_ns;
	uint64_t sweep_ns = least < 2 * NS_PER_SEC ? least / 2 : NS_PER_SEC;
	const struct listener_config listener = {.loop = h->loop,
		.at = h->cfg.listen,
		.what = "HTTP",
		.room = room,
		.open = open_client,
		.server = h,
		.connections = &h->connections};
	int ret = 0;

	if (h->cfg.token_file[0])
		ret = read_token(h, h->cfg.token_file, err, err_len);
	if (ret)
		return ret;
	gethostname(h->machine, sizeof(h->machine) - 1);
	ret = listener_start(&h->listener, &listener, err, err_len);
	if (ret)
		return ret;
	snprintf(err, err_len, "HTTP server: out of memory or descriptors");
	return loop_timer_add(h->loop, &h->timer, sweep_ns, sweep_ns, on_second, h);
}

int http_create(struct http **out, struct loop *loop, struct ng_front *front,
	const struct http_config *cfg, char *err, size_t err_len)
{
	struct http *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return -ENOMEM;
	configure(h, cfg);
	h->loop = loop;
	h->front = front;
	ret = start(h, err, err_len);
	if (ret) {
		http_destroy(h);
		return ret;
	}
	*out = h;
	return 0;
}

void http_destroy(struct http *h)
{
	if (!h)
		return;
	while (h->first)
		http_client_close(h->first);
	round_end(&h->round);
	loop_timer_remove(h->timer);
	listener_stop(&h->listener);
	secmem_wipe(&h->token, sizeof(h->token));
	free(h);
}

struct endpoint http_local(const struct http *h)
{
	return h->listener.local;
}

uint32_t http_connections(const struct http *h)
{
	return h->connections;
}
