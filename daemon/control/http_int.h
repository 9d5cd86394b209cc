/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the two threads of the HTTP server share: jobs, which are handed over by their number through two rings. Who holds
 * a job's number owns it. */
#ifndef CONTROL_HTTP_INT_H
#define CONTROL_HTTP_INT_H

#include <pthread.h>
#include <libwebsockets.h>

#include "base/log.h"
#include "base/ring.h"
#include "control/http.h"
#include "control/http_guard.h"
#include "proto/ng_stream.h"

#define HTTP_CONNECTIONS 64u
#define HTTP_PAGES       8u  /* of the connections: each costs a snapshot a second */
#define HTTP_JOBS        96u /* more than connections: those that closed may have one on its way */
#define HTTP_BODY_MAX    NG_STREAM_MAX
#define HTTP_REPLY_MAX   (1u << 20)
#define HTTP_CHUNK       16384u /* written at once */

enum http_job_kind {
	HTTP_JOB_NG,       /* cookie, space, dictionary */
	HTTP_JOB_NG_PLAIN, /* a dictionary */
	HTTP_JOB_METRICS,
	HTTP_JOB_PAGE, /* what is looked at */
	HTTP_JOB_END,  /* a Call-ID */
};

struct http_job {
	/* Owned by whoever holds the number. */
	enum http_job_kind kind;
	struct endpoint from;
	struct sbuf body, reply; /* wiped: SDP holds keys */
	int err;                 /* no reply */
	/* The server thread's. */
	bool taken;
	struct http_client *client; /* who waits for it; NULL: nobody any more */
};

struct http {
	/* Constant after creation. */
	struct http_config cfg;
	struct http_token token;
	char machine[64]; /* this machine's name */
	struct ng_front *front;
	struct loop *loop;
	struct lws_context *lws;
	struct lws_vhost *vhost;
	int ask_fd; /* eventfd: wakes the control thread */
	/* Both. */
	struct http_job job[HTTP_JOBS];
	struct ring ask;      /* server thread -> control thread: uint32_t */
	struct ring done;     /* back */
	struct ring accepted; /* control thread -> server thread: int, a descriptor */
	_Atomic uint32_t connections;
	_Atomic bool stop;
	/* The control thread's. */
	struct endpoint local;
	struct loop_io *listen_io, *ask_io;
	struct loop_timer *timer;
	int listen_fd;
	bool paused, running;
	struct log_limit log;
	pthread_t thread;
	/* The server thread's. */
	uint32_t pages;
	uint8_t chunk[LWS_PRE + HTTP_CHUNK];
};

/* A job's way: taken and asked by the server thread, answered by the control thread, then the server thread's again. */
struct http_job *http_job_take(struct http *h); /* NULL: all are on their way */
void http_job_ask(struct http *h, struct http_job *j);
void http_job_free(struct http_job *j);

/* http_lws.c. 0 or -errno. */
int http_server_start(struct http *h);
/* Lets the server thread look at what is done or accepted. Any thread. */
void http_server_wake(struct http *h);
void http_server_stop(struct http *h);

#endif
