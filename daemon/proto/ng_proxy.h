/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How xcipher-web forwards ng messages to xcipherd over a Unix socket (xcipher-ng(7), "UNIX
 * SOCKET"): a line says who asks and how long the message is, then the message follows. Replies
 * come in the order of the requests. The length comes first, so that no client decides where the
 * next message begins. Pure. */
#ifndef PROTO_NG_PROXY_H
#define PROTO_NG_PROXY_H

#include "base/endpoint.h"
#include "base/sbuf.h"

#define NG_PROXY_LINE_MAX  128u /* with its end */
#define NG_PROXY_REPLY_MAX (1u << 20)

/* The daemon's first line on a connection. */
#define NG_PROXY_HELLO "xcipher-ng 1 "

struct ng_proxy_hello {
	bool keys; /* commands need a signature or a token */
};

struct ng_proxy_request {
	bool plain;             /* a dictionary without a cookie */
	bool token;             /* the client sent the token */
	struct endpoint client; /* family 0: the proxy itself asks */
	size_t len;             /* of the message */
};

enum ng_proxy_status {
	NG_PROXY_OK,
	NG_PROXY_DROPPED, /* the message has no cookie */
	NG_PROXY_DENIED,  /* commands need a signature, and the client sent no token */
	NG_PROXY_FAILED,  /* no memory */
	NG_PROXY_STATUS_COUNT
};

struct ng_proxy_reply {
	enum ng_proxy_status status;
	size_t len;
};

/* Read one line from the beginning of buf. The length of the line; 0: it is not complete yet;
 * -EBADMSG. */
int ng_proxy_read_hello(struct ng_proxy_hello *out, struct str buf);
int ng_proxy_read_request(struct ng_proxy_request *out, struct str buf, size_t max);
int ng_proxy_read_reply(struct ng_proxy_reply *out, struct str buf);

/* Append one line. */
void ng_proxy_write_hello(struct sbuf *b, const struct ng_proxy_hello *hello);
void ng_proxy_write_request(struct sbuf *b, const struct ng_proxy_request *request);
void ng_proxy_write_reply(struct sbuf *b, const struct ng_proxy_reply *reply);

#endif
