/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of xcipher-web: the server and its clients. One thread. libwebsockets parses
 * requests and frames. These files decide about access, replies and limits. */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include "base/log.h"
#include "web/chunks.h"
#include "web/files.h"
#include "web/guard.h"
#include "web/link.h"

#define WEB_CLIENTS 64u
/* clients with the page: each costs the daemon a snapshot per second */
#define WEB_PAGES    8u
#define WEB_BODY_MAX (256u << 10) /* also of a WebSocket message: the limit of ng over TCP */
/* unsent bytes of a WebSocket above which nothing is read from it */
#define WEB_OUT_HIGH   65536u
#define WEB_ASKED_HIGH 8u    /* unanswered requests of a WebSocket */
#define WEB_LOOK_MAX   2048u /* the request for a page's snapshot */

#define WEB_HEAD_SEC   15 /* time limit for the head of a request */
#define WEB_LINGER_SEC 2
#define WEB_EVICT_NS   (10 * NS_PER_SEC) /* after this idle time a client may be displaced */
/* time limit for a body, for a message, and for reading sent data */
#define WEB_REQUEST_NS  (60 * NS_PER_SEC)
#define WEB_PING_SEC    30
#define WEB_HANG_UP_SEC 45

enum web_kind { WEB_HTTP, WEB_NG, WEB_NG_PLAIN, WEB_PAGE };

struct web_message { /* to be sent over a WebSocket */
	struct web_message *next;
	enum lws_write_protocol type;
	size_t len;
	uint8_t bytes[]; /* LWS_PRE before the text */
};

struct web_viewer {        /* a client with the page */
	bool known;        /* it sent the token, or needs none: counted in web.pages */
	bool asked, ended; /* a snapshot is pending; the reply to "end" is pending */
	bool wants_history, gone_shown;
	uint32_t seconds;  /* time of its connection */
	uint64_t shown_ns; /* time of the last snapshot */
	char *look;        /* the request for the next snapshot */
	size_t look_len;
	char *ending; /* Call-ID of the call that it wants to end */
};

struct web_client {
	struct web *web;
	struct web_client *next, **prev;
	struct lws *wsi;
	struct endpoint from;
	enum web_kind kind;
	enum web_kind granted; /* of a WebSocket: the kind that its handshake was checked for */
	bool proven;           /* this client sent the token itself */
	bool idle, closing;    /* between requests; being closed */
	uint64_t since_ns;     /* idle, or the request began */
	uint64_t stuck_ns;     /* time since which it reads nothing; 0: it reads */
	/* HTTP */
	bool bodiless, plain, chunked, metrics, waits;
	size_t length; /* of the body */
	struct chunks chunks;
	struct sbuf body;
	uint8_t *reply; /* after LWS_PRE spare bytes; NULL: none yet */
	size_t reply_len;
	/* WebSocket */
	struct sbuf message;
	bool binary;
	uint64_t message_ns; /* since when a message is incomplete; 0: none is */
	uint32_t asked;
	struct web_message *out, **out_last;
	size_t out_len;
	struct web_viewer view;
};

struct web_config {
	struct endpoint listen;
	const char *token_file, *hosts, *daemon; /* "" = none */
};

struct web {
	struct web_config cfg;
	struct http_token token;
	char machine[64];
	struct lws_context *context;
	struct lws_vhost *vhost;
	struct link *link;
	lws_sorted_usec_list_t second;
	struct web_client *first;
	uint32_t clients, pages;
	struct log_limit log_full, log_lws;
};

/* 0, or -errno with one line in err. */
int web_create(struct web **out, const struct web_config *cfg, char *err, size_t err_len);
void web_destroy(struct web *w);
extern const struct lws_protocols web_protocols[];

#endif
