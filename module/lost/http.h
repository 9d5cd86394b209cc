/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP exchanges of one process with libcurl's multi interface: connections stay open and are
 * shared. Never blocks, except for the wait in http_wait(). */
#ifndef LOST_HTTP_H
#define LOST_HTTP_H

#include "query.h"

struct http;

struct http_config {
	const char *ca_file, *cert_file, *key_file; /* NULL: the system's; none */
	bool verify;
	int connect_timeout; /* ms */
	size_t max_response;
};

/* The configuration must outlive it. NULL: out of memory. */
struct http *http_new(const struct http_config *cfg);
void http_free(struct http *h);

typedef void http_done(void *arg, const struct http_reply *r);
/* Starts an exchange; done() is called by http_run(), and may start another one. The request's
 * texts must live until then. False: out of memory; done() is not called. */
bool http_start(struct http *h, const struct http_request *r, http_done *done, void *arg);
/* Waits for traffic, for input on fd unless that is negative, or so many ms. */
void http_wait(struct http *h, int fd, int ms);
void http_run(struct http *h);
/* Ends http_wait(). The only function that other threads may call. */
void http_wake(struct http *h);

#endif
