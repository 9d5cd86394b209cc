/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP/1.1 requests (RFC 9110, RFC 9112): heads and bodies. Strict: what two parsers could read in
 * two ways is refused, since that is how requests are smuggled past proxies. Pure. */
#ifndef PROTO_HTTP_H
#define PROTO_HTTP_H

#include <time.h>

#include "base/bytes.h"

#define HTTP_HEAD_MAX   16384u
#define HTTP_FIELDS_MAX 64u
#define HTTP_DATE_LEN   30 /* with the zero */

enum http_framing {
	HTTP_BODY_NONE,
	HTTP_BODY_LENGTH,
	HTTP_BODY_CHUNKED,
};

struct http_field {
	struct str name, value;
};

struct http_head {               /* slices of what was parsed */
	struct str method, path; /* path: without query; as it was written */
	struct str host;         /* with port; of the target if that is an absolute one */
	uint32_t minor;          /* HTTP/1.minor */
	bool keep;               /* the connection may stay after the reply */
	bool expects;            /* 100-continue, before it sends the body */
	bool websocket;          /* asks to become one (RFC 6455 4.2.1) */
	enum http_framing framing;
	uint64_t length; /* of the body; UINT64_MAX if it is even longer */
	uint32_t fields;
	struct http_field field[HTTP_FIELDS_MAX];
};

/* Where the head in buf ends; each call may bring more bytes than the last. *line: where the last
 * line begins, 0 at first. Length with the empty line; 0: it does not end yet; -EBADMSG: a line
 * that does not end in CR LF; -EMSGSIZE: longer than HTTP_HEAD_MAX. */
int http_head_end(struct str buf, size_t *line);
/* A whole head. 0, or the status it is to be refused with. */
int http_head_parse(struct http_head *out, struct str head);
/* The value of the only field of that name, s NULL if there is none. For those that must be there
 * at most once, which http_head_parse() sees to: Authorization, Host, Origin, Sec-WebSocket-Key and
 * the like. */
struct str http_head_field(const struct http_head *h, const char *name);
/* One by one the members of all lists in fields of that name (RFC 9110 5.6.1). False: no more. */
struct http_list {
	const char *name; /* the rest is zero at first */
	uint32_t field;
	struct str rest;
};
bool http_list_next(struct http_list *l, const struct http_head *h, struct str *out);

enum http_body_state {
	HTTP_BODY_SIZE, /* a chunk's first line */
	HTTP_BODY_DATA,
	HTTP_BODY_DATA_END, /* the line end behind a chunk */
	HTTP_BODY_TRAILER,
	HTTP_BODY_DONE,
};

/* A body that is decoded where it is. */
struct http_body {
	enum http_body_state state;
	bool chunked;
	size_t max;     /* longest body */
	size_t len;     /* decoded: the first bytes of the buffer */
	size_t at;      /* where what is not decoded begins */
	size_t trailer; /* its length so far */
	uint64_t left;  /* of the chunk, or of the body */
};

void http_body_init(struct http_body *b, const struct http_head *h, size_t max);
/* buf: *len bytes from the first one behind the head. 1: the body is buf[0, b->len), and behind it
 * is what begins at b->at; 0: more bytes are needed, behind those that are left, *len; -EBADMSG;
 * -EMSGSIZE: longer than max. */
int http_body_read(struct http_body *b, char *buf, size_t *len);

/* "Not Found" */
const char *http_reason(int status);
/* RFC 9110 5.6.7. Returns out. */
const char *http_date(char out[HTTP_DATE_LEN], time_t t);

#endif
