/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RESP, the protocol of Redis, version 2
 * (https://redis.io/docs/latest/develop/reference/protocol-spec/). Pure. The parser takes nothing
 * for granted: a hostile server can send any bytes. It uses no more memory than the caller
 * provides. */
#ifndef PROTO_RESP_H
#define PROTO_RESP_H

#include "base/sbuf.h"

#define RESP_LINE_MAX  4096u      /* status, error, integer, length */
#define RESP_BULK_MAX  (2u << 20) /* one string */
#define RESP_DEPTH_MAX 3u         /* the reply to SCAN has arrays of depth 2 */

enum resp_type {
	RESP_STATUS = 1 << 0,
	RESP_ERROR = 1 << 1,
	RESP_INTEGER = 1 << 2,
	RESP_STRING = 1 << 3,
	RESP_NIL = 1 << 4, /* instead of a string or an array */
	RESP_ARRAY = 1 << 5,
};

struct resp {
	enum resp_type type;
	uint32_t elements; /* of an array */
	int64_t integer;
	struct str text; /* status, error, string: a slice of the input */
	const struct resp *element;
};

/* Parses the first reply in p. Its root is node[0]; node has room for max. Returns the length of
 * the reply, 0 if it is incomplete, -EBADMSG if it is malformed, -EMSGSIZE if it exceeds a
 * limit. */
int resp_parse(struct resp *node, uint32_t max, const char *p, size_t len);
/* Appends a command. On error out->err is set. */
void resp_write(struct sbuf *out, uint32_t words, const struct str *word);

#endif
