/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP server: ng by POST and WebSocket, metrics, the page. Hooks itself into the event loop. Control thread only. */
#ifndef CONTROL_HTTP_H
#define CONTROL_HTTP_H

#include "base/loop.h"
#include "control/front.h"
#include "control/page.h"

struct http;

struct http_config {
	struct endpoint listen;
	const char *token_file; /* NULL or "" = no token is asked for */
	const char *hosts; /* names it may be reached by, with ',' between; NULL or "" = none */
	bool no_ng_without_token; /* refuse ng commands if there is no token: UDP and TCP need keys */
	/* Appends a text in Prometheus' format. May be NULL. */
	void (*metrics)(void *arg, struct sbuf *out);
	void *arg;
	struct page_source page; /* calls NULL: there is no page */
	/* What is 0 has a default. */
	uint32_t connections; /* at most; when there are more, see http_client.c */
	uint64_t idle_ns;     /* a connection without a request for that long is closed */
	uint64_t evict_ns;    /* one without a request for that long makes room for a new one */
	uint64_t head_ns;     /* what a request's head may take, */
	uint64_t
		request_ns; /* and with its body, or a WebSocket message; and what was sent, until it is read */
	uint64_t
		linger_ns; /* how long what a client still says is thrown away after its last reply */
	uint64_t ping_ns; /* a WebSocket silent for that long is asked whether it lives, */
	uint64_t pong_ns; /* and closed when it says nothing for that long since */
};

/* On error *err says in one line what is wrong, and -errno is returned. Loop, front and what cfg points to must live
 * longer. */
int http_create(struct http **out, struct loop *loop, struct ng_front *front,
	const struct http_config *cfg, char *err, size_t err_len);
/* Before the loop is destroyed. NULL is fine. */
void http_destroy(struct http *h);

/* Where it listens: the port when it was 0. */
struct endpoint http_local(const struct http *h);
uint32_t http_connections(const struct http *h);

#endif
