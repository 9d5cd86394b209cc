/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP server: ng by POST and WebSocket, metrics, the page. It has a thread of its own, so that no client, however
 * slow, is in the control thread's way; what needs calls or the handler is handed to the control thread and back. */
#ifndef CONTROL_HTTP_H
#define CONTROL_HTTP_H

#include "base/loop.h"
#include "control/page.h"

struct http;

struct http_config {
	struct endpoint listen;
	const char *token_file; /* "" = no token is asked for */
	const char *hosts;      /* names it may be reached by, with ',' between; "" = none */
	/* Control thread: appends a text in Prometheus' format. May be NULL. */
	void (*metrics)(void *arg, struct sbuf *out);
	void *arg;
	struct page_source page; /* calls NULL: there is no page */
};

/* On error *err says in one line what is wrong, and -errno is returned. Loop, front and what cfg points to must live
 * longer. */
int http_create(struct http **out, struct loop *loop, struct ng_front *front,
	const struct http_config *cfg, char *err, size_t err_len);
/* Ends the thread. Before the loop is destroyed. NULL is fine. */
void http_destroy(struct http *h);

/* Where it listens: the port when it was 0. */
struct endpoint http_local(const struct http *h);
uint32_t http_connections(const struct http *h);

#endif
