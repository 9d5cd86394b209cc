/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP server and its clients, for the files control/http*.c only. */
#ifndef CONTROL_HTTP_INT_H
#define CONTROL_HTTP_INT_H

#include "base/log.h"
#include "control/http.h"
#include "control/http_guard.h"
#include "control/listen.h"
#include "control/round.h"
#include "control/web.h"
#include "proto/http.h"
#include "proto/ng_stream.h"
#include "proto/websocket.h"

#define HTTP_CONNECTIONS 64u
#define HTTP_PAGES       8u /* of the connections: each costs a snapshot a second */
#define HTTP_BODY_MAX    NG_STREAM_MAX
#define HTTP_REPLY_MAX   (1u << 20)
#define HTTP_OUT_HIGH    65536u /* a client that has so much to read is not read from */
#define HTTP_CHUNK       65536u
#define HTTP_LOOK_MAX    1536u /* struct page_look of a page, as text */

enum http_state {
	HTTP_IDLE, /* between requests */
	HTTP_IN_HEAD,
	HTTP_IN_BODY,
	HTTP_IN_WEBSOCKET,
	HTTP_ENDING, /* what was said is still sent, nothing is read */
	HTTP_LINGERING, /* the client reads what was sent: its bytes are thrown away, not answered by a reset */
};

enum http_kind {       /* whom a body or a WebSocket is for */
	HTTP_NG,       /* cookie, space, dictionary */
	HTTP_NG_PLAIN, /* a dictionary */
	HTTP_PAGE,
};

struct http_viewer { /* a page's WebSocket */
	struct loop_timer *timer;
	bool counted, known; /* it said the token, or needs none */
	uint32_t seconds;    /* since it came */
	uint64_t shown_ns;   /* the last snapshot */
	char look[HTTP_LOOK_MAX];
	size_t look_len;
};

struct http_client {
	struct http *http;
	struct http_client *next, **prev;
	struct loop_io *io;
	struct round_turn
		again; /* more requests wait, but other connections have their turn first */
	int fd;
	uint32_t events; /* that io waits for */
	struct endpoint from;
	enum http_state state;
	uint64_t since_ns; /* in this state */
	bool eof;          /* the client says no more */
	/* in: what is not served begins at in_at. out: what is not sent at out_sent. */
	struct sbuf in, out;
	size_t in_at, out_sent;
	uint64_t due_ns; /* when the next out_due bytes must have been read */
	size_t out_due;
	/* The request. */
	size_t line;         /* of http_head_end() */
	bool keep, bodiless; /* the connection stays after the reply; the reply has no body: HEAD */
	bool old;            /* HTTP/1.0 */
	enum http_kind kind;
	struct http_body body;
	/* The WebSocket. */
	struct ws_reader ws;
	uint64_t heard_ns,
		message_ns; /* the last byte; since when a message is unfinished, 0 = none is */
	bool pinged;
	struct http_viewer view;
};

struct http {
	struct http_config cfg;
	struct http_token token;
	char machine[64]; /* this machine's name */
	struct ng_front *front;
	struct loop *loop;
	struct listener listener;
	struct loop_timer *timer;
	struct http_client *first;
	uint32_t connections, pages;
	struct round round;
	char chunk[HTTP_CHUNK]; /* wiped after use: SDP holds keys */
};

/* http_client.c: connections. http_client_turn() and those that call it may free the client. */
void http_client_open(struct http *h, int fd, const struct endpoint *from);
void http_client_close(struct http_client *c);
void http_client_sweep(struct http *h); /* closes those that take too long */
bool http_client_make_room(struct http *h, const struct endpoint *from);
void http_client_turn(struct http_client *c); /* serves, sends, waits for what comes next */
void http_client_state(struct http_client *c, enum http_state state);
size_t http_client_unsent(const struct http_client *c);

/* http_request.c. True: it did something, and there may be more to do. */
bool http_request_serve(struct http_client *c);
/* What is wrong, in a line. */
void http_refuse(struct http_client *c, int status, const char *why);
bool http_may_ask(
	struct http *h, const struct http_head *head); /* says the token, if there is one */
/* Whether this request may contain ng commands. */
bool http_may_command(struct http *h, const struct http_head *head);
/* Whether pages are shown to this client at all: with a token to anybody, without one on this machine only. */
bool http_may_view(struct http_client *c, const struct http_head *head);

/* http_ws.c */
void http_ws_upgrade(struct http_client *c, const struct http_head *head);
bool http_ws_serve(struct http_client *c);
void http_ws_send(struct http_client *c, enum ws_opcode opcode, struct str payload);
void http_ws_close(struct http_client *c, int code, const char *reason);
void http_ws_ping(struct http_client *c);

/* http_page.c: the page's files, and its WebSocket. */
const struct web_file *http_page_file(struct str path);
int http_page_begin(struct http_client *c); /* -EBUSY: there are enough of them */
void http_page_end(struct http_client *c);
void http_page_hear(struct http_client *c, struct str message);

#endif
