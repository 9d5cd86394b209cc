/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP exchanges of a query as text for $xlost(exchanges), from which log events are made
 * (NENA-STA-010.3 4.12.3.7). Each has a line
 *
 *   KIND BEGIN END ERROR STATUS URL REQUEST KEPT REPLY
 *
 * and then URL, request and reply, each as long as the line says. KIND is "lost" or "held", BEGIN
 * and END are ms since 1970, ERROR is the name of an error or "-". Of the reply, which has REPLY
 * octets, the first KEPT follow. */
#ifndef LOST_TRACE_H
#define LOST_TRACE_H

#include <stdint.h>

#include "buf.h"

struct traced {
	const char *kind, *url;
	const char *request; /* NULL: GET */
	const char *reply;   /* NULL: none */
	const char *error;   /* "": none */
	size_t len;          /* of the reply */
	int64_t begin, end;  /* ms since 1970 */
	int status;
};

/* Adds an exchange, if its line, URL and request fit into most octets together with all before. A
 * reply that does not fit is cut, also before its first NUL, which ends a variable's text. */
void trace_add(struct buf *b, size_t most, const struct traced *t);

#endif
